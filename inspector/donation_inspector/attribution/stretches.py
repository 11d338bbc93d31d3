"""Bytes of one allocation, each given away once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Stretches:
    """The stretches of an allocation that are taken, in the order of their offsets; none touches the next."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []

    def take(self, low: int, high: int) -> int:
        """Take the offsets from `low` to `high`; how many of them were free."""
        if low >= high:
            return 0
        first, last = bisect_left(self._ends, low), bisect_right(self._begins, high)
        before = sum(end - begin for begin, end in zip(self._begins[first:last], self._ends[first:last], strict=True))
        if first < last:
            low, high = min(low, self._begins[first]), max(high, self._ends[last - 1])
        self._begins[first:last], self._ends[first:last] = [low], [high]
        return high - low - before
