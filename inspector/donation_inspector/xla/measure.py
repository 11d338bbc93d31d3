"""Run variants of one program, each in a process of its own, and measure the memory and time they take."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from donation_inspector.common.units import format_bytes
from donation_inspector.xla import user_cache, worker
from donation_inspector.xla.compile import Progress
from donation_inspector.xla.kept_executable import KeptExecutable
from donation_inspector.xla.process import child, environment
from donation_inspector.xla.program import Program
from donation_inspector.xla.protocol import (
    CompileDone,
    Event,
    MeasureJob,
    OutOfMemory,
    Raised,
    RunDone,
    WarmedUp,
    Workspace,
)
from donation_inspector.xla.results import Compiled, Executable, Status
from donation_inspector.xla.results import Measured as Measured
from donation_inspector.xla.values import GENERATED, stored_values


def measure_variants(
    programs: Mapping[str, Program],
    inputs: Sequence[Any] | None,
    *,
    runs: int = 5,
    timeout: float = 60.0,
    in_kernel: bool = False,
    executables: Mapping[str, tuple[KeptExecutable, Compiled]] = MappingProxyType({}),
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> dict[str, Measured]:
    """Run every program in a fresh process of its own, one after the other; report each under its name.

    `inputs` has one entry for each argument of the entry function, by position: a jax or numpy array, or None to
    generate it; None instead of the sequence generates them all. Generated floats are in [0.5, 1), integers 0 or 1,
    keys valid. Where values are given, all programs take the same arguments. A process loads the program's executable,
    where `executables` has it with what XLA said when it was compiled, else it compiles; it calls the program to warm
    up, then `runs` times.

    Nothing is raised for a variant: see `Measured.status`. `timeout` is in seconds for each variant, from the start of
    its process. When `cancel` is set, or on Ctrl-C, the process is ended at once; what was finished is kept.
    `in_kernel` runs them in this process instead, which holds the device: one after the other, without a time-out,
    and `cancel` is heard between them.
    Raises MeasureError when `inputs` are not what the programs take.
    """
    tallies = {name: _Tally(runs) for name in programs}
    try:
        first = next(iter(programs.values()), None)
        storage = nullcontext(GENERATED) if inputs is None or first is None else stored_values(first, inputs)
        with storage as values:
            for number, (name, program) in enumerate(programs.items()):
                steps = _Steps(progress, number * (runs + 2), len(programs) * (runs + 2), name)
                places = values.places or (None,) * len(program.inputs)
                kept, known = executables.get(name, (None, None))
                job = MeasureJob(
                    program,
                    places,
                    values.descriptor,
                    runs,
                    None if kept is None else kept.descriptor,
                    known,
                    None if in_kernel else user_cache.settings(),
                )
                if in_kernel:
                    _measure_here(job, tallies[name], steps, cancel)
                else:
                    _measure(job, tallies[name], steps, timeout, cancel)
                steps.to((number + 1) * (runs + 2), str(tallies[name].status))
    except KeyboardInterrupt:
        for tally in tallies.values():
            tally.close("cancelled", "Interrupted.")
    return {name: tally.measured() for name, tally in tallies.items()}


@dataclass(slots=True)
class _Tally:
    """What is known about one variant so far; the first `close` says how it ended."""

    wanted: int
    status: Status | None = None
    error: str | None = None
    predicted: int | None = None
    executable: Executable | None = None
    output_hashes: tuple[str, ...] | None = None
    workspace: int | None = None
    baseline: int | None = None
    highest: list[int | None] = field(default_factory=list[int | None])
    seconds: list[float] = field(default_factory=list[float])

    def close(self, status: Status, error: str | None = None) -> None:
        if self.status is None:
            self.status, self.error = status, error

    def phase(self) -> str:
        """What it is doing, for people."""
        if self.predicted is None:
            return "starting and compiling"
        if self.output_hashes is None:
            return "in its first call"
        return f"after {len(self.seconds)} of {self.wanted} runs"

    def measured(self) -> Measured:
        base = self.baseline
        peaks = [] if base is None else [highest - base for highest in self.highest if highest is not None]
        return Measured(
            status=self.status or "cancelled",
            peak=round(statistics.median(peaks)) if peaks else None,
            spread=(min(peaks), max(peaks)) if peaks else None,
            predicted=self.predicted,
            seconds=statistics.median(self.seconds) if self.seconds else None,
            output_hashes=self.output_hashes,
            workspace=self.workspace,
            runs=len(self.seconds),
            error=self.error,
            executable=self.executable,
        )


@dataclass(slots=True)
class _Steps:
    """Progress of one variant among all."""

    progress: Progress | None
    step: int
    steps: int
    name: str

    def to(self, step: int, what: str) -> None:
        if self.progress is not None and step > self.step:
            self.progress(step, self.steps, f"{self.name}: {what}")
        self.step = max(self.step, step)

    def advance(self, what: str) -> None:
        self.to(self.step + 1, what)


def _measure(job: MeasureJob, tally: _Tally, steps: _Steps, timeout: float, cancel: threading.Event | None) -> None:
    """Run one variant to its end and leave in `tally` what came of it."""
    if _not_started(job, tally, cancel):
        return None
    inherit = [descriptor for descriptor in (job.values_fd, job.executable) if descriptor is not None]
    with child(job, environment(job.program), inherit=inherit) as running:
        for event in running.events(cancel=cancel, deadline=time.monotonic() + timeout):
            _take(event, tally, steps, devices=len(job.program.device_ids))
    failure = running.failure
    if failure is None:
        return tally.close("ok")
    if failure.status == "timed out":
        return tally.close("timed out", f"Timed out after {timeout:g} s, {tally.phase()}.")
    return tally.close(failure.status, f"{failure.error} It was {tally.phase()}.")


def _measure_here(job: MeasureJob, tally: _Tally, steps: _Steps, cancel: threading.Event | None) -> None:
    """Run one variant in this process and leave in `tally` what came of it."""
    if _not_started(job, tally, cancel):
        return
    devices = len(job.program.device_ids)
    worker.measure(job, lambda event: _take(event, tally, steps, devices=devices))
    tally.close("ok")


def _not_started(job: MeasureJob, tally: _Tally, cancel: threading.Event | None) -> bool:
    """Whether there is a reason not to start, left in `tally`."""
    if cancel is not None and cancel.is_set():
        tally.close("cancelled", "Cancelled before it was started.")
    elif job.program.callbacks:
        tally.close("refused", _callback_refusal(job.program))
    return tally.status is not None


def _take(event: Event, tally: _Tally, steps: _Steps, *, devices: int) -> None:
    match event:
        case CompileDone(compiled=compiled, loaded=loaded):
            if compiled.memory is None:
                tally.close(compiled.status, compiled.error)
                return
            tally.predicted = compiled.memory.total * devices
            tally.executable = "kept" if loaded else "cached" if compiled.cached else "compiled"
            steps.advance("loaded" if loaded or compiled.cached else "compiled")
        case WarmedUp(hashes):
            tally.output_hashes = hashes
            steps.advance("warmed up")
        case RunDone(seconds, highest, baseline):
            tally.seconds.append(seconds)
            tally.highest.append(highest)
            tally.baseline = baseline
            steps.advance(f"run {len(tally.seconds)} of {tally.wanted}")
        case Workspace(nbytes):
            tally.workspace = nbytes
        case OutOfMemory(needs, has, detail):
            tally.close("out of memory", _shortage(needs, has, detail))
        case Raised(detail):
            tally.close("crashed", f"The program raised when it was called: {detail}")
        case _:
            pass


def _callback_refusal(program: Program) -> str:
    names = ", ".join(dict.fromkeys(program.callbacks))
    return (
        f"The program calls back into the Python process that traced it ({names}); a fresh process cannot call these. "
        "Measure the function without its host callbacks; comparing compiled memory works with them."
    )


def _shortage(needs: int | None, has: int | None, detail: str) -> str:
    if needs is None or has is None:
        return f"Memory ran out while it ran: {detail}"
    return f"Not run: it needs {format_bytes(needs)}, this machine has {format_bytes(has)} left."
