"""Which result comes back in an argument's place, as far as paths, types and dataflow tell.

Who calls a function again passes what came back, and for an argument in whose place nothing came back most likely what
was passed before: frozen parameters, a key, a batch that is looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence, Set
from typing import NamedTuple

from donation_inspector.analysis.interference import Interference
from donation_inspector.analysis.pairing import COSTS
from donation_inspector.signature import Leaf, Signature

_CERTAIN_COPY = 1 + max(COSTS.values())


class _Tree(NamedTuple):
    """Leaves of one argument and the results with the same paths below one prefix; the best sort first."""

    fewer: int
    unlikely: bool
    not_updated: float
    cost: float
    order: int
    pairs: tuple[tuple[int, int], ...]


def find_replacements(
    signature: Signature, interference: Interference, unlikely: Set[int] = frozenset()
) -> dict[int, int]:
    """The result that takes the place of each argument, by flat index; the others have none.

    What a framework says of a result (`Leaf.updates`) comes first. Then the largest trees: the leaves of an argument
    have results of their types under the same paths below one prefix. Of trees as large, those with more results that
    are updates of their arguments. Then what is left of equal types. `unlikely` are arguments that are replaced only
    where no other is.
    """
    found: dict[int, int] = {}
    by_path = {leaf.path: leaf.index for leaf in signature.arguments}
    for result in signature.results:
        if result.updates in by_path:
            found.setdefault(by_path[result.updates], result.index)
    taken = set(found.values())
    for tree in sorted(_trees(signature, interference, unlikely)):
        for argument, result in tree.pairs:
            if argument not in found and result not in taken:
                found[argument] = result
                taken.add(result)
    return found


def _trees(signature: Signature, interference: Interference, unlikely: Set[int]) -> Iterator[_Tree]:
    results = defaultdict[Hashable, list[Leaf]](list)
    for result in signature.results:
        results[_type(result)].append(result)
    alike: defaultdict[tuple[str, str], list[tuple[Leaf, Leaf]]] = defaultdict(list)
    for argument in signature.arguments:
        inside = argument.path.removeprefix(argument.root)
        for result in results[_type(argument)]:
            # a bare array has no structure that a result could have too
            if inside and result.path.endswith(inside):
                alike[argument.root, result.path.removesuffix(inside)].append((argument, result))
            yield _tree(0, [(argument, result)], interference, unlikely)
    for pairs in alike.values():
        yield _tree(len(pairs), pairs, interference, unlikely)


def _tree(size: int, pairs: Sequence[tuple[Leaf, Leaf]], interference: Interference, unlikely: Set[int]) -> _Tree:
    doubted = any(argument.index in unlikely for argument, _ in pairs)
    positions = [(argument.position, result.position) for argument, result in pairs]
    known = [(a, r) for a, r in positions if a is not None and r is not None]
    updated = sum(interference.updates(*pair) for pair in known)
    cost = sum(COSTS.get(interference.level(*pair), _CERTAIN_COPY) for pair in known) / len(pairs)
    indices = tuple((argument.index, result.index) for argument, result in pairs)
    return _Tree(-size, doubted, 1 - updated / len(pairs), cost, indices[0][0], indices)


def _type(leaf: Leaf) -> Hashable:
    return leaf.shape, leaf.dtype
