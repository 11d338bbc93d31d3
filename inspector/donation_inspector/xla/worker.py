"""The child process: reads its job, starts JAX, does the job, tells the parent as it goes."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from . import memory
from .protocol import (
    CompileDone,
    CompileJob,
    Done,
    Event,
    Job,
    MeasureJob,
    OutOfMemory,
    Raised,
    RunDone,
    WarmedUp,
    encode,
)

if TYPE_CHECKING:
    from .buffers import Runner

Tell = Callable[[Event], None]


def main(job_fd: int, events_fd: int) -> None:
    """Do the job in the file `job_fd` and write its events to the pipe `events_fd`."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    memory.prefer_as_victim()
    with os.fdopen(job_fd, "rb") as file, os.fdopen(events_fd, "wb", buffering=0) as pipe:
        # the parent wrote through this very descriptor
        file.seek(0)
        job = cast(Job, pickle.load(file))

        def tell(event: Event) -> None:
            data = memoryview(encode(event))
            while data:
                data = data[pipe.write(data) :]

        if isinstance(job, CompileJob):
            _compile(job, tell)
        else:
            _measure(job, tell)
        tell(Done())


def _die_with_parent() -> None:
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


def _compile(job: CompileJob, tell: Tell) -> None:
    from .executable import compile_program, prepare

    for name, program in job.programs:
        prepare(program.platform)
        tell(CompileDone(name, compile_program(program)[0]))


def _measure(job: MeasureJob, tell: Tell) -> None:
    from .buffers import Runner
    from .executable import compile_program, prepare

    program = job.program
    prepare(program.platform)
    compiled, executable = compile_program(program)
    tell(CompileDone(program.name, compiled))
    if compiled.memory is None:
        return
    needs, has = compiled.memory.total * len(program.device_ids), memory.available()
    if program.platform == "cpu" and has is not None and needs > has:
        tell(OutOfMemory(needs, has, ""))
        return
    try:
        runner = Runner(program, executable, job.values, job.values_fd)
        results = runner.call(runner.inputs())
        tell(WarmedUp(runner.hashes(results)))
        del results
        for _ in range(job.runs):
            tell(_run(runner, on_host=program.platform == "cpu"))
    except (RuntimeError, ValueError, MemoryError) as error:
        out = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
        tell(OutOfMemory(None, None, str(error)) if out else Raised(f"{type(error).__name__}: {error}"))


def _run(runner: Runner, *, on_host: bool) -> RunDone:
    """One call; its peak is the highest resident memory during the call above that before the inputs existed."""
    gc.collect()
    memory.trim()
    baseline = memory.resident()
    inputs = runner.inputs()
    memory.trim()
    counted = on_host and memory.reset_peak()
    started = time.perf_counter()
    results = runner.call(inputs)
    seconds = time.perf_counter() - started
    peak = memory.peak() if counted else None
    del results
    return RunDone(None if peak is None or baseline is None else peak - baseline, seconds)
