"""Compile variants of one program with XLA, in a child process that can be cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from donation_inspector.machine import system
from donation_inspector.xla import compile_memory, user_cache
from donation_inspector.xla.kept_executable import KeptExecutable
from donation_inspector.xla.process import Failure, child, environment
from donation_inspector.xla.program import Program
from donation_inspector.xla.protocol import CompileDone, CompileJob
from donation_inspector.xla.results import Compiled as Compiled
from donation_inspector.xla.results import Memory as Memory

Progress = Callable[[int, int, str], None]
"""Called with the steps done, all steps, and what was just done."""


def compile_variants(
    programs: Mapping[str, Program],
    *,
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
    timeout: float | None = None,
    hlo: bool = False,
    executables: Mapping[str, KeptExecutable] = MappingProxyType({}),
    read: bool = False,
) -> dict[str, Compiled]:
    """Compile every program, one after the other, and report each under its name.

    Nothing is raised for a variant: one that XLA refuses, or whose compile kills the process, says so in `error`, and
    the others are compiled all the same. After `timeout` seconds for all together, when `cancel` is set, or on Ctrl-C,
    the child is ended at once; what was finished keeps its result and the rest is "timed out" or "cancelled".
    With `hlo` each answer has the compiled module's HloProto, for `hlo.buffers.read_buffers`. The executables of those
    that `executables` has room for are written there, where their platform has a form for it. What is compiled goes
    into the user's compilation cache, as by their own process; with `read` it is asked first, and what comes from there
    has no HloProto.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    done: dict[str, Compiled] = {}
    try:
        while waiting := [name for name in programs if name not in done]:
            env = environment(programs[waiting[0]])
            together = tuple((name, programs[name]) for name in waiting if environment(programs[name]) == env)
            failure: Failure | None = None
            rooms = [executables.get(name) for name, _ in together]
            descriptors = tuple(None if room is None else room.descriptor for room in rooms)
            with (
                system.temporary_folder() as folder,
                child(
                    CompileJob(
                        together,
                        # what does not fit is known by what XLA wrote down
                        None if programs[waiting[0]].target.here and not hlo else folder,
                        descriptors,
                        user_cache.settings(),
                        read,
                    ),
                    env,
                    inherit=[descriptor for descriptor in descriptors if descriptor is not None],
                ) as worker,
            ):
                for event in worker.events(cancel=cancel, deadline=deadline):
                    if isinstance(event, CompileDone):
                        done[event.name] = event.compiled if hlo else replace(event.compiled, hlo=None)
                        compile_memory.learn(programs[event.name], event.resident)
                        if progress is not None:
                            progress(len(done), len(programs), event.name)
                failure = worker.failure
            if failure is None:
                continue
            lost = [name for name, _ in together if name not in done]
            if failure.status in ("crashed", "out of memory"):
                # the one it was at; a new child goes on with those after it
                lost = lost[:1]
            else:
                lost = [name for name in programs if name not in done]
            error = f"Timed out after {timeout:g} s." if failure.status == "timed out" else failure.error
            for name in lost:
                done[name] = Compiled(failure.status, error=error)
    except KeyboardInterrupt:
        for name in programs:
            done.setdefault(name, Compiled("cancelled", error="Interrupted."))
    return {name: done[name] for name in programs}
