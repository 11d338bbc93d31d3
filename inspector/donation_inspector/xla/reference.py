"""One call of a program as JAX runs it: what went in and what came out, kept in a file that other processes map."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from donation_inspector.machine import system
from donation_inspector.xla.process import child, environment
from donation_inspector.xla.program import Program
from donation_inspector.xla.protocol import CompileDone, Evaluated, EvaluateJob, Raised, Stored
from donation_inspector.xla.results import Status
from donation_inspector.xla.values import stored_values


@dataclass(frozen=True, slots=True)
class Reference:
    """Where the arguments and results stand in the file `descriptor`, by position; or why there are none."""

    status: Status
    error: str | None = None
    arguments: tuple[Stored, ...] = ()
    results: tuple[Stored, ...] = ()
    descriptor: int = -1


@contextmanager
def evaluated(
    program: Program, inputs: Sequence[Any], *, timeout: float, cancel: threading.Event | None = None
) -> Generator[Reference]:
    """Call the program once in a child process, on this machine; the file lives as long as the context.

    `inputs` as in `measure.measure_variants`. Raises MeasureError when they are not what the program takes.
    """
    with stored_values(program, inputs) as values, system.temporary_file() as file:
        answer = Reference("crashed", "It ended without results.")
        places = values.places or (None,) * len(program.inputs)
        job = EvaluateJob(program, places, values.descriptor, file.fileno())
        inherit = [file.fileno(), *([] if values.descriptor is None else [values.descriptor])]
        with child(job, environment(program), inherit=inherit) as running:
            for event in running.events(cancel=cancel, deadline=time.monotonic() + timeout):
                match event:
                    case CompileDone(compiled=compiled) if compiled.memory is None:
                        answer = Reference(compiled.status, compiled.error)
                    case Evaluated(arguments, results):
                        answer = Reference("ok", None, arguments, results, file.fileno())
                    case Raised(detail):
                        answer = Reference("crashed", f"The program raised when it was called: {detail}")
                    case _:
                        pass
        failure = running.failure
        if failure is not None:
            late = failure.status == "timed out"
            answer = Reference(failure.status, f"Timed out after {timeout:g} s." if late else failure.error)
        yield answer
