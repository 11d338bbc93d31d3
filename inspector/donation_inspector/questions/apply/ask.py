"""From a donation and a pipeline to `Applied`: the pass runs, its decision is read, and the program's text shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.passes import ModulePass

from donation_inspector.common.signature import Donation
from donation_inspector.errors import PassError
from donation_inspector.ir.exporter import to_jaxlib, why_invalid
from donation_inspector.ir.text import Text, diff, donated, materialized, pretty
from donation_inspector.passes.effect import Effect
from donation_inspector.passes.hazards import UPSTREAM, diagnose
from donation_inspector.passes.pipeline import apply_default, apply_pipeline
from donation_inspector.questions.apply.answer import Applied

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
        if name == REAL_PASS:
            effect = apply_default(subject.func, donation)
            if effect.other_functions:
                # Only the whole module shows what the pass did to functions besides the entry.
                after = _whole(subject, donation, name)[0]
            else:
                after = materialized(before, subject.origin.module, effect.donation_left, effect.materializations)
        else:
            after, effect = _whole(subject, donation, [pipeline] if isinstance(pipeline, ModulePass) else pipeline)
        diagnostics = diagnose(
            subject.func,
            donation,
            effect,
            signature=subject.signature,
            liveness=subject.ranges.liveness,
            pipeline=name,
        )
        return Applied(
            pipeline=name,
            pairs=_by_leaf(subject, effect.pairs),
            diagnostics=diagnostics,
            diff=diff(before, after),
            compilable=effect.compilable,
            why_not=effect.why_not,
            donation=effect.donation,
            text_before=before,
            text_after=after,
        )


def _whole(subject: Subject, donation: Donation, pipeline: str | Sequence[ModulePass]) -> tuple[Text, Effect]:
    module, effect = apply_pipeline(subject.imported.module, donation, pipeline)
    made = to_jaxlib(subject.imported, module)
    why = why_invalid(made)
    if why is not None:
        raise PassError(f"The pipeline '{pipeline_name(pipeline)}' left a module that MLIR does not take: {why}.")
    return pretty(made), effect


def _by_leaf(subject: Subject, pairs: Sequence[tuple[int, int]]) -> Mapping[int, int]:
    arguments, results = subject.leaf_of_argument, subject.leaf_of_result
    return {
        arguments[argument]: results[result]
        for argument, result in pairs
        if argument in arguments and result in results
    }
