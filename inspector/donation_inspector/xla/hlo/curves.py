"""Bytes over logical time, for one memory space."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from donation_inspector.xla.hlo.allocation import Allocation

Bytes = npt.NDArray[np.int64]


class Placed(Protocol):
    """A logical buffer in its allocation and in time; `start` and `end` are both included."""

    @property
    def allocation(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Three answers to how much memory a program takes, each int64[schedule] but the last.

    `needed`: bytes that hold a value which is still needed. `held`: parameters and outputs throughout, and the
    temporaries that are needed. `reserved`: what the runtime takes for the whole call, parameters and outputs included,
    whatever happens in between; it equals argument + output − alias + temp of the compiled program.
    `constant` is what the executable itself holds, in none of the others.
    """

    needed: Bytes
    held: Bytes
    reserved: int
    constant: int

    @property
    def peak(self) -> int:
        """The most bytes held at once."""
        return int(self.held.max(initial=0))

    @property
    def peak_at(self) -> int:
        """The earliest time at which `peak` is held."""
        return int(np.argmax(self.held)) if len(self.held) else 0


def curves(allocations: Iterable[Allocation], buffers: Iterable[Placed], length: int) -> Curves:
    """The curves of these allocations over `length` instructions, each byte counted once."""
    inside: defaultdict[int, list[Placed]] = defaultdict(list)
    for buffer in buffers:
        inside[buffer.allocation].append(buffer)
    needed, held = np.zeros(length + 1, np.int64), np.zeros(length + 1, np.int64)
    reserved = constant = 0
    for allocation in allocations:
        if allocation.kind == "constant":
            constant += allocation.nbytes
            continue
        if allocation.kind == "thread-local":
            continue
        reserved += allocation.nbytes
        steps = _steps(inside[allocation.index], length)
        needed += steps
        if allocation.kind == "temp":
            held += steps
        else:
            held[0] += allocation.nbytes
    return Curves(_summed(needed), _summed(held), reserved, constant)


def _summed(steps: Bytes) -> Bytes:
    total = np.cumsum(steps)[:-1]
    total.setflags(write=False)
    return total


def _steps(buffers: Sequence[Placed], length: int) -> Bytes:
    """How the number of needed bytes changes at each time; a byte that two buffers hold at once counts once."""
    steps = np.zeros(length + 1, np.int64)
    covered = _Covered()
    for buffer in sorted(buffers, key=lambda buffer: buffer.start):
        end = min(buffer.end, length - 1)
        for width, before in covered.extend(buffer.offset, buffer.offset + buffer.nbytes, end):
            steps[max(before + 1, buffer.start)] += width
            steps[end + 1] -= width
    return steps


class _Covered:
    """Until when each stretch of an allocation is covered, for buffers that come in the order of their starts."""

    def __init__(self) -> None:
        # stretch i goes from offset bounds[i] to bounds[i + 1]
        self._bounds = [0, 1 << 62]
        self._until = [-1]

    def extend(self, low: int, high: int, end: int) -> list[tuple[int, int]]:
        """Cover offsets low to high until `end`; (bytes, until when covered before) of what that makes longer."""
        if low == high:
            return []
        first, last = bisect_right(self._bounds, low) - 1, bisect_left(self._bounds, high)
        pieces = list(
            zip(
                self._bounds[first:last],
                self._bounds[first + 1 : last + 1],
                self._until[first:last],
                strict=True,
            )
        )
        inside = [(max(begin, low), min(stop, high), until) for begin, stop, until in pieces]
        changed = [(begin, max(until, end)) for begin, _, until in inside]
        if pieces[0][0] < low:
            changed.insert(0, (pieces[0][0], pieces[0][2]))
        if high < pieces[-1][1]:
            changed.append((high, pieces[-1][2]))
        # neighbours that are covered equally long become one, so that their number stays small
        kept = [new for old, new in zip([(0, -2), *changed], changed, strict=False) if old[1] != new[1]]
        self._bounds[first:last] = [begin for begin, _ in kept]
        self._until[first:last] = [until for _, until in kept]
        return [(stop - begin, until) for begin, stop, until in inside if until < end]
