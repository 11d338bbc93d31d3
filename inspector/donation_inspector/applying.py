"""From a donation and a pipeline to `Applied`: the pass runs, its decision is read, and the program's text shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.passes import ModulePass

from donation_inspector.answers import Applied
from donation_inspector.ir.exporter import to_jaxlib, with_materializations
from donation_inspector.ir.text import diff, pretty
from donation_inspector.passes.hazards import diagnose
from donation_inspector.passes.pipeline import apply_default, apply_pipeline
from donation_inspector.signature import Donation

if TYPE_CHECKING:
    from donation_inspector.subject import Subject

Pipeline = str | ModulePass | Sequence[ModulePass]
REAL_PASS = "jax-use-donated-arguments"


def pipeline_name(pipeline: Pipeline) -> str:
    """The pipeline as xdsl-opt writes it."""
    if isinstance(pipeline, str):
        return pipeline
    passes = [pipeline] if isinstance(pipeline, ModulePass) else list(pipeline)
    return ",".join(str(one.pipeline_pass_spec()) for one in passes)
