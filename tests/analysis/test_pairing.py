from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from analysis import straight_line
from donation_inspector.analysis.dataflow import Dataflow
from donation_inspector.analysis.interference import Interference, Level
from donation_inspector.analysis.pairing import COSTS, assign, find_cycle, pair_by_live_range
from passes.programs import parse_entry

TUNED_ON = range(300)
"""Programs that were looked at while the rules were written."""
JUDGED_ON = range(10_000, 11_000)
"""Programs that the rules are judged by, and that were not."""


def pairs_of(seed: int) -> tuple[straight_line.FuncOp, dict[int, int]]:
    func = straight_line.program(seed)
    ModuleOp([func])
    return func, pair_by_live_range(func)


def test_the_programs_judged_by_are_others_than_those_tuned_on() -> None:
    assert not set(TUNED_ON) & set(JUDGED_ON)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(JUDGED_ON))
def test_there_is_an_order_in_which_every_buffer_is_taken_after_its_last_use(seed: int) -> None:
    func, pairs = pairs_of(seed)
    assert straight_line.fit_together(func, pairs.items())
    assert len(set(pairs.values())) == len(pairs)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(JUDGED_ON))
def test_as_many_are_paired_as_the_best_order_and_assignment_allow(seed: int) -> None:
    func, pairs = pairs_of(seed)
    assert len(pairs) == straight_line.most_pairs(func)


class Levels(Interference):
    """Levels as given instead of found."""

    def __init__(self, levels: Mapping[tuple[int, int], Level], blocked_by: Mapping[tuple[int, int], int] = {}) -> None:
        self.given, self.blocked = levels, blocked_by

    def level(self, argument: int, result: int) -> Level:
        return self.given[argument, result]

    def blocked_by(self, argument: int, result: int) -> int:
        return self.blocked.get((argument, result), 0)


@st.composite
def levels(draw: st.DrawFn) -> tuple[int, int, Levels]:
    arguments, results = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    pairs = [(a, r) for a in range(arguments) for r in range(results)]
    few = st.sampled_from(draw(st.sets(st.sampled_from(Level), min_size=1, max_size=3).map(sorted)))  # so that some tie
    return arguments, results, Levels({pair: draw(few) for pair in pairs})


@settings(deadline=None)
@given(levels())
def test_no_assignment_of_all_there_are_is_cheaper(drawn: tuple[int, int, Levels]) -> None:
    arguments, results, interference = drawn
    made = assign(interference, range(arguments), range(results))
    assert all(interference.level(*pair) is not Level.COPIED for pair in made.items())

    def rank(pairs: Mapping[int, int]) -> tuple[int, int, int]:
        """Most pairs first, then the cheapest, then those in order."""
        costs = [COSTS[interference.level(*pair)] for pair in pairs.items()]
        return -len(pairs), sum(costs), sum(argument != result for argument, result in pairs.items())

    def every(argument: int, taken: frozenset[int]) -> list[dict[int, int]]:
        if argument == arguments:
            return [{}]
        found = every(argument + 1, taken)
        for result in set(range(results)) - taken:
            if interference.level(argument, result) is not Level.COPIED:
                found += [{argument: result, **rest} for rest in every(argument + 1, taken | {result})]
        return found

    best = min(rank(pairs) for pairs in every(0, frozenset()))
    assert rank(made) == best


def test_a_tie_goes_to_first_in_first_out() -> None:
    alike = Levels({(a, r): Level.BEFORE for a in range(3) for r in range(3)})
    assert assign(alike, [0, 1, 2], [0, 1, 2]) == {0: 0, 1: 1, 2: 2}


def test_a_pair_that_is_left_out_does_not_count_as_out_of_order() -> None:
    possible = {(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)}
    rows = Levels({(a, r): Level.BEFORE if (a, r) in possible else Level.COPIED for a in range(3) for r in range(3)})
    assert assign(rows, [0, 1, 2], [0, 1, 2]) == {0: 0, 2: 1}


def test_what_is_forbidden_is_not_paired() -> None:
    alike = Levels({(a, r): Level.BEFORE for a in range(2) for r in range(2)})
    assert assign(alike, [0, 1], [0, 1], {(0, 0)}) == {0: 1, 1: 0}


@settings(deadline=None)
@given(st.integers(1, 5), st.data())
def test_a_cycle_is_found_where_there_is_one(count: int, data: st.DataObject) -> None:
    pairs = {position: position for position in range(count)}
    waits = {(n, n): data.draw(st.integers(0, 2**count - 1)) for n in range(count)}
    cycle = find_cycle(Levels({}, waits), pairs)

    reach = np.array([[waits[a, a] >> b & 1 for b in range(count)] for a in range(count)], bool)
    for _ in range(count):
        reach |= (reach.astype(int) @ reach.astype(int)).astype(bool)
    assert bool(cycle) == bool(reach.diagonal().any())
    following = [*cycle[1:], *cycle[:1]]
    assert all(waits[pair] >> next_[1] & 1 for pair, next_ in zip(cycle, following, strict=True))


def levels_of(body: str, arguments: int = 2, results: int = 1, types: str = "tensor<4xf32>") -> list[list[str]]:
    """The level of each pair of an argument (%a, %b, …) and a result of this body."""
    names = [f"%{name}" for name in "abcd"[:arguments]]
    func, _ = parse_entry(
        f"func.func @main({', '.join(f'{name}: {types}' for name in names)}) -> ({', '.join([types] * results)}) {{\n"
        f"{body.replace('T', types)}\n}}"
    )
    interference = Interference(Dataflow(func))
    return [[interference.level(a, r).name for r in range(results)] for a in range(arguments)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("func.return %a : T", [["IN_PLACE"], ["IN_PLACE"]]),
        (
            '%r = "stablehlo.add"(%a, %b) : (T, T) -> T\nfunc.return %r : T',
            [["IN_PLACE"], ["IN_PLACE"]],
        ),
        (
            '%r = "stablehlo.dot_general"(%a, %a) : (T, T) -> T\nfunc.return %r : T',
            [["COPIED"], ["IN_PLACE"]],
        ),
        (
            # elementwise and data movement run in the product, which reads %a itself
            '%x = "stablehlo.transpose"(%a) : (T) -> T\n%r = "stablehlo.add"(%x, %b) : (T, T) -> T\nfunc.return %r : T',
            [["MIXED"], ["IN_PLACE"]],
        ),
        (
            '%x = "stablehlo.dot_general"(%a, %b) : (T, T) -> T\n'
            '%r = "stablehlo.dot_general"(%x, %x) : (T, T) -> T\nfunc.return %r : T',
            [["ORDERED"], ["ORDERED"]],
        ),
        (
            '%r = "stablehlo.constant"() : () -> T\nfunc.return %r : T',
            [["IN_PLACE"], ["IN_PLACE"]],
        ),
    ],
)
def test_levels_of_one_result(body: str, expected: list[list[str]]) -> None:
    assert levels_of(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            # one kernel can write both over %a
            '%r = "stablehlo.add"(%a, %b) : (T, T) -> T\n%s = "stablehlo.subtract"(%a, %b) : (T, T) -> T\n'
            "func.return %r, %s : T, T",
            [["TOGETHER", "TOGETHER"], ["TOGETHER", "TOGETHER"]],
        ),
        (
            '%r = "stablehlo.dot_general"(%b, %b) : (T, T) -> T\n%s = "stablehlo.dot_general"(%a, %a) : (T, T) -> T\n'
            "func.return %r, %s : T, T",
            [["AFTER", "COPIED"], ["COPIED", "BEFORE"]],
        ),
        (
            # the second result waits for the first, which reads %a as well
            '%r = "stablehlo.negate"(%a) : (T) -> T\n%s = "stablehlo.add"(%r, %a) : (T, T) -> T\n'
            "func.return %r, %s : T, T",
            [["COPIED", "ORDERED"], ["IN_PLACE", "IN_PLACE"]],
        ),
        (
            # %s depends on no argument, so it can be made last
            '%r = "stablehlo.sine"(%a) : (T) -> T\n%s = "stablehlo.iota"() : () -> T\nfunc.return %r, %s : T, T',
            [["IN_PLACE", "LAST"], ["IN_PLACE", "IN_PLACE"]],
        ),
        (
            '%r = "stablehlo.sine"(%a) : (T) -> T\n%s = "stablehlo.dynamic_update_slice"(%a, %b) : (T, T) -> T\n'
            "func.return %r, %s : T, T",
            [["AFTER", "UPDATED"], ["AFTER", "COPIED"]],
        ),
        (
            '%r = "stablehlo.sine"(%a) : (T) -> T\nfunc.return %r, %r : T, T',
            [["IN_PLACE", "LAST"], ["IN_PLACE", "IN_PLACE"]],
        ),
        ("func.return %b, %a : T, T", [["COPIED", "IN_PLACE"], ["IN_PLACE", "COPIED"]]),
    ],
)
def test_levels_of_two_results(body: str, expected: list[list[str]]) -> None:
    assert levels_of(body, results=2) == expected
