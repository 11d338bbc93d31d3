import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from analysis.functions import (
    SIZES,
    Generated,
    live_points,
    multi_block_functions,
    own_operations,
    own_values,
    parse,
    single_block_functions,
)
from donation_inspector.analysis.live_range import KINDS, LiveRange, LiveRanges
from donation_inspector.errors import IRError

STEP = """
func.func @main(%w: tensor<4x2xf32>, %g: tensor<4x2xf32>, %unused: tensor<i8>) -> (tensor<4x2xf32>, tensor<?xf32>) {
  %lr = "stablehlo.constant"() {value = "0.1"} : () -> tensor<f32>
  %s = "test.op"(%lr, %g) : (tensor<f32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %new = "test.op"(%w, %s) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %dead = "test.op"(%s) : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %dyn = "test.op"() : () -> tensor<?xf32>
  func.return %new, %dyn : tensor<4x2xf32>, tensor<?xf32>
}
"""


def test_every_value_has_its_range() -> None:
    ranges = LiveRanges(parse(STEP), names={0: "params['w']"})
    matrix = ((4, 2), "float32", 32)
    assert tuple(ranges) == (
        LiveRange("params['w']", "argument", *matrix, start=0, end=5, source=None),
        LiveRange("%arg1", "argument", *matrix, start=0, end=5, source=None),
        LiveRange("%arg2", "argument", (), "int8", 1, start=0, end=5, source=None),
        LiveRange("%cst", "constant", (), "float32", 4, start=0, end=1, source=None),
        LiveRange("%0", "temporary", *matrix, start=1, end=3, source=None),
        LiveRange("%1", "result", *matrix, start=2, end=5, source=None),
        LiveRange("%2", "temporary", *matrix, start=3, end=3, source=None),
        LiveRange("%3", "result", (None,), "float32", None, start=4, end=5, source=None),
    )


def test_a_donated_argument_ends_at_its_last_use_and_one_without_use_at_operation_0() -> None:
    ranges = LiveRanges(parse(STEP), donated={0, 1, 2})
    assert [(range_.start, range_.end) for range_ in ranges[:3]] == [(0, 2), (0, 1), (0, 0)]


def test_toggling_changes_the_ends_of_arguments_alone() -> None:
    kept = LiveRanges(parse(STEP))
    donated = kept.with_donated([0])
    assert donated.nbytes is kept.nbytes
    assert donated.names is kept.names
    assert donated.liveness is kept.liveness
    assert donated.start.tolist() == kept.start.tolist()
    assert donated.end.tolist() == [2, *kept.end.tolist()[1:]]
    assert tuple(donated.with_donated(())) == tuple(kept)


def test_an_argument_returned_unchanged_is_one_value_that_lives_to_the_end() -> None:
    func = parse("""
        func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
          %y = "test.op"(%x) : (tensor<2xf32>) -> tensor<2xf32>
          func.return %x, %x : tensor<2xf32>, tensor<2xf32>
        }
    """)
    ranges = LiveRanges(func, donated={0})
    assert [(range_.value, range_.kind, range_.start, range_.end) for range_ in ranges] == [
        ("%arg0", "argument", 0, 1),
        ("%0", "temporary", 0, 0),
    ]


def test_the_source_is_the_users_line() -> None:
    func = parse("""
        func.func @main(%x: tensor<f32>) -> tensor<f32> {
          %y = "test.op"(%x) : (tensor<f32>) -> tensor<f32> loc("train.py":41:7)
          func.return %y : tensor<f32>
        }
    """)
    assert [range_.source for range_ in LiveRanges(func)] == [None, "train.py:41"]


def test_it_reads_as_a_sequence() -> None:
    ranges = LiveRanges(parse(STEP))
    assert len(ranges) == 8
    assert ranges[-1].value == "%3"
    assert ranges[2:4] == (ranges[2], ranges[3])
    with pytest.raises(IndexError):
        ranges[8]


def test_columns_are_as_wide_as_the_front_end_reads_them() -> None:
    ranges = LiveRanges(parse(STEP))
    assert (ranges.start.dtype, ranges.end.dtype) == (np.int32, np.int32)
    assert (ranges.nbytes.dtype, ranges.kind.dtype) == (np.int64, np.int8)
    assert ranges.nbytes.tolist() == [32, 32, 1, 4, 32, 32, 32, -1]


def test_a_position_that_is_no_argument_is_refused() -> None:
    with pytest.raises(IndexError):
        LiveRanges(parse(STEP)).with_donated([3])


def test_a_declaration_has_no_ranges() -> None:
    with pytest.raises(IRError, match="@main has no body"):
        LiveRanges(FuncOp.external("main", [], []))


def donations(func: FuncOp, data: st.DataObject) -> frozenset[int]:
    return frozenset(data.draw(st.sets(st.integers(0, len(func.args) - 1)))) if func.args else frozenset()


def expected_points(func: FuncOp, donated: frozenset[int]) -> dict[SSAValue, set[int]]:
    points = live_points(func)
    for position, argument in enumerate(func.args):
        if position not in donated:
            points[argument] = set(range(len(own_operations(func))))
    return points


@settings(deadline=None)
@given(st.one_of(single_block_functions(), multi_block_functions()), st.data())
def test_ranges_are_the_hulls_of_what_a_search_over_paths_finds(generated: Generated, data: st.DataObject) -> None:
    func = generated.func
    donated = donations(func, data)
    ranges = LiveRanges(func).with_donated(donated)
    points = expected_points(func, donated)
    returned = {value for op in own_operations(func) if isinstance(op, ReturnOp) for value in op.operands}
    for value, range_ in zip(own_values(func), ranges, strict=True):
        assert (range_.start, range_.end) == (min(points[value]), max(points[value]))
        assert range_.nbytes == SIZES[value.type]
        expected = "argument" if value in func.args else "result" if value in returned else "temporary"
        assert range_.kind == expected
    assert [KINDS[kind] for kind in ranges.kind] == [range_.kind for range_ in ranges]
    assert ranges.start.tolist() == [range_.start for range_ in ranges]
    assert ranges.end.tolist() == [range_.end for range_ in ranges]
