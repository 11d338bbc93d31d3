import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.functions import (
    SIZES,
    Generated,
    multi_block_functions,
    own_operations,
    own_values,
    parse,
    single_block_functions,
)
from analysis.test_live_range import STEP, donations, expected_points
from donation_inspector.analysis.live_range import LiveRanges
from donation_inspector.analysis.memory import curve


def test_operands_and_results_of_an_operation_are_live_while_it_runs() -> None:
    memory = curve(LiveRanges(parse(STEP)))
    # the arguments take 65 bytes throughout; a constant of 4; %s, %new and %dead of 32 each
    assert memory.bytes.tolist() == [69, 101, 129, 161, 97, 97]
    assert memory.bytes.dtype == np.int64
    assert (memory.peak, memory.peak_at) == (161, 3)
    assert memory.unknown == 1


def test_donated_arguments_make_room_after_their_last_use() -> None:
    memory = curve(LiveRanges(parse(STEP), donated={0, 1}))
    assert memory.bytes.tolist() == [69, 101, 97, 97, 33, 33]
    assert (memory.peak, memory.peak_at) == (101, 1)


def test_the_peak_is_the_earliest_maximum() -> None:
    func = parse("""
        func.func @main() {
          %a = "test.op"() : () -> tensor<2xf32>
          %b = "test.op"() : () -> tensor<2xf32>
          func.return
        }
    """)
    memory = curve(LiveRanges(func))
    assert memory.bytes.tolist() == [8, 8, 0]
    assert memory.peak_at == 0


def test_what_is_live_comes_most_bytes_first_and_unknown_sizes_last() -> None:
    memory = curve(LiveRanges(parse(STEP)))
    assert [range_.value for range_ in memory.live_at(4)] == ["%arg0", "%arg1", "%1", "%arg2", "%3"]


@pytest.mark.parametrize("operation", [-1, 6])
def test_there_is_nothing_live_at_an_operation_that_does_not_exist(operation: int) -> None:
    with pytest.raises(IndexError, match="the function has 6"):
        curve(LiveRanges(parse(STEP))).live_at(operation)


def test_only_one_branch_counts_at_a_time() -> None:
    func = parse("""
        func.func @main(%x: tensor<2xf32>) {
          %big = "test.op"() : () -> tensor<100xf32>
          "test.termop"() [^left, ^right] : () -> ()
        ^left:
          "test.op"() : () -> ()
          func.return
        ^right:
          "test.op"(%big) : (tensor<100xf32>) -> ()
          func.return
        }
    """)
    ranges = LiveRanges(func, donated={0})
    assert (ranges[1].start, ranges[1].end) == (0, 4)
    assert curve(ranges).bytes.tolist() == [408, 400, 0, 0, 400, 0]


@settings(deadline=None)
@given(st.one_of(single_block_functions(), multi_block_functions()), st.data())
def test_the_curve_is_the_sum_over_what_a_search_over_paths_finds(generated: Generated, data: st.DataObject) -> None:
    func = generated.func
    donated = donations(func, data)
    memory = curve(LiveRanges(func).with_donated(donated))
    points = expected_points(func, donated)
    live = [
        [value for value in own_values(func) if operation in points[value]]
        for operation in range(len(own_operations(func)))
    ]
    expected = [sum(SIZES[value.type] or 0 for value in values) for values in live]
    assert memory.bytes.tolist() == expected
    assert memory.peak == max(expected)
    assert memory.peak_at == expected.index(max(expected))
    assert memory.unknown == sum(SIZES[value.type] is None for value in own_values(func))
    for operation, values in enumerate(live):
        shown = memory.live_at(operation)
        assert sorted(str(range_.nbytes) for range_ in shown) == sorted(str(SIZES[value.type]) for value in values)
        sizes = [-1 if range_.nbytes is None else range_.nbytes for range_ in shown]
        assert sizes == sorted(sizes, reverse=True)
