"""First in, first out: the pairing of donated arguments with results where no JAX lowering is there to ask.

A file has no lowering behind it. JAX pairs the first donated argument of a type with the first free result of that
type (`_set_up_aliases` in jax/_src/interpreters/mlir.py); so does this, and keeps what the file itself says.
"""

from __future__ import annotations

from collections import defaultdict, deque
from types import MappingProxyType

from donation_inspector.common.signature import Donation, Leaf, Shape, Signature


def pair_in_order(signature: Signature, written: Donation, leaves: frozenset[int]) -> Donation:
    """Donation of exactly `leaves`: as `written` where it speaks of them, first in, first out for the others."""
    positions = {leaf.position for leaf in signature.arguments if leaf.index in leaves} - {None}
    aliases = {argument: result for argument, result in written.aliases.items() if argument in positions}
    donors = written.donors & positions
    free: dict[tuple[Shape, Shape, str], deque[int]] = defaultdict(deque)
    for leaf in signature.results:
        if leaf.position is not None and leaf.position not in aliases.values():
            free[_type(leaf)].append(leaf.position)
    for leaf in signature.arguments:
        if leaf.index in leaves and leaf.position is not None and leaf.position not in {*aliases, *donors}:
            fitting = free[_type(leaf)]
            # A dynamic size may differ at run time: nothing is known to fit it.
            if fitting and None not in leaf.shape:
                aliases[leaf.position] = fitting.popleft()
    return Donation(MappingProxyType(aliases), frozenset(donors))


def _type(leaf: Leaf) -> tuple[Shape, Shape, str]:
    return leaf.shape, leaf.shard_shape, leaf.dtype
