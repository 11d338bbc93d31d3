"""The variants as XLA compiled them: plain immutable values. Bytes are one device's, and XLA's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from donation_inspector.analysis.donation import Argument, Result, Verdict
from donation_inspector.analysis.donors import donor_outcome
from donation_inspector.common.tables import aligned
from donation_inspector.common.units import format_bytes
from donation_inspector.errors import CompileError
from donation_inspector.xla.results import Memory

if TYPE_CHECKING:
    from donation_inspector.attribution.compiled_module import CompiledModule
    from donation_inspector.attribution.outcomes import AliasOutcome
    from donation_inspector.attribution.peak import Peak
    from donation_inspector.xla.hlo.buffers import Buffers


VARIANTS = ("none", "jax", "pass")
"""Donation stripped; JAX's own pairing, donors included; what the pass made."""


@dataclass(frozen=True)
class Variant:
    """One compiled variant: XLA's own figures, or the reason why there are none.

    `input_output_alias` maps flat arguments to flat results, as the compiled module says. `seconds` is the time of the
    compile. `status` is "ok" or how it ended, with the reason in `error`.
    """

    name: str
    memory: Memory | None
    input_output_alias: Mapping[int, int]
    seconds: float | None
    status: str
    error: str | None
    missing_pairs: tuple[tuple[int, int], ...] = ()
    """Pairs (flat argument, flat result) that were asked for and that the compiled module does not have."""
    capacity: int | None = None
    """Bytes that one device of the target has for a program; None where that is unknown."""
    module: CompiledModule | None = field(default=None, repr=False, compare=False)
    """What XLA made of it; None where XLA made nothing."""

    @property
    def fits(self) -> bool | None:
        """Whether the device has the memory for it, by XLA's total; None when either is unknown."""
        if self.status == "does not fit":
            return False
        return None if self.over is None else self.over == 0

    @property
    def over(self) -> int | None:
        """Bytes by which the total exceeds the device's capacity, 0 when it fits; None when either is unknown."""
        if self.memory is None or self.capacity is None:
            return None
        return max(0, self.memory.total - self.capacity)

    @property
    def hlo(self) -> bytes | None:
        """The serialized HloProto of the compiled module; None where XLA made none."""
        return None if self.module is None else self.module.hlo

    @property
    def buffers(self) -> Buffers | None:
        """XLA's own buffers of the compiled module, live in XLA's own schedule; None where XLA made no module.

        Raises CompileError where they cannot be read.
        """
        return None if self.module is None else self.module.buffers

    @property
    def peak(self) -> Peak | None:
        """What fills the device's main memory at the peak of XLA's schedule, in the user's words.

        None where XLA made no module. Raises CompileError as `buffers` does.
        """
        return self.peak_in(0)

    def peak_in(self, color: int) -> Peak | None:
        """As `peak`, of the memory space `color`, such as a TPU's VMEM; None where nothing is laid there."""
        return None if self.module is None else self.module.peak_in(color)


@dataclass(frozen=True)
class Comparison:
    """The three variants of `VARIANTS`, compiled by XLA for `target`.

    `here` is False where that is no device of this machine: what was compiled there was not run.
    """

    target: str
    pipeline: str
    variants: Mapping[str, Variant]
    here: bool
    decided: tuple[tuple[Argument, ...], tuple[Result, ...]] = field(repr=False, compare=False)
    """The flat arguments and results as JAX decided."""
    how: str = field(default="", repr=False, compare=False)
    """How many processes compiled it, and why not more; or that it was kept."""

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """Every flat argument with what XLA made of JAX's decision: donors reused or not, aliases that save nothing.

        Where XLA's buffers cannot be read, what aliasing saves is not told.
        """
        arguments, results = self.decided
        alias = self.variants["jax"].input_output_alias
        try:
            outcomes = self.outcomes
        except CompileError:
            outcomes = dict[int, "AliasOutcome"]()
        return tuple(_as_compiled(one, donor_outcome(one, arguments, results, alias), outcomes) for one in arguments)

    @cached_property
    def outcomes(self) -> Mapping[int, AliasOutcome]:
        """What aliasing really saves, by flat argument, where JAX's variant has it; with the copies that it makes.

        Raises CompileError where XLA's buffers cannot be read.
        """
        none, donating = self.variants["none"].module, self.variants["jax"].module
        return {} if none is None or donating is None else donating.outcomes(none)

    @property
    def shown(self) -> Variant | None:
        """The variant that is spoken of: as JAX donates, else without donation; None where XLA made neither."""
        made = (self.variants[name] for name in ("jax", "none"))
        return next((variant for variant in made if variant.module is not None), None)

    @property
    def compiled_saved(self) -> int | None:
        """Bytes per device that the pass's pairs save against no donation, by XLA's totals; None when unknown."""
        return self.saved("pass")

    def saved(self, name: str) -> int | None:
        """Bytes per device that one variant saves against no donation, by XLA's totals; None when unknown."""
        none, other = self.variants["none"].memory, self.variants[name].memory
        return None if none is None or other is None else none.total - other.total

    def __repr__(self) -> str:
        totals = ", ".join(
            f"{name} {format_bytes(variant.memory.total if variant.memory else None)}"
            for name, variant in self.variants.items()
        )
        return f"<Comparison on {self.target} (compiled{'' if self.here else ', not run'}): {totals}>"


def _as_compiled(argument: Argument, donor: str | None, outcomes: Mapping[int, AliasOutcome]) -> Argument:
    """An argument with the verdict and the reason that hold once XLA has compiled it."""
    outcome = outcomes.get(argument.index)
    said = [outcome.sentence, outcome.advice] if outcome is not None else []
    saves_nothing = outcome is not None and outcome.saves_nothing
    reason = f"{argument.reason}. {donor}" if donor else argument.reason
    return dataclasses.replace(
        argument,
        verdict=Verdict.SAVES_NOTHING if saves_nothing else argument.verdict,
        reason=". ".join((reason, " ".join(filter(None, said)))) if any(said) else reason,
    )


class Comparisons(Mapping[str, Comparison]):
    """One `Comparison` for each target, by its name as asked for ("tpu:v5e") or in full ("tpu:v5e:2x2")."""

    def __init__(self, comparisons: Iterable[Comparison]) -> None:
        self._by_target = {one.target: one for one in comparisons}

    def __getitem__(self, target: str) -> Comparison:
        found = [name for name in self._by_target if name == target or name.startswith(f"{target}:")]
        if not found:
            raise KeyError(f"{target!r} is none of the targets here: {', '.join(self._by_target)}")
        return self._by_target[found[0]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_target)

    def __len__(self) -> int:
        return len(self._by_target)

    def rows(self) -> list[tuple[str, ...]]:
        """Target × variant as text: see `COLUMNS`."""
        return [
            (
                comparison.target if name == VARIANTS[0] else "",
                name,
                format_bytes(variant.memory.total if variant.memory else None),
                "" if name == VARIANTS[0] else format_bytes(comparison.saved(name)),
                fits_words(variant),
            )
            for comparison in self.values()
            for name, variant in comparison.variants.items()
        ]

    COLUMNS = ("target", "compiled", "total", "saved", "fits")

    def __repr__(self) -> str:
        return "\n".join(aligned(self.COLUMNS, self.rows()))


def fits_words(variant: Variant) -> str:
    """Whether a variant fits, in words: "yes", "over by 1.7 GB", or why it is not known."""
    if variant.fits:
        return "yes"
    if variant.over:
        return f"over by {format_bytes(variant.over)}"
    if variant.fits is False:
        return "no"
    return "unknown" if variant.status == "ok" else variant.status
