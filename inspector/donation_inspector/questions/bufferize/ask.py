"""From an Inspection's program and pipeline to a `Bufferization`: what the pass's own IR takes when it runs."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.passes import ModulePass

from donation_inspector.bufferized import tools
from donation_inspector.bufferized.measure import Task, measure
from donation_inspector.bufferized.values import TARGET, UPSTREAM, Bufferization, Bufferized
from donation_inspector.common.signature import Donation
from donation_inspector.errors import CompileError, IRError
from donation_inspector.ir import linalg
from donation_inspector.ir.exporter import with_donation
from donation_inspector.ir.size import shape_dtype
from donation_inspector.program import running
from donation_inspector.program.subject import donation_key
from donation_inspector.questions.apply.ask import Pipeline, pipeline_name
from donation_inspector.questions.compare.ask import NOTHING
from donation_inspector.questions.measure.ask import values_of
from donation_inspector.xla.targets import Listed, resolve

if TYPE_CHECKING:
    from donation_inspector.common.progress import Progress
    from donation_inspector.program.subject import Subject

TIMEOUT = 60.0
_PACKED = ("int2", "uint2", "int4", "uint4", "float4")
"""Beginnings of the dtypes of which several share a byte: XLA packs them, MLIR's memref does not."""


def bufferize(
    subject: Subject,
    donation: Donation,
    pipeline: Pipeline,
    progress: Progress,
    cancel: threading.Event | None,
) -> Bufferization:
    """See `Inspection.compare` with target "mlir"; `subject` is lowered for the CPU.

    Raises CompileError: no tools; several devices; shapes or types that do not go this way; no linalg for an operation.
    MeasureError: a file whose code may reach outside of its own arrays.
    """
    tools.find()
    name = pipeline_name(pipeline)
    results = _results(subject)
    try:
        with subject.lock:
            text = linalg.to_linalg(subject.origin.module)
            target = resolve("cpu", platform=subject.origin.platform, devices=1)
            program = subject.origin.program(with_donation(subject.origin.module, NOTHING), target)
    except IRError as error:
        raise CompileError(f"The target 'mlir' cannot run {subject.origin.name}: {error}") from None
    running.refuse_memory_access(subject)
    values, inputs = values_of(subject, "real")
    chosen = [pipeline] if isinstance(pipeline, ModulePass) else pipeline
    task = Task(
        text,
        donation,
        {"none": None, UPSTREAM: UPSTREAM, "pass": chosen},
        program,
        [None] * len(program.inputs) if values is None else values,
        results,
    )
    made = measure(task, timeout=TIMEOUT, progress=progress, cancel=cancel)
    by_leaf = {key: _with_leaves(one, subject) for key, one in made.items()}
    answer = Bufferization(TARGET, name, by_leaf, inputs)
    subject.bufferizations[donation_key(donation), name] = answer
    return answer


def kept(subject: Subject, donation: Donation, pipeline: Pipeline) -> Bufferization | None:
    """The latest answer for this donation and pipeline, None where there is none."""
    return subject.bufferizations.get((donation_key(donation), pipeline_name(pipeline)))


def mlir_target() -> Listed:
    """The target as `donation_inspector.targets()` has it."""
    why_not = tools.why_not()
    return Listed(TARGET, "the pass's own IR, without XLA", None, why_not is None, why_not is None, why_not)


def _results(subject: Subject) -> tuple[tuple[tuple[int, ...], str], ...]:
    """Shape and dtype of each result, by position. Raises CompileError where the program does not go this way."""
    if subject.signature.devices > 1:
        raise CompileError(
            f"The target 'mlir' runs on one device, and {subject.origin.name} is for {subject.signature.devices}."
        )
    shapes: list[tuple[tuple[int, ...], str]] = []
    function = subject.func.function_type
    for kind, types in (("argument", function.inputs), ("result", function.outputs)):
        for position, type_ in enumerate(types):
            if not isinstance(type_, TensorType):
                raise CompileError(f"The target 'mlir' takes tensors alone, and {kind} {position} is {type_}.")
            shape, dtype = shape_dtype(cast(Any, type_))
            fixed = tuple(size for size in shape if size is not None)
            if len(fixed) < len(shape) or dtype.startswith(_PACKED):
                raise CompileError(
                    f"The target 'mlir' takes static shapes and whole bytes, and {kind} {position} is {type_}."
                )
            if kind == "result":
                shapes.append((fixed, dtype))
    return tuple(shapes)


def _with_leaves(one: Bufferized, subject: Subject) -> Bufferized:
    arguments, results = subject.leaf_of_argument, subject.leaf_of_result
    reused: Mapping[int, Sequence[int]] = one.reused
    return dataclasses.replace(
        one,
        reused={
            arguments[argument]: tuple(results[result] for result in there if result in results)
            for argument, there in reused.items()
            if argument in arguments
        },
    )
