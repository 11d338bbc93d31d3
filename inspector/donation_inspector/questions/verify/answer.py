"""Verification: what became of each donated argument in the user's own call, as plain values for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from donation_inspector.common.tables import told, told_html
from donation_inspector.common.units import format_bytes, total_bytes

if TYPE_CHECKING:
    from donation_inspector.inspection import Inspection

Outcome = Literal["reused", "freed", "alive", "unknown"]

IN_WORDS: Mapping[Outcome, str] = {
    "reused": "yes",
    "freed": "no, only freed",
    "alive": "no, still alive",
    "unknown": "unknown",
}
"""The answer to "reused in your call"."""

_SHOWN = 40
_HEADER = ("donated", "bytes", "reused in your call", "result", "why")


@dataclass(frozen=True, slots=True)
class DonatedArgument:
    """One flat argument that is donated, or that an inner jit, `jax_debug_nans` or `jax_disable_jit` keeps from it.

    `outcome` is "reused" where a result of the call lies in its buffers, those of all devices; "freed" where they are
    gone and no result has them; "alive" where the caller's array is as it was; "unknown" where the runtime does not
    tell. `result` is the path of the result that has them; `reason` says why they were not reused, "" where they were.
    """

    index: int
    path: str
    nbytes: int | None
    outcome: Outcome
    result: str | None
    reason: str


@dataclass(frozen=True)
class Verification:
    """The user's own call, run once: what it returned, and what became of the donated arguments."""

    inspection: Inspection = field(repr=False)
    result: Any = field(repr=False)
    """What the call returned. The donated arrays are gone: go on with this."""
    arguments: tuple[DonatedArgument, ...]

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """The outcome of each donated argument, by its path."""
        return {argument.path: argument.outcome for argument in self.arguments}

    def sentence(self) -> str:
        """How much of what was donated the call reused."""
        return sentence(self.arguments)

    def _rows(self) -> tuple[list[tuple[str, ...]], str]:
        """Those that were not reused first, and what is left out."""
        ranked = sorted(self.arguments, key=lambda one: (one.outcome == "reused", -(one.nbytes or 0)))
        rows = [
            (one.path, format_bytes(one.nbytes), IN_WORDS[one.outcome], one.result or "", one.reason)
            for one in ranked[:_SHOWN]
        ]
        return rows, "" if len(ranked) <= _SHOWN else f"and {len(ranked) - _SHOWN} more"

    def __repr__(self) -> str:
        return told(self.sentence(), _HEADER, *self._rows())

    def _repr_html_(self) -> str:
        return told_html(self.sentence(), _HEADER, *self._rows())


_OTHERS: Mapping[Outcome, str] = {"freed": "only freed", "alive": "still alive", "unknown": "unknown"}


def sentence(arguments: Sequence[DonatedArgument]) -> str:
    """How much of what was donated a call reused."""
    if not arguments:
        return "Nothing is donated: there was nothing to reuse in your call."
    reused = [argument for argument in arguments if argument.outcome == "reused"]
    counts = Counter(argument.outcome for argument in arguments)
    others = [f"{counts[outcome]} {word}" for outcome, word in _OTHERS.items() if counts[outcome]]
    some, all_ = (total_bytes(one.nbytes for one in several) for several in (reused, arguments))
    were, size = "was" if len(arguments) == 1 else "were", f", {format_bytes(some)} of {format_bytes(all_)}"
    return (
        f"{len(reused)} of {len(arguments)} donated arguments {were} reused in your call{'' if all_ == 0 else size}"
        f"{'; ' if others else ''}{', '.join(others)}."
    )
