import pytest
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from analysis.functions import (
    Generated,
    live_points,
    multi_block_functions,
    own_operations,
    own_values,
    parse,
    single_block_functions,
)
from donation_inspector.analysis.liveness import Liveness


def named(func: FuncOp) -> dict[str, SSAValue]:
    return {value.name_hint: value for value in own_values(func) if value.name_hint is not None}


STRAIGHT = """
func.func @main(%used: i32, %unused: i32) -> i32 {
  %a = "test.op"(%used) : (i32) -> i32
  %dead = "test.op"() : () -> i32
  %b = "test.op"(%a, %a) : (i32, i32) -> i32
  %c = "test.op"(%b) : (i32) -> i32
  func.return %c : i32
}
"""


def live_indices(func: FuncOp, name: str) -> list[int]:
    liveness, value = Liveness(func), named(func)[name]
    return [index for index, op in enumerate(liveness.operations) if liveness.is_live(value, op)]


@pytest.mark.parametrize(
    ("name", "indices"),
    [("used", [0]), ("unused", [0]), ("a", [0, 1, 2]), ("dead", [1]), ("b", [2, 3]), ("c", [3, 4])],
)
def test_a_value_is_live_from_its_definition_to_its_last_use(name: str, indices: list[int]) -> None:
    assert live_indices(parse(STRAIGHT), name) == indices


def test_the_last_use_is_the_last_operation_that_uses_a_value() -> None:
    func = parse(STRAIGHT)
    values = named(func)
    liveness = Liveness(func)
    assert [liveness.last_use(values[name]) for name in ("used", "a", "c")] == [0, 2, 4]
    assert liveness.last_use(values["dead"]) is None
    assert liveness.last_use(values["unused"]) is None


def test_a_captured_value_is_used_by_the_operation_that_holds_the_use() -> None:
    func = parse("""
        func.func @main(%captured: i32) -> i32 {
          %a = "test.op"() : () -> i32
          %loop = "test.op"(%a) ({
            %inner = "test.op"() ({
              "test.op"(%captured) : (i32) -> ()
            }) : () -> i32
            "test.op"(%inner) : (i32) -> ()
          }) : (i32) -> i32
          func.return %loop : i32
        }
    """)
    liveness, captured = Liveness(func), named(func)["captured"]
    loop = liveness.operations[1]
    assert liveness.last_use(captured) == 1
    assert liveness.is_live(captured, loop)
    assert not liveness.is_live(captured, liveness.operations[2])
    nested = loop.regions[0].block.first_op
    assert nested is not None
    assert liveness.index(nested) == 1
    assert liveness.is_live(captured, nested)


def test_a_call_uses_its_operands_and_defines_its_results() -> None:
    func = parse("""
        func.func @main(%x: i32) -> i32 {
          %0 = func.call @callee(%x) : (i32) -> i32
          %1 = func.call @callee(%0) : (i32) -> i32
          func.return %1 : i32
        }
    """)
    liveness = Liveness(func)
    assert [liveness.last_use(value) for value in own_values(func)] == [0, 1, 2]


LOOP = """
func.func @main(%n: i32, %carried_around: i32) {
  %before = "test.op"() : () -> i32
  "test.termop"(%n) [^head] : (i32) -> ()
^head(%i: i32):
  "test.op"(%before) : (i32) -> ()
  "test.termop"(%i) [^body, ^exit] : (i32) -> ()
^body:
  %next = "test.op"(%i) : (i32) -> i32
  "test.op"(%carried_around) : (i32) -> ()
  "test.termop"(%next) [^head] : (i32) -> ()
^exit:
  func.return
}
"""


def blocks_of(func: FuncOp) -> dict[str, Block]:
    return dict(zip(("entry", "head", "body", "exit"), func.body.blocks, strict=True))


def hints(values: frozenset[SSAValue]) -> set[str | None]:
    return {value.name_hint for value in values}


def test_what_a_loop_needs_is_live_all_around_it() -> None:
    func = parse(LOOP)
    liveness, blocks = Liveness(func), blocks_of(func)
    assert hints(liveness.live_in(blocks["entry"])) == set()
    assert hints(liveness.live_in(blocks["head"])) == {"before", "carried_around"}
    assert hints(liveness.live_in(blocks["body"])) == {"before", "carried_around", "i"}
    assert hints(liveness.live_in(blocks["exit"])) == set()
    assert hints(liveness.live_out(blocks["head"])) == {"before", "carried_around", "i"}
    assert hints(liveness.live_out(blocks["body"])) == {"before", "carried_around"}
    # %before has no use in the body, but the next turn of the loop reads it
    assert live_indices(func, "before") == [0, 1, 2, 3, 4, 5, 6]
    assert live_indices(func, "i") == [2, 3, 4]


def test_a_value_of_another_function_has_no_index() -> None:
    func, other = parse(STRAIGHT), parse(STRAIGHT)
    liveness = Liveness(func)
    assert not liveness.is_live(named(other)["a"], liveness.operations[0])
    with pytest.raises(KeyError):
        liveness.index(own_operations(other)[0])


@settings(deadline=None)
@given(single_block_functions())
def test_in_one_block_liveness_is_what_a_search_over_paths_finds(generated: Generated) -> None:
    check(generated.func)


@settings(deadline=None)
@given(multi_block_functions())
def test_over_many_blocks_liveness_is_what_a_search_over_paths_finds(generated: Generated) -> None:
    check(generated.func)


def check(func: FuncOp) -> None:
    liveness, expected = Liveness(func), live_points(func)
    operations: list[Operation] = own_operations(func)
    assert list(liveness.operations) == operations
    spans: dict[SSAValue, set[int]] = {value: set() for value in expected}
    for value, first, last in liveness.spans():
        stretch = set(range(first, last + 1))
        assert stretch
        assert not stretch & spans[value]
        spans[value] |= stretch
    assert spans == expected
    for value, points in expected.items():
        assert {index for index, op in enumerate(operations) if liveness.is_live(value, op)} == points
    for block in func.body.blocks:
        ops = list(block.ops)
        live_out = {value for successor in ops[-1].successors for value in liveness.live_in(successor)}
        assert liveness.live_out(block) == live_out
        assert liveness.live_in(block) == {
            value
            for value, points in expected.items()
            if liveness.index(ops[0]) in points and value not in block.args and value not in ops[0].results
        }


def test_the_module_is_not_changed() -> None:
    func = parse(LOOP)
    before = str(ModuleOp([func.clone()]))
    Liveness(func)
    assert str(ModuleOp([func.clone()])) == before
