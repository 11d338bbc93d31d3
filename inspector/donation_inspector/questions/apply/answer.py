"""What a pipeline made of the program, as plain immutable values."""

from __future__ import annotations

import pathlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from donation_inspector.common.signature import Donation
from donation_inspector.ir.text import Change, Text, diff
from donation_inspector.passes.hazards import Diagnostic


@dataclass(frozen=True)
class Stage:
    """What one pass of a pipeline did.

    `pipeline` is the pass with its options, as xdsl-opt takes it; `seconds` its own time, measured. Texts, diff and
    counts are made when first asked for.
    """

    name: str
    pipeline: str
    seconds: float
    _made: StageMaker = field(repr=False, compare=False)

    @cached_property
    def before(self) -> str:
        """The program as the pass found it, as pretty StableHLO."""
        return "\n".join(self._made.text_before().lines)

    @cached_property
    def after(self) -> str:
        """The program as the pass left it."""
        return "\n".join(self._made.text_after().lines)

    @cached_property
    def diff(self) -> tuple[Change, ...]:
        """What changed, by operation."""
        return diff(self._made.text_before(), self._made.text_after())

    @cached_property
    def operations(self) -> Mapping[str, int]:
        """How many operations of each name there are after the pass, in all functions and regions."""
        return self._made.operations()

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What there is to say about what this pass did, and what it said itself."""
        return self._made.diagnostics()

    def write_reproducer(self, path: str | pathlib.Path) -> str:
        """Write the module as this pass found it, and give the `xdsl-opt` line that runs the pass on it.

        A pass that was given as an object is known to `xdsl-opt` only where its package registers it.
        """
        path = pathlib.Path(path)
        path.write_text(self._made.source())
        return shlex.join(
            ["xdsl-opt", str(path), "-p", self.pipeline, "--allow-unregistered-dialect", "--print-op-generic"]
        )


class StageMaker(Protocol):
    """What a stage is asked for only where somebody looks at it."""

    def text_before(self) -> Text: ...
    def text_after(self) -> Text: ...
    def operations(self) -> Mapping[str, int]: ...
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...
    def source(self) -> str: ...


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
    stages: tuple[Stage, ...] = ()
    """One for each pass of the pipeline, in their order."""

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
