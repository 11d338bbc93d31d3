"""The column "reused in your call" of the report's tables: there once `verify` made the call with this donated set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from donation_inspector.questions.verify.answer import IN_WORDS, DonatedArgument

if TYPE_CHECKING:
    from donation_inspector.analysis.donation import Argument
    from donation_inspector.inspection import Inspection

Cells = tuple[str, ...]
_HEADER = "reused in your call"


class InYourCall:
    """What the user's own call made of the donated leaves, as cells; no cells where no call was verified."""

    def __init__(self, inspection: Inspection) -> None:
        self._rows: Mapping[int, DonatedArgument] = {row.index: row for row in inspection.verified or ()}

    def header(self, header: Cells) -> Cells:
        """A table's header with the column before the last one."""
        return (*header[:-1], _HEADER, header[-1]) if self._rows else header

    def cell(self, leaves: Sequence[int]) -> Cells:
        """One leaf's outcome in words, or how many of several were reused; "" where none of them is donated."""
        if not self._rows:
            return ()
        rows = [self._rows[leaf] for leaf in leaves if leaf in self._rows]
        if not rows:
            return ("",)
        if len(leaves) == 1:
            return (IN_WORDS[rows[0].outcome],)
        return (f"{sum(row.outcome == 'reused' for row in rows)} of {len(rows)}",)

    def lost(self, leaf: int) -> bool:
        """Whether the call did not reuse a leaf that is donated."""
        return leaf in self._rows and self._rows[leaf].outcome != "reused"

    def why(self, argument: Argument) -> str:
        """The reason of the verdict, and that of the call where it is another one."""
        row = self._rows.get(argument.index)
        if row is None or row.reason == "" or argument.reason.startswith(row.reason):
            return argument.reason
        return f"{argument.reason.removesuffix('.')}; in your call {row.reason}"
