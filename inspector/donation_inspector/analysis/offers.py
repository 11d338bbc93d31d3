"""Which free result could take over the buffer of which argument that is not donated: each result takes one."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Mapping, Set

from donation_inspector.analysis.paths import argument_name, result_names
from donation_inspector.common.signature import Leaf, Shape, Signature


def find_offers(
    signature: Signature, taken: Set[int], donated: Set[int], replaced: Mapping[int, int]
) -> dict[int, Leaf]:
    """From the flat index of an argument to the result, with dtype and per-device shape as the argument has them.

    Where a result's sharding is left to XLA, its dtype and shape. `taken` are the indices of results that have a
    buffer, `donated` of arguments that are donated. The arguments that `replaced` gives a result, their own new value,
    go first; then the largest. Zero bytes, which save nothing, and dynamic shapes, which no result is known to fit, are
    left out.
    """
    free: defaultdict[Hashable, deque[Leaf]] = defaultdict(deque)
    for result in signature.results:
        if result.index not in taken and (key := _key_of_result(result)) is not None:
            free[key].append(result)
    offers: dict[int, Leaf] = {}
    asking = [leaf for leaf in signature.arguments if _asks(leaf) and leaf.index not in donated]
    for leaf in sorted(asking, key=lambda leaf: (leaf.index not in replaced, -(leaf.nbytes or 0))):
        matching = next((free[key] for key in _keys_of_argument(leaf) if free.get(key)), None)
        if matching:
            offers[leaf.index] = best = max(matching, key=lambda one: _preference(leaf, one, replaced))
            matching.remove(best)
    return offers


def _preference(leaf: Leaf, result: Leaf, replaced: Mapping[int, int]) -> tuple[bool, bool]:
    """Its own new value, else the result that has its name; of those that are alike, `max` takes the first."""
    return result.index == replaced.get(leaf.index), argument_name(leaf) in result_names(result)


def _asks(leaf: Leaf) -> bool:
    return leaf.position is not None and leaf.nbytes != 0


def _key_of_result(leaf: Leaf) -> Hashable | None:
    if _is_static(leaf.shard_shape):
        return "placed", leaf.shard_shape, leaf.dtype
    # several devices, and its sharding left to XLA; a scalar is alike everywhere
    return ("left", leaf.shape, leaf.dtype) if _is_static(leaf.shape) else None


def _keys_of_argument(leaf: Leaf) -> list[Hashable]:
    kinds = (("placed", leaf.shard_shape), ("left", leaf.shape))
    return [(kind, shape, leaf.dtype) for kind, shape in kinds if _is_static(shape)]


def _is_static(shape: Shape) -> bool:
    return None not in shape
