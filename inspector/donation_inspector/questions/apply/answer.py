"""What a pipeline made of the program, as plain immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from donation_inspector.common.signature import Donation
from donation_inspector.ir.text import Change, Text
from donation_inspector.passes.hazards import Diagnostic


@dataclass(frozen=True)
class Applied:
    """What a pipeline made of the program.

    `pairs` maps a flat argument to the flat result that takes its buffer, one-to-one. `donation` says the same by
    position, with the donors that the pipeline left to XLA. `compilable` is False, with `why_not`, when the pipeline
    changed more than materializations before the return.
    """

    pipeline: str
    pairs: Mapping[int, int]
    diagnostics: tuple[Diagnostic, ...]
    diff: tuple[Change, ...]
    compilable: bool
    why_not: str | None
    donation: Donation
    text_before: Text
    text_after: Text

    @cached_property
    def before(self) -> str:
        """The program before the pipeline, as pretty StableHLO."""
        return "\n".join(self.text_before.lines)

    @cached_property
    def after(self) -> str:
        """The program after the pipeline, as pretty StableHLO."""
        return "\n".join(self.text_after.lines)

    def __repr__(self) -> str:
        return f"<Applied {self.pipeline}: {len(self.pairs)} pairs, {len(self.diagnostics)} diagnostics>"
