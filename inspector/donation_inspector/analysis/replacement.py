"""Which result comes back in an argument's place, as far as paths, types and dataflow tell.

Who calls a function again passes what came back, and for an argument in whose place nothing came back most likely what
was passed before: frozen parameters, a key, a batch that is looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Set
from typing import NamedTuple

from donation_inspector.analysis.interference import Interference
from donation_inspector.analysis.pairing import COSTS
from donation_inspector.signature import Leaf, Signature

_CERTAIN_COPY = 1 + max(COSTS.values())


class _Tree(NamedTuple):
    """Leaves of one argument and the results with the same paths below one prefix; the best sort first."""

    fewer: int
    unlikely: bool
    cost: float
    order: int
    pairs: tuple[tuple[int, int], ...]


def find_replacements(
    signature: Signature, interference: Interference, unlikely: Set[int] = frozenset()
) -> dict[int, int]:
    """The result that takes the place of each argument, by flat index; the others have none.

    What a framework says of a result (`Leaf.updates`) comes first. Then the largest trees: the leaves of an argument
    have results of their types under the same paths below one prefix. Of trees as large, those that are computed from
    the argument in the way of an update. Then what is left of equal types. `unlikely` are arguments that are replaced
    only where nothing else is.
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
            pair = argument, result
            if result.path.endswith(inside):
                alike[argument.root, result.path.removesuffix(inside)].append(pair)
            yield _tree(0, [pair], interference, unlikely)
    for pairs in alike.values():
        yield _tree(len(pairs), pairs, interference, unlikely)


def _tree(size: int, pairs: Iterable[tuple[Leaf, Leaf]], interference: Interference, unlikely: Set[int]) -> _Tree:
    indices = tuple((argument.index, result.index) for argument, result in pairs)
    cost = sum(_cost(interference, *pair) for pair in pairs) / len(indices)
    return _Tree(-size, any(argument in unlikely for argument, _ in indices), cost, indices[0][0], indices)


def _cost(interference: Interference, argument: Leaf, result: Leaf) -> int:
    if argument.position is None or result.position is None:
        return _CERTAIN_COPY
    return COSTS.get(interference.level(argument.position, result.position), _CERTAIN_COPY)


def _type(leaf: Leaf) -> Hashable:
    return leaf.shape, leaf.dtype
