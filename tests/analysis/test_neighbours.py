from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from analysis import straight_line
from donation_inspector.analysis.dataflow import Dataflow
from donation_inspector.analysis.interference import Interference, Level
from donation_inspector.analysis.neighbours import (
    EqualBuffers,
    Promise,
    count_pairings,
    every_pairing,
    find_classes,
)
from donation_inspector.common.signature import Leaf, Signature


def leaf(position: int | None, dtype: str = "float32", shape: tuple[int | None, ...] = (4,), **more: object) -> Leaf:
    nbytes = None if None in shape else 4 * (shape[0] or 0)
    return Leaf(0, "", shape, dtype, nbytes, shape, nbytes, position, **more)  # pyright: ignore[reportArgumentType]


def by_hand(one: EqualBuffers) -> set[frozenset[tuple[int, int]]]:
    """Every subset of argument × result in which nothing stands twice."""
    cells = list(itertools.product(one.arguments, one.results))
    subsets = itertools.chain.from_iterable(itertools.combinations(cells, k) for k in range(one.most + 1))
    return {
        frozenset(pairs)
        for pairs in subsets
        if len({argument for argument, _ in pairs}) == len({result for _, result in pairs}) == len(pairs)
    }


class Levels(Interference):
    """Levels as given, BEFORE where none is."""

    def __init__(self, levels: Mapping[tuple[int, int], Level] = {}) -> None:
        self.given = levels

    def level(self, argument: int, result: int) -> Level:
        return self.given.get((argument, result), Level.BEFORE)

    def blocked_by(self, argument: int, result: int) -> int:  # noqa: ARG002
        return 0


classes = st.tuples(st.integers(1, 3), st.integers(1, 3)).map(
    lambda sizes: EqualBuffers(tuple(range(sizes[0])), tuple(range(10, 10 + sizes[1])), 64)
)


@given(classes)
def test_every_pairing_is_there_once(one: EqualBuffers) -> None:
    found = [frozenset(pairs.items()) for pairs in every_pairing([one])]
    assert set(found) == by_hand(one)
    assert len(found) == len(set(found)) == one.ways


def test_classes_are_paired_apart_from_each_other() -> None:
    both = EqualBuffers((0, 1), (0,), 64), EqualBuffers((2,), (1, 2), 8)
    found = {frozenset(pairs.items()) for pairs in every_pairing(both)}
    assert found == {a | b for a in by_hand(both[0]) for b in by_hand(both[1])}
    assert count_pairings(both) == len(found) == 9
    assert list(every_pairing([])) == [{}]


def _one_change_apart(before: Mapping[int, int], after: Mapping[int, int]) -> bool:
    """One argument has another result or none, and only who had that result has what became free."""
    changed = {argument for argument in before.keys() | after.keys() if before.get(argument) != after.get(argument)}
    if len(changed) == 1:
        return True
    if len(changed) != 2:
        return False
    one, other = changed
    return (before.get(one), before.get(other)) == (after.get(other), after.get(one))


@given(classes, st.data())
def test_neighbours_are_all_that_are_one_change_apart(one: EqualBuffers, data: st.DataObject) -> None:
    every = list(every_pairing([one]))
    start = data.draw(st.sampled_from(every))
    found = [frozenset(pairs.items()) for pairs in Promise(Levels(), [one]).neighbours(start)]
    assert len(found) == len(set(found))
    assert set(found) == {
        frozenset(pairs.items()) for pairs in every if pairs != start and _one_change_apart(start, pairs)
    }


@given(st.lists(st.sampled_from(Level), min_size=9, max_size=9), st.data())
def test_the_cheapest_neighbours_come_first(levels: Sequence[Level], data: st.DataObject) -> None:
    one = EqualBuffers((0, 1, 2), (0, 1, 2), 64)
    promise = Promise(Levels(dict(zip(itertools.product(range(3), range(3)), levels, strict=True))), [one])
    start = data.draw(st.sampled_from(list(every_pairing([one]))))
    costs = [promise.cost(pairs) for pairs in promise.neighbours(start)]
    assert costs == pytest.approx(sorted(costs))


def test_a_pair_that_copies_costs_more_than_to_leave_the_argument_out() -> None:
    levels = {(0, 0): Level.COPIED, (0, 1): Level.COPIED, (1, 0): Level.IN_PLACE}
    promise = Promise(Levels(levels), [EqualBuffers((0, 1), (0, 1), 100)])
    assert promise.cost({0: 0}) > promise.cost({}) > promise.cost({1: 0}) == 100
    assert promise.ranked()[0] == promise.by_live_range() == {1: 0}


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 300))
def test_by_live_range_is_the_cheapest_of_all(seed: int) -> None:
    func = straight_line.program(seed)
    ModuleOp([func])
    donated = tuple(range(len(func.args) - 1))
    one = EqualBuffers(donated, tuple(range(len(func.function_type.outputs))), 64)
    promise = Promise(Interference(Dataflow(func)), [one])
    made = promise.by_live_range()
    complete = [pairs for pairs in every_pairing([one]) if len(pairs) == len(made)]
    assert promise.cost(made) == pytest.approx(min(map(promise.cost, complete)))
    assert straight_line.fit_together(func, made.items())


def test_classes_are_of_what_jax_can_pair() -> None:
    signature = Signature(
        (
            leaf(0),
            leaf(1),
            leaf(2, "int32"),
            leaf(3, shape=(8,)),
            leaf(4, memory="pinned_host"),
            leaf(None),
            leaf(5, shape=(0,)),
            leaf(6, shape=(None,)),
            leaf(7, layout="auto"),
            leaf(8, layout="default"),
        ),
        (leaf(0), leaf(1, shape=(8,)), leaf(2, shape=(0,)), leaf(3, shape=(None,)), leaf(None)),
    )
    everything = frozenset(range(9))
    assert find_classes(signature, everything) == (EqualBuffers((3,), (1,), 32), EqualBuffers((0, 1, 8), (0,), 16))
    assert find_classes(signature, frozenset({1, 2})) == (EqualBuffers((1,), (0,), 16),)


def test_across_types_equal_bytes_of_what_is_left_are_paired() -> None:
    signature = Signature(
        (leaf(0), leaf(1, "int32"), leaf(2, shape=(8,))), (leaf(0), leaf(1, "uint32"), leaf(2, shape=(2,)))
    )
    promise = Promise(Levels(), find_classes(signature, frozenset({0, 1, 2})))
    assert promise.across_types(signature, frozenset({0, 1, 2}), {0: 0}) == {0: 0, 1: 1}
    assert promise.across_types(signature, frozenset({0}), {0: 0}) == {0: 0}
    assert promise.across_types(signature, frozenset({1, 2}), {}) in ({1: 0}, {1: 1})
