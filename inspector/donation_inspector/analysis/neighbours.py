"""Other ways to pair donated arguments with results, and which of them are promising: what a search compiles.

Within a class of equal buffers any argument may give its buffer to any result, or to none. Two pairings are neighbours
when one argument gives its buffer to another result or to none, and whoever had that result takes what became free.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from donation_inspector.analysis.interference import Interference
from donation_inspector.analysis.pairing import COSTS, assign, find_cycle, without_cycle
from donation_inspector.common.signature import Leaf, Signature

Pairing = Mapping[int, int]
"""The result that takes over each argument's buffer, by position; the other arguments are not donated."""

_LIKELY = 20
"""What `pairing.COSTS` gives a likely copy."""
_CERTAIN = 25
_FEW = 64
"""A buffer that many times smaller than the largest is of no account."""


@dataclass(frozen=True, slots=True)
class EqualBuffers:
    """Arguments and results, by position, any of which can share a buffer of `nbytes` bytes a device."""

    arguments: tuple[int, ...]
    results: tuple[int, ...]
    nbytes: int

    @property
    def most(self) -> int:
        """How many pairs there can be at once."""
        return min(len(self.arguments), len(self.results))

    def without(self, positions: Set[int], results: Set[int]) -> EqualBuffers:
        """The class that is left when others take some of it."""
        arguments = tuple(position for position in self.arguments if position not in positions)
        return EqualBuffers(arguments, tuple(one for one in self.results if one not in results), self.nbytes)

    @property
    def ways(self) -> int:
        """How many ways there are to pair them, arguments left out or not: with no pair at all it is one."""
        inputs, outputs = len(self.arguments), len(self.results)
        return sum(math.comb(inputs, k) * math.comb(outputs, k) * math.factorial(k) for k in range(self.most + 1))


def find_classes(signature: Signature, donated: Set[int]) -> tuple[EqualBuffers, ...]:
    """The classes of equal buffers that have a donated argument (by position) and a result, those of most bytes first.

    Equal are shape, one device's part of it, dtype, memory and layout: what JAX can pair. What is not known to be
    equal, as a result whose sharding is left to XLA, is in no class.
    """
    arguments, results = defaultdict[Hashable, list[Leaf]](list), defaultdict[Hashable, list[Leaf]](list)
    for leaf in signature.arguments:
        if leaf.position in donated and (key := _key(leaf)):
            arguments[key].append(leaf)
    for leaf in signature.results:
        if leaf.position is not None and (key := _key(leaf)):
            results[key].append(leaf)
    found = [
        EqualBuffers(_positions(arguments[key]), _positions(results[key]), arguments[key][0].nbytes_per_device or 0)
        for key in arguments
        if key in results
    ]
    return tuple(sorted(found, key=lambda one: -one.nbytes))


def _positions(leaves: Sequence[Leaf]) -> tuple[int, ...]:
    return tuple(leaf.position for leaf in leaves if leaf.position is not None)


def _key(leaf: Leaf) -> Hashable:
    """Equal for buffers of which JAX lets one stand for the other; None where that is not known or saves nothing."""
    if not leaf.nbytes_per_device or None in leaf.shard_shape or leaf.layout == "auto":
        return None
    layout = None if leaf.layout == "default" else leaf.layout
    return leaf.shape, leaf.shard_shape, leaf.dtype, leaf.memory, layout


def _bytes(leaf: Leaf) -> Hashable:
    plain = leaf.layout in (None, "default")
    return (leaf.nbytes_per_device, leaf.memory) if leaf.nbytes_per_device and plain else None


def count_pairings(classes: Sequence[EqualBuffers]) -> int:
    """How many pairings there are in all, that of nothing included."""
    return math.prod(one.ways for one in classes)


def every_pairing(classes: Sequence[EqualBuffers]) -> Iterator[dict[int, int]]:
    """All pairings; there are `count_pairings` of them."""
    if not classes:
        yield {}
        return
    for rest in every_pairing(classes[1:]):
        for within in _within(classes[0].arguments, frozenset(classes[0].results)):
            yield {**within, **rest}


def _within(arguments: Sequence[int], free: frozenset[int]) -> Iterator[dict[int, int]]:
    if not arguments:
        yield {}
        return
    first, rest = arguments[0], arguments[1:]
    for result in sorted(free):
        for others in _within(rest, free - {result}):
            yield {first: result, **others}
    yield from _within(rest, free)


class Promise:
    """What pairings within these classes are likely to cost, before any is compiled."""

    def __init__(self, interference: Interference, classes: Sequence[EqualBuffers]) -> None:
        self._interference, self.classes = interference, classes
        self._class_of = {argument: one for one in classes for argument in one.arguments}

    def cost(self, pairing: Pairing) -> float:
        """Bytes a device: likely copies, buffers that are not taken over though they could be, and a copy where the
        pairs wait for one another."""
        bytes_ = sum(self._pair(argument, result) for argument, result in pairing.items())
        for one in self.classes:
            bytes_ += one.nbytes * (one.most - sum(argument in pairing for argument in one.arguments))
        cycle = find_cycle(self._interference, pairing)
        return bytes_ + min((self._class_of[argument].nbytes for argument, _ in cycle), default=0)

    def by_live_range(self) -> dict[int, int]:
        """The pairing that costs least: no certain copy, none that waits for another."""
        return without_cycle(self._interference, self.cheapest)

    def cheapest(self, forbidden: Set[tuple[int, int]] = frozenset()) -> dict[int, int]:
        """The pairing that costs least in each class, cycles left aside; none that is forbidden."""
        pairs: dict[int, int] = {}
        for one in self.classes:
            pairs |= assign(self._interference, one.arguments, one.results, forbidden)
        return pairs

    def ranked(self) -> list[dict[int, int]]:
        """Every pairing, the most promising first; there are `count_pairings` of them."""
        return sorted(every_pairing(self.classes), key=self.cost)

    def neighbours(self, pairing: Pairing) -> Iterator[dict[int, int]]:
        """Those one change away, the most promising first; cycles are left aside.

        What changes so few bytes that it can gain as little, as a counter's buffer, comes last.
        """
        largest = max((one.nbytes for one in self.classes), default=0)
        for change in sorted(
            (change for one in self.classes for change in self._changes(pairing, one)),
            key=lambda change: (change.nbytes * _FEW < largest, change.cost),
        ):
            yield {argument: result for argument, result in {**pairing, **change.to}.items() if result is not None}

    def across_types(self, signature: Signature, donated: Set[int], pairing: Pairing) -> dict[int, int]:
        """`pairing` and what it leaves over paired where it takes as many bytes of one memory; no JAX API makes it."""
        inputs, outputs = defaultdict[Hashable, list[int]](list), defaultdict[Hashable, list[int]](list)
        taken = frozenset(pairing.values())
        for leaf in signature.arguments:
            waits = leaf.position in donated and leaf.position not in pairing
            if leaf.position is not None and waits and (key := _bytes(leaf)):
                inputs[key].append(leaf.position)
        for leaf in signature.results:
            if leaf.position is not None and leaf.position not in taken and (key := _bytes(leaf)):
                outputs[key].append(leaf.position)
        pairs = dict(pairing)
        for key in inputs.keys() & outputs.keys():
            pairs |= assign(self._interference, inputs[key], outputs[key])
        return pairs

    def _pair(self, argument: int, result: int) -> float:
        cost = COSTS.get(self._interference.level(argument, result), _CERTAIN)
        return cost / _LIKELY * self._class_of[argument].nbytes

    def _changes(self, pairing: Pairing, one: EqualBuffers) -> Iterator[_Change]:
        taken_by = {result: argument for argument, result in pairing.items()}
        for argument in one.arguments:
            had = pairing.get(argument)
            if had is not None:
                yield self._change(pairing, {argument: None})
            for result in one.results:
                other = taken_by.get(result)
                if other is None:
                    yield self._change(pairing, {argument: result})
                elif other != argument and (had is None or argument < other):
                    # two that both have a result are swapped once, not from either side
                    yield self._change(pairing, {argument: result, other: had})

    def _change(self, pairing: Pairing, to: Mapping[int, int | None]) -> _Change:
        now = {argument: pairing.get(argument) for argument in to}
        nbytes = max(self._class_of[argument].nbytes for argument in to)
        return _Change(to, nbytes, self._part(to) - self._part(now))

    def _part(self, pairs: Mapping[int, int | None]) -> float:
        return sum(
            self._class_of[argument].nbytes if result is None else self._pair(argument, result)
            for argument, result in pairs.items()
        )


class _Change(NamedTuple):
    """What some arguments have then, how large each buffer is, and what it costs more."""

    to: Mapping[int, int | None]
    nbytes: int
    cost: float
