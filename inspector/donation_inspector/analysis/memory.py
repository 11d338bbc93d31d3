"""Memory in program order: how many bytes are live while each operation of the entry function runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from donation_inspector.analysis.live_range import UNKNOWN, LiveRange, LiveRanges


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCurve:
    """Live bytes over the operations of the entry function, all its blocks in order.

    `bytes[i]` (int64) counts what is live while operation i runs, its operands and results included. A function that is
    called, and what a loop's body makes for itself, is not looked into. `peak_at` is the earliest maximum. `unknown` is
    the number of values whose size is unknown: no byte of theirs is in the curve.
    """

    bytes: npt.NDArray[np.int64]
    peak: int
    peak_at: int
    unknown: int
    ranges: LiveRanges = field(repr=False)

    def live_at(self, operation: int) -> tuple[LiveRange, ...]:
        """What is live while `operation` runs: most bytes first, then in program order, unknown sizes last.

        Raises IndexError when there is no such operation.
        """
        if not 0 <= operation < len(self.bytes):
            raise IndexError(f"There is no operation {operation}: the function has {len(self.bytes)}, counted from 0.")
        value, first, last = self.ranges.spans
        rows = np.sort(value[(first <= operation) & (operation <= last)])
        order = np.argsort(-self.ranges.nbytes[rows], kind="stable")
        return tuple(self.ranges[int(row)] for row in rows[order])


def curve(ranges: LiveRanges) -> MemoryCurve:
    """The curve of these live ranges; exact for a function of several blocks too, where hulls would count too much."""
    value, first, last = ranges.spans
    size = np.where(ranges.nbytes == UNKNOWN, 0, ranges.nbytes)[value]
    steps = np.zeros(ranges.operations + 1, np.int64)
    np.add.at(steps, first, size)
    np.subtract.at(steps, last + 1, size)
    live = np.cumsum(steps)[:-1]
    live.setflags(write=False)
    peak_at = int(np.argmax(live))
    return MemoryCurve(live, int(live[peak_at]), peak_at, int(np.count_nonzero(ranges.nbytes == UNKNOWN)), ranges)
