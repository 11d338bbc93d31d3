"""What aliasing each argument really saves, with the copies that take the saving away.

Held against the same program compiled without donation: what that one has too is not aliasing's doing, and what its
temporaries lack is what aliasing costs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from donation_inspector.attribution.copies import Copy, Kind, aliased_pairs, find_copies
from donation_inspector.attribution.flow import Flow
from donation_inspector.attribution.reasons import Reasons
from donation_inspector.common.signature import Signature
from donation_inspector.xla.hlo.buffers import Buffers

_NOISE = 64
"""Bytes by which alignment may move a total."""

_NEGLIGIBLE = 0.001
"""What share of the aliased bytes is no loss: tables of pointers, a TPU's tiles."""

_SMALL = 0.1
"""What share of a growth is too little to look for."""


@dataclass(frozen=True, slots=True)
class AliasOutcome:
    """What one aliased argument saves on one device. `argument` and `result` are the user's flat indices.

    `nbytes` is its buffer, `saved` what of it is left once its own copies are paid, which `Aliasing.unpinned` may still
    take a part of; None where no part of it is certain. `sentence` says why, `advice` what would avoid the copies (""
    where there are none).
    """

    argument: int
    result: int
    nbytes: int
    saved: int | None
    at_most: bool
    sentence: str
    advice: str
    copies: tuple[Copy, ...]

    @property
    def saves_nothing(self) -> bool:
        """Whether it is aliased for nothing."""
        return self.saved is not None and self.saved <= 0 < self.nbytes


@dataclass(frozen=True, slots=True)
class Aliasing:
    """All outcomes of one program, by the flat index of the argument; bytes are one device's.

    `aliased` is what results share with arguments, `grown` by how much temporaries are more than without donation, and
    `unpinned` the part of it that no argument's copies explain: without donation those temporaries lie in the results'
    own memory until that is written. The program saves `aliased` − `grown`.
    """

    outcomes: Mapping[int, AliasOutcome]
    aliased: int
    grown: int
    unpinned: int


def explain_aliases(none: Buffers, donating: Buffers, signature: Signature, grown: int | None = None) -> Aliasing:
    """Every aliased argument of `donating`, held against `none`, the same program with donation stripped.

    `grown` is by how much XLA itself says that temporaries grew, None to take it from the buffers.
    """
    flow, plain = Flow(donating), Flow(none)
    pairs = aliased_pairs(flow)
    copies = _without_donation_too(find_copies(flow), plain)
    if grown is None:
        grown = _temporaries(donating) - _temporaries(none)
    sizes = {argument: flow.arguments[argument].nbytes for argument, _ in pairs}
    costs = _costs(donating, copies, sizes, grown)
    slack = _NOISE + _NEGLIGIBLE * sum(sizes.values())
    saved_by_all = max(0, sum(sizes.values()) - grown)
    unpinned = max(0, grown - sum(cost or 0 for cost in costs.values()))
    reasons = Reasons(flow, signature, copies)
    arguments = {leaf.position: leaf.index for leaf in signature.arguments if leaf.position is not None}
    results = {leaf.position: leaf.index for leaf in signature.results if leaf.position is not None}
    outcomes: dict[int, AliasOutcome] = {}
    for argument, result in pairs:
        if argument not in arguments or result not in results or not sizes[argument]:
            continue
        mine = tuple(copy for copy in copies if copy.argument == argument)
        cost = costs.get(argument, 0)
        saved = None if cost is None else sizes[argument] - cost
        if saved is not None and abs(saved) <= _NOISE < sizes[argument]:
            saved = 0
        if saved is not None and saved > saved_by_all + slack:
            saved = None if saved_by_all > slack else 0
        real = any(copy.kind is not Kind.DISPLACED for copy in mine)
        # temporaries grew by more than copies explain: whose doing that is only another compile could tell
        unclear = unpinned > slack and saved_by_all > slack and len(pairs) > 1
        if unclear and saved == 0 and not real:
            saved = None
        outcomes[arguments[argument]] = AliasOutcome(
            argument=arguments[argument],
            result=results[result],
            nbytes=sizes[argument],
            saved=saved,
            at_most=unclear and bool(saved),
            sentence=reasons.sentence(mine, sizes[argument], saved, grown, unpinned if unclear else 0),
            advice=reasons.advice(mine) if saved == 0 else "",
            copies=mine,
        )
    return Aliasing(outcomes, sum(sizes.values()), grown, unpinned)


def _costs(donating: Buffers, copies: list[Copy], sizes: Mapping[int, int], grown: int) -> dict[int, int | None]:
    """What each argument's aliasing costs in temporaries; None where that cannot be told from the others' costs."""
    if grown <= _NOISE + _NEGLIGIBLE * sum(sizes.values()):
        return {}
    pinned = {argument: min(cost, sizes[argument]) for argument, cost in _pinned(donating, copies).items()}
    rest = grown - sum(pinned.values())
    if rest < -_NOISE:
        return dict.fromkeys(pinned, None) if len(pinned) > 1 else dict.fromkeys(pinned, grown)
    left = {argument: size - pinned.get(argument, 0) for argument, size in sizes.items()}
    largest = max(left, key=lambda argument: left[argument], default=None)
    if largest is not None and rest > _NOISE and sum(left.values()) - left[largest] <= rest * _SMALL:
        # all the others together are too small to have made the temporaries grow as much
        pinned[largest] = pinned.get(largest, 0) + rest
    return dict(pinned)


def _temporaries(buffers: Buffers) -> int:
    return sum(piece.nbytes for piece in buffers.allocations if piece.kind == "temp" and piece.color == 0)


def _without_donation_too(copies: list[Copy], plain: Flow) -> list[Copy]:
    """The copies that the program without donation does not make: of an argument's old value, or of a result."""
    is_temporary = {piece.index: piece.kind == "temp" for piece in plain.buffers.allocations}
    there: Counter[tuple[Kind, int, bool]] = Counter()
    for position, buffer in plain.arguments.items():
        there.update((Kind.KEPT, position, is_temporary[copy.allocation]) for copy in plain.copies(buffer))
    for position, buffer in plain.results.items():
        made = plain.copied(buffer)
        if made is not None:
            there[Kind.MOVED, position, is_temporary[made.allocation]] += 1
    kept: list[Copy] = []
    for copy in copies:
        key = copy.kind, copy.argument if copy.kind is Kind.KEPT else copy.result, copy.is_temporary
        if there[key] > 0:
            there[key] -= 1
        else:
            kept.append(copy)
    return kept


def _pinned(buffers: Buffers, copies: list[Copy]) -> dict[int, int]:
    """By argument, the bytes of its copies that lie in the temporaries' memory when that is fullest."""
    temporary = {piece.index for piece in buffers.allocations if piece.kind == "temp" and piece.color == 0}
    length = len(buffers.schedule)
    steps = np.zeros(length + 1, np.int64)
    for buffer in buffers.live_ranges:
        if buffer.allocation in temporary:
            steps[buffer.start] += buffer.nbytes
            steps[min(buffer.end, length - 1) + 1] -= buffer.nbytes
    fullest = int(np.argmax(np.cumsum(steps)[:-1]))
    costs: defaultdict[int, int] = defaultdict(int)
    for copy in copies:
        if copy.is_temporary and copy.buffer.start <= fullest <= copy.buffer.end:
            costs[copy.argument] += copy.nbytes
    return dict(costs)
