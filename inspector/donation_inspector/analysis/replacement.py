"""Which result comes back in an argument's place, as far as paths, types and dataflow tell.

Who calls a function again passes what came back, and for an argument in whose place nothing came back most likely what
was passed before: frozen parameters, a learning rate, a key, a batch that is looked at again.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from donation_inspector.analysis.interference import Interference
from donation_inspector.analysis.pairing import COSTS
from donation_inspector.analysis.successors import Successors
from donation_inspector.common.signature import Leaf, Signature

_CERTAIN_COPY = 1 + max(COSTS.values())
_Pair = tuple[Leaf, Leaf]
_MOST_PAIRS = 10_000
"""So many pairs of one type are ranked, at most."""


class _Rank(NamedTuple):
    """How far the results are the arguments' new values; the best sorts first."""

    unlikely: bool
    not_updated: float
    distance: float
    cost: float
    order: int
    results: tuple[int, ...]


def find_replacements(
    signature: Signature,
    successors: Successors,
    interference: Callable[[], Interference],
    unlikely: Set[int] = frozenset(),
) -> dict[int, int]:
    """The result that takes the place of each argument, by flat index; the others have none.

    What a framework says of a result (`Leaf.updates`) comes first. Then the largest trees: the leaves of an argument
    have results of their types under the same paths below one prefix. Of trees as large, those with more results that
    are updates of their arguments, element by element and on the shortest way. Then what is left of equal types, where
    it may be the argument's new value. A derivative never is, nor a tree in which nothing follows from the argument.
    `unlikely` are arguments that are replaced only where no other is. `interference` is asked for where several trees
    want the same, and for what is left.
    """
    return _Search(signature, successors, interference, unlikely).found


class _Search:
    def __init__(
        self,
        signature: Signature,
        successors: Successors,
        interference: Callable[[], Interference],
        unlikely: Set[int],
    ) -> None:
        self._signature, self._unlikely, self._ask = signature, unlikely, interference
        self._successors = successors
        self.found: dict[int, int] = {}
        by_path = {leaf.path: leaf for leaf in signature.arguments}
        for result in signature.results:
            if result.updates in by_path and not self._is_derivative((by_path[result.updates], result)):
                self.found.setdefault(by_path[result.updates].index, result.index)
        self._taken = set(self.found.values())
        self._take_trees()
        self._take_what_is_left()

    @cached_property
    def _interference(self) -> Interference:
        return self._ask()

    def _take_trees(self) -> None:
        def sort(tree: Sequence[_Pair]) -> tuple[int, bool]:
            return -len(tree), self._doubted(tree)

        following = [
            [pair for pair in tree if not self._is_derivative(pair)]
            for tree in _trees(self._signature)
            if any(map(self._may_follow, tree))
        ]
        for _, trees in itertools.groupby(sorted(following, key=sort), sort):
            free = [tree for tree in trees if any(map(self._is_free, tree))]
            if self._contested(free):
                free.sort(key=self._rank)
            for pair in itertools.chain(*free):
                self._take(pair)

    def _take_what_is_left(self) -> None:
        results = _by_type(result for result in self._signature.results if result.index not in self._taken)
        left = _by_type(argument for argument in self._signature.arguments if argument.index not in self.found)
        pairs: list[list[_Pair]] = []
        for type_, arguments in left.items():
            if len(arguments) * len(results[type_]) > _MOST_PAIRS:
                self._take_in_order(arguments, results[type_])
            else:
                pairs += [[(argument, result)] for argument in arguments for result in results[type_]]
        pairs = [pair for pair in pairs if self._may_be_its_value(*pair)]
        for (pair,) in sorted(pairs, key=self._rank if self._contested(pairs) else self._doubted):
            batch = pair[0].index in self._unlikely and not self._along(pair)
            # where a step gives back what it keeps, another value of a batch's type is an output
            if not batch or self._unlikely >= self.found.keys():
                self._take(pair)

    def _take_in_order(self, arguments: Sequence[Leaf], results: Sequence[Leaf]) -> None:
        """Each result the first argument that it follows element by element, else at all: of too many to rank them."""
        at = {argument.position: argument for argument in arguments if argument.position is not None}
        free = sum(1 << position for position in at)
        certain = sum(1 << position for position, argument in at.items() if argument.index not in self._unlikely)
        for result in results:
            if result.position is None:
                continue
            following = self._successors.followed_by(result.position, along=True) & free
            if not following and arguments[0].shape != ():
                following = self._successors.followed_by(result.position) & free & certain
            following = following & certain or following
            if following:
                first = (following & -following).bit_length() - 1
                self._take((at[first], result))
                free &= ~(1 << first)

    def _take(self, pair: _Pair) -> None:
        if self._is_free(pair):
            argument, result = pair
            self.found[argument.index] = result.index
            self._taken.add(result.index)

    def _is_free(self, pair: _Pair) -> bool:
        return pair[0].index not in self.found and pair[1].index not in self._taken

    def _contested(self, trees: Sequence[Sequence[_Pair]]) -> bool:
        """Whether it makes a difference which of the trees is taken first."""
        free = [pair for tree in trees for pair in tree if self._is_free(pair)]
        wanted = (Counter(pair[side].index for pair in free) for side in (0, 1))
        return any(max(counts.values(), default=0) > 1 for counts in wanted)

    def _doubted(self, pairs: Sequence[_Pair]) -> bool:
        return any(argument.index in self._unlikely for argument, _ in pairs)

    def _rank(self, pairs: Sequence[_Pair]) -> _Rank:
        interference, known = self._interference, list(_positions(pairs))
        distances = [self._successors.distance(*pair) for pair in known]
        updated = [far for far in distances if far < math.inf]
        cost = sum(COSTS.get(interference.level(*pair), _CERTAIN_COPY) for pair in known) / len(pairs)
        order = pairs[0][0].index
        results = tuple(result.index for _, result in pairs)
        not_updated = 1 - len(updated) / len(pairs)
        return _Rank(self._doubted(pairs), not_updated, statistics.fmean(updated or [0]), cost, order, results)

    def _may_be_its_value(self, pair: _Pair) -> bool:
        """Whether a result of the argument's type can be its new value, which is made from the old one.

        A number's is made element by element. What comes of a learning rate by way of arrays, as a loss, is no such.
        """
        argument, _ = pair
        if argument.shape == () and not argument.dtype.startswith("key<"):
            return self._along(pair)
        return self._may_follow(pair)

    def _may_follow(self, pair: _Pair) -> bool:
        return all(self._successors.may_follow(*known) for known in _positions([pair]))

    def _is_derivative(self, pair: _Pair) -> bool:
        return any(self._successors.is_derivative(*known) for known in _positions([pair]))

    def _along(self, pair: _Pair) -> bool:
        return all(self._interference.depends(*known, along=True) for known in _positions([pair]))


def _trees(signature: Signature) -> Iterator[list[_Pair]]:
    """The leaves of each whole argument with the results of their types that have the same paths below one prefix."""
    # a bare array has no structure that a result could have too
    inside = {leaf.index: leaf.path.removeprefix(leaf.root) for leaf in signature.arguments}
    starts = {path[0] for path in inside.values() if path}
    ending: defaultdict[Hashable, list[Leaf]] = defaultdict(list)
    for result in signature.results:
        for at, character in enumerate(result.path):
            if character in starts:
                ending[_type(result), result.path[at:]].append(result)
    trees: defaultdict[tuple[str, str], list[_Pair]] = defaultdict(list)
    for argument in signature.arguments:
        path = inside[argument.index]
        for result in ending.get((_type(argument), path), ()):
            trees[argument.root, result.path.removesuffix(path)].append((argument, result))
    yield from trees.values()


def _by_type(leaves: Iterable[Leaf]) -> defaultdict[Hashable, list[Leaf]]:
    found: defaultdict[Hashable, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        found[_type(leaf)].append(leaf)
    return found


def _positions(pairs: Sequence[_Pair]) -> Iterator[tuple[int, int]]:
    """Those of the pairs that stand in the program."""
    for argument, result in pairs:
        if argument.position is not None and result.position is not None:
            yield argument.position, result.position


def _type(leaf: Leaf) -> Hashable:
    return leaf.shape, leaf.dtype
