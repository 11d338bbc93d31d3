"""Runs the variants of a program through MLIR's bufferization, one after the other, and says what each took."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from xdsl.passes import ModulePass

from donation_inspector.bufferized import tools
from donation_inspector.bufferized.lowering import Buffers, Limits, after_pipeline, bufferized, fused, to_llvm
from donation_inspector.bufferized.protocol import Array, Ran, Refused, RunJob
from donation_inspector.bufferized.tools import ToolCancelled, ToolDied, ToolError, Tools
from donation_inspector.bufferized.values import Bufferized
from donation_inspector.common.progress import Progress
from donation_inspector.common.signature import Donation
from donation_inspector.errors import IRError, PassError
from donation_inspector.ir.importer import Imported
from donation_inspector.machine import system
from donation_inspector.xla.process import child
from donation_inspector.xla.program import Program
from donation_inspector.xla.reference import Reference, evaluated
from donation_inspector.xla.results import Status

_WORKER = "donation_inspector.bufferized.worker"


@dataclass(frozen=True, slots=True)
class Task:
    """A program in linalg, how it is donated, and the pipelines to run on it, by name.

    A pipeline None is no pass, and nothing donated. `program` is what JAX runs on `inputs` (as in
    `xla.measure.measure_variants`), to hold the outputs to; `results` are the shapes and dtypes of these.
    """

    linalg: str
    donation: Donation
    pipelines: Mapping[str, str | Sequence[ModulePass] | None]
    program: Program
    inputs: Sequence[Any]
    results: tuple[tuple[tuple[int, ...], str], ...]


def measure(
    task: Task, *, timeout: float, progress: Progress, cancel: threading.Event | None = None
) -> dict[str, Bufferized]:
    """Every variant by name; `Bufferized.reused` is by position. What fails is part of the answer.

    `timeout` is in seconds for each step: JAX's call, one of MLIR's tools, one run. On Ctrl-C, and when `cancel` is
    set, what was finished is kept. Raises CompileError where a tool is missing, MeasureError as `evaluated` does.
    """
    found = tools.find()
    done: dict[str, Bufferized] = {}
    steps = len(task.pipelines) + 1
    try:
        with evaluated(task.program, task.inputs, timeout=timeout, cancel=cancel) as reference:
            progress(1, steps, f"JAX's own outputs: {reference.status}")
            for one in _Variants(task, reference, found, timeout, cancel).answers():
                done[one.name] = one
                progress(len(done) + 1, steps, f"{one.name}: {one.status}")
    except KeyboardInterrupt:
        pass
    return {name: done.get(name, Bufferized(name, "cancelled", "Interrupted.")) for name in task.pipelines}


_ANSWERS = (IRError, PassError, ToolError, ToolCancelled, TimeoutError)


def _ended(error: Exception) -> tuple[Status, str]:
    match error:
        case ToolCancelled():
            return "cancelled", "Cancelled."
        case TimeoutError():
            return "timed out", str(error)
        case ToolDied():
            return "crashed", str(error)
        case _:
            return "refused", str(error)


@dataclass
class _Variants:
    task: Task
    reference: Reference
    found: Tools
    timeout: float
    cancel: threading.Event | None

    def answers(self) -> Iterator[Bufferized]:
        """One for each pipeline, in order. Pipelines that make the same program share a run."""
        known: dict[str, Bufferized] = {}
        for name, pipeline in self.task.pipelines.items():
            if self.reference.status != "ok":
                yield Bufferized(name, self.reference.status, self._no_reference())
                continue
            try:
                text = after_pipeline(self._fused, self.task.donation, pipeline)
            except _ANSWERS as error:
                yield Bufferized(name, *_ended(error))
                continue
            if text not in known:
                known[text] = self._variant(name, text, pipeline is not None)
            yield dataclasses.replace(known[text], name=name)

    def _no_reference(self) -> str | None:
        if self.reference.status == "cancelled":
            return self.reference.error
        return f"There is nothing to hold it to, JAX's own call failed: {self.reference.error}"

    @cached_property
    def _fused(self) -> Imported:
        return fused(self.task.linalg, self._limits())

    def _limits(self) -> Limits:
        return Limits(self.found, time.monotonic() + self.timeout, self.cancel)

    def _variant(self, name: str, text: str, donated: bool) -> Bufferized:
        try:
            buffers = bufferized(text, self._limits())
        except _ANSWERS as error:
            return Bufferized(name, *_ended(error))
        known = Bufferized(name, "ok", conflict=buffers.conflict, ir=buffers.text)
        try:
            ran = self._run(buffers, self.task.donation.positions if donated else frozenset())
        except _ANSWERS as error:
            status, why = _ended(error)
            return dataclasses.replace(known, status=status, error=why)
        if not isinstance(ran, Ran):
            return dataclasses.replace(known, status=ran[0], error=ran[1])
        counts = ran.counts
        overwritten = ", ".join(map(str, ran.overwritten))
        return dataclasses.replace(
            known,
            error=f"It wrote into arguments that are not donated, at position {overwritten}." if overwritten else None,
            allocations=counts.allocations,
            frees=counts.frees,
            copies=counts.copies,
            copied=counts.copied,
            peak=counts.peak,
            total=counts.peak + sum(stored.nbytes for stored in self.reference.arguments),
            reused=_by_argument(ran.places),
            seconds=ran.seconds,
            max_error=max(ran.errors, default=0.0),
            outputs_close=ran.close and not overwritten,
        )

    def _run(self, buffers: Buffers, donated: frozenset[int]) -> Ran | tuple[Status, str]:
        reference = self.reference
        arguments = [
            Array(one.shape, one.dtype, kept)
            for one, kept in zip(self.task.program.inputs, reference.arguments, strict=True)
        ]
        results = [Array(*one, kept) for one, kept in zip(self.task.results, reference.results, strict=True)]
        llvm = to_llvm(buffers, self._limits())
        job = RunJob(llvm, tuple(arguments), tuple(results), donated, reference.descriptor)
        answer: Ran | tuple[Status, str] = ("crashed", "It ended without an answer.")
        deadline = time.monotonic() + self.timeout
        with child(job, system.own_environment(), inherit=[reference.descriptor], worker=_WORKER) as running:
            for event in cast(Iterator[object], running.events(cancel=self.cancel, deadline=deadline)):
                if isinstance(event, Ran):
                    answer = event
                elif isinstance(event, Refused):
                    answer = ("refused", event.detail)
        failure = running.failure
        if failure is None:
            return answer
        late = failure.status == "timed out"
        return failure.status, f"Timed out after {self.timeout:g} s, while it ran." if late else failure.error


def _by_argument(places: Sequence[int | None]) -> dict[int, tuple[int, ...]]:
    reused: dict[int, tuple[int, ...]] = {}
    for result, argument in enumerate(places):
        if argument is not None:
            reused[argument] = (*reused.get(argument, ()), result)
    return reused
