"""From a donation and a pipeline to `Applied`: the pass runs, its decision is read, and the program's text shows it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.passes import ModulePass

from donation_inspector.common.signature import Donation
from donation_inspector.errors import PassError
from donation_inspector.ir.text import diff, donated, materialized
from donation_inspector.passes.hazards import UPSTREAM, Diagnostic, diagnose
from donation_inspector.passes.pipeline import apply_default, apply_pipeline
from donation_inspector.questions.apply.answer import Applied
from donation_inspector.questions.apply.stages import as_diagnostics, as_text, outlined_stage, stages

if TYPE_CHECKING:
    from donation_inspector.program.subject import Subject

Pipeline = str | ModulePass | Sequence[ModulePass]
REAL_PASS = UPSTREAM


def pipeline_name(pipeline: Pipeline) -> str:
    """The pipeline as xdsl-opt writes it. Raises PassError for what is neither text nor passes."""
    if isinstance(pipeline, str):
        return pipeline
    passes: Any = [pipeline] if isinstance(pipeline, ModulePass) else pipeline
    if not isinstance(passes, list | tuple) or not all(isinstance(one, ModulePass) for one in cast(Any, passes)):
        raise PassError(
            f"A pipeline is text as for xdsl-opt, such as {REAL_PASS!r}, or ModulePass objects: this is of type "
            f"{type(pipeline).__name__}."
        )
    return ",".join(str(one.pipeline_pass_spec()) for one in cast(Sequence[ModulePass], passes))


def apply(subject: Subject, donation: Donation, pipeline: Pipeline) -> Applied:
    """Run `pipeline` on the program donated as `donation` says; see `Inspection.apply`.

    The real pass alone runs on an outline of the module, and its text is that of the program with the change written
    into it; any other pipeline runs on a copy of the whole module. Tests hold the two ways equal.
    """
    name = pipeline_name(pipeline)
    with subject.lock:
        before = donated(subject.text, subject.origin.module, donation)
        said: tuple[Diagnostic, ...] = ()
        start = time.perf_counter()
        if name == REAL_PASS and not (effect := apply_default(subject.func, donation)).other_functions:
            seconds = time.perf_counter() - start
            after = materialized(before, subject.origin.module, effect.donation_left, effect.materializations)
            passes = outlined_stage(subject, donation, name, seconds, before, after)
        else:
            # of the real pass too, only the whole module shows what it did to functions besides the entry
            whole = [pipeline] if isinstance(pipeline, ModulePass) else pipeline
            run = apply_pipeline(subject.imported.module, donation, whole)
            effect, after = run.effect, as_text(subject, run.module, name)
            passes = stages(subject, run.passes, before, after)
            notes = dict.fromkeys(note for one in run.passes for note in one.notes)
            said = as_diagnostics(notes, subject.signature, subject.func.sym_name.data)
        found = diagnose(
            subject.func,
            donation,
            effect,
            signature=subject.signature,
            liveness=subject.ranges.liveness,
            pipeline=name,
        )
        told = {one.argument for one in said}
        return Applied(
            pipeline=name,
            pairs=_by_leaf(subject, effect.pairs),
            diagnostics=(*(one for one in found if one.code != "left-unused" or one.argument not in told), *said),
            diff=diff(before, after),
            compilable=effect.compilable,
            why_not=effect.why_not,
            donation=effect.donation,
            text_before=before,
            text_after=after,
            stages=passes,
        )


def _by_leaf(subject: Subject, pairs: Sequence[tuple[int, int]]) -> Mapping[int, int]:
    arguments, results = subject.leaf_of_argument, subject.leaf_of_result
    return {
        arguments[argument]: results[result]
        for argument, result in pairs
        if argument in arguments and result in results
    }
