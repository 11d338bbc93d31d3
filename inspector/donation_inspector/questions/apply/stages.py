"""What each pass of a pipeline did, made where somebody looks at it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from donation_inspector.analysis.liveness import Liveness
from donation_inspector.analysis.naming import operation_name
from donation_inspector.common.signature import Donation, Signature
from donation_inspector.errors import PassError
from donation_inspector.ir import generic
from donation_inspector.ir.entry import entry_function, read_donation
from donation_inspector.ir.exporter import to_jaxlib, why_invalid
from donation_inspector.ir.text import Text, pretty
from donation_inspector.passes.hazards import Diagnostic, diagnose
from donation_inspector.passes.module_effect import read_module_effect
from donation_inspector.passes.notes import PassNote
from donation_inspector.passes.pipeline import apply_pipeline
from donation_inspector.passes.stages import PassRun
from donation_inspector.questions.apply.answer import Stage

if TYPE_CHECKING:
    from donation_inspector.program.subject import Subject


def stages(subject: Subject, runs: Sequence[PassRun], before: Text, after: Text) -> tuple[Stage, ...]:
    """Of the passes that ran; `before` and `after` are the texts of the whole pipeline, which are made already."""
    texts: list[Callable[[], Text]] = [lambda: before]
    for run in runs[:-1]:
        texts.append(_Once(subject, run).text)
    texts.append(lambda: after)
    return tuple(
        Stage(
            name=run.module_pass.name,
            pipeline=str(run.module_pass.pipeline_pass_spec()),
            seconds=run.seconds,
            _made=_Made(subject, run, texts[number], texts[number + 1]),
        )
        for number, run in enumerate(runs)
    )


def as_text(subject: Subject, module: ModuleOp, pipeline: str) -> Text:
    """Raises PassError where MLIR does not take what the pipeline left."""
    made = to_jaxlib(subject.imported, module)
    why = why_invalid(made)
    if why is not None:
        raise PassError(f"The pipeline '{pipeline}' left a module that MLIR does not take: {why}.")
    return pretty(made)


def as_diagnostics(notes: Iterable[PassNote], signature: Signature, entry: str) -> tuple[Diagnostic, ...]:
    """What passes said themselves, with the names of the entry function's arguments."""
    paths = {leaf.position: leaf.path for leaf in signature.arguments}
    found: list[Diagnostic] = []
    for note in notes:
        here = note.function == entry and note.argument is not None
        argument = note.argument if here else None
        told = f"{paths.get(argument, f'%arg{argument}')} {note.told}" if here else str(note).partition(": ")[2]
        found.append(Diagnostic("note", note.code, f"{told}.", argument=argument))
    return tuple(found)


class _Once:
    """The text of what a pass left, which the next one found."""

    def __init__(self, subject: Subject, run: PassRun) -> None:
        self._subject, self._run = subject, run

    def text(self) -> Text:
        return self._text

    @cached_property
    def _text(self) -> Text:
        with self._subject.lock:
            return as_text(self._subject, self._run.after, self._run.module_pass.name)


@dataclass(frozen=True)
class _Made:
    subject: Subject
    run: PassRun
    text_before: Callable[[], Text]
    text_after: Callable[[], Text]

    def operations(self) -> Mapping[str, int]:
        counts = Counter(operation_name(op) for op in self.run.after.walk())
        return {name: number for name, number in sorted(counts.items()) if name != ModuleOp.name}

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        func, subject = entry_function(self.run.before), self.subject
        said = as_diagnostics(self.run.notes, subject.signature, func.sym_name.data)
        after = [op for op in self.run.after.ops if isinstance(op, FuncOp) and op.sym_name == func.sym_name]
        if func.function_type != subject.func.function_type or not after:
            # names and sizes are those of the program as it was, and would be wrong
            return said
        found = diagnose(
            func,
            read_donation(func),
            read_module_effect(self.run.before, self.run.after),
            signature=subject.signature,
            liveness=Liveness(func),
            pipeline=self.run.module_pass.name,
        )
        return (*found, *said)

    def source(self) -> str:
        with self.subject.lock:
            return generic.text(self.subject.imported, self.run.before)


def outlined_stage(
    subject: Subject, donation: Donation, pipeline: str, seconds: float, before: Text, after: Text
) -> tuple[Stage, ...]:
    """Of the real pass alone, which ran on an outline: on the whole module it runs when something else is asked for."""
    return (Stage(pipeline, pipeline, seconds, _Outlined(subject, donation, pipeline, before, after)),)


class _Outlined:
    def __init__(self, subject: Subject, donation: Donation, pipeline: str, before: Text, after: Text) -> None:
        self._subject, self._donation, self._pipeline = subject, donation, pipeline
        self._before, self._after = before, after

    def text_before(self) -> Text:
        return self._before

    def text_after(self) -> Text:
        return self._after

    def operations(self) -> Mapping[str, int]:
        return self._made.operations()

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self._made.diagnostics()

    def source(self) -> str:
        return self._made.source()

    @cached_property
    def _made(self) -> _Made:
        with self._subject.lock:
            (run,) = apply_pipeline(self._subject.imported.module, self._donation, self._pipeline).passes
        return _Made(self._subject, run, self.text_before, self.text_after)
