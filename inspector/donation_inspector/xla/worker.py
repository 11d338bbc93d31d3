"""The child process: reads its job, does it, tells the parent as it goes. `process` starts it, environment and all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

from donation_inspector.errors import CompileError
from donation_inspector.xla import memory
from donation_inspector.xla.buffers import Runner, sizes, stored
from donation_inspector.xla.executable import compile_program, devices_of, keep, load, prepare
from donation_inspector.xla.peak import DeviceMeter, Meter, ResidentMeter
from donation_inspector.xla.program import Program
from donation_inspector.xla.protocol import (
    CompileDone,
    CompileJob,
    Evaluated,
    EvaluateJob,
    Event,
    Job,
    MeasureJob,
    OutOfMemory,
    Raised,
    RunDone,
    WarmedUp,
    Workspace,
)
from donation_inspector.xla.results import Compiled
from donation_inspector.xla.serving import serve

Tell = Callable[[Event], None]


def main(job_fd: int, events_fd: int) -> None:
    """Do the job in the file `job_fd` and write its events to the pipe `events_fd`."""
    serve(job_fd, events_fd, _do)


def _do(job: Job, tell: Tell) -> None:
    match job:
        case CompileJob():
            compile_all(job, tell)
        case MeasureJob():
            measure(job, tell)
        case EvaluateJob():
            evaluate(job, tell)


def compile_all(job: CompileJob, tell: Tell) -> None:
    """A `CompileDone` for each program, in order."""
    descriptors = job.executables or (None,) * len(job.programs)
    for (name, program), descriptor in zip(job.programs, descriptors, strict=True):
        prepare(program)
        try:
            compiled, executable = compile_program(program, job.folder, job.cache, read=job.read)
        except CompileError as error:
            compiled, executable = Compiled("refused", error=str(error)), None
        if executable is not None and descriptor is not None:
            keep(executable, descriptor)
        tell(CompileDone(name, compiled, resident=memory.peak()))


def measure(job: MeasureJob, tell: Tell) -> None:
    """Load or compile, see whether there is memory for it, warm up, run."""
    program = job.program
    prepare(program)
    executable = None if job.executable is None else load(program, job.executable)
    loaded = executable is not None and job.known is not None
    if loaded:
        compiled = cast(Compiled, job.known)
    else:
        compiled, executable = compile_program(program, cache=job.cache, read=True)
    tell(CompileDone(program.name, compiled, loaded))
    if compiled.memory is None:
        return
    needs, has = compiled.memory.total * len(program.device_ids), memory.available()
    if program.platform == "cpu" and has is not None and needs > has:
        tell(OutOfMemory(needs, has, ""))
        return
    try:
        runner = Runner(program, executable, job.values, job.values_fd)
        _call(runner, meter_for(program), job.runs, compiled.memory.temp, tell)
    except (RuntimeError, ValueError, MemoryError) as error:
        out = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
        tell(OutOfMemory(None, None, str(error)) if out else Raised(f"{type(error).__name__}: {error}"))


def meter_for(program: Program) -> Meter:
    """What counts the memory of the program's devices."""
    return ResidentMeter() if program.platform == "cpu" else DeviceMeter(devices_of(program))


def _call(runner: Runner, meter: Meter, runs: int, temp: int, tell: Tell) -> None:
    """Warm up, then `runs` measured calls."""
    inputs = runner.inputs()
    buffers = [temp, *sizes(inputs)]
    results = runner.call(inputs)
    buffers += sizes([on_devices[0] for on_devices in results])
    tell(WarmedUp(runner.hashes(results)))
    del inputs, results
    meter.learn_workspace(buffers, lambda: runner.call(runner.inputs()))
    for _ in range(runs):
        meter.rest()
        inputs = runner.inputs()
        counted = meter.start()
        started = time.perf_counter()
        results = runner.call(inputs)
        seconds = time.perf_counter() - started
        highest = meter.highest() if counted else None
        del inputs, results
        tell(RunDone(seconds, highest, meter.baseline))
    tell(Workspace(meter.workspace))


def evaluate(job: EvaluateJob, tell: Tell) -> None:
    """One call; its inputs and its results go into the job's file."""
    prepare(job.program)
    compiled, executable = compile_program(job.program)
    tell(CompileDone(job.program.name, compiled))
    if compiled.memory is None:
        return
    try:
        runner = Runner(job.program, executable, job.values, job.values_fd)
        inputs = runner.inputs()
        given = stored(inputs, job.file_fd)
        tell(Evaluated(given, stored([on_devices[0] for on_devices in runner.call(inputs)], job.file_fd)))
    except (RuntimeError, ValueError, MemoryError) as error:
        tell(Raised(f"{type(error).__name__}: {error}"))
