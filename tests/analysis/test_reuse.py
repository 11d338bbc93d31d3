import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation

from analysis import straight_line
from donation_inspector.analysis.buffers.model import find_overwritten
from donation_inspector.passes.reuse_donated_buffers import reuse_donated_buffers

TUNED_ON = range(1_400)
"""Programs that were looked at while the rules were written."""
JUDGED_ON = range(20_000, 21_000)
"""Programs that the rules are judged by, and that were not."""


def writes(func: FuncOp) -> list[MaterializeInDestinationOp]:
    return [op for op in func.body.block.ops if isinstance(op, MaterializeInDestinationOp)]


def place(func: FuncOp, choice: dict[int, int]) -> None:
    """Puts the result of each operation of this number into the argument."""
    operations = list(func.body.block.ops)
    for number, argument in choice.items():
        (value,) = operations[number].results
        op = MaterializeInDestinationOp.create(operands=[value, func.args[argument]], result_types=[value.type])
        func.body.block.insert_op_after(op, operations[number])
        assert op.result is not None
        value.replace_uses_with_if(op.result, lambda use, op=op: use.operation is not op)


def move_a_result(func: FuncOp, result: int, argument: int) -> None:
    """Has the result copied into the argument before the return, where nothing does so already."""
    terminator = func.body.block.last_op
    assert terminator is not None
    value = terminator.operands[result]
    if value is func.args[argument] or isinstance(value.owner, MaterializeInDestinationOp):
        return
    op = MaterializeInDestinationOp.create(operands=[value, func.args[argument]], result_types=[value.type])
    func.body.block.insert_op_before(op, terminator)
    terminator.operands[result] = op.results[0]


def test_the_programs_judged_by_are_others_than_those_tuned_on() -> None:
    assert not set(TUNED_ON) & set(JUDGED_ON)


@settings(deadline=None, max_examples=100)
@given(st.sampled_from(JUDGED_ON))
def test_no_values_that_are_live_at_once_share_a_buffer(seed: int) -> None:
    func = straight_line.program(seed)
    module = ModuleOp([func])
    reuse_donated_buffers(func)
    module.verify()
    assert straight_line.interfering(func) == []
    assert find_overwritten(func) is None


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(JUDGED_ON))
def test_the_pass_has_nothing_to_add_to_itself(seed: int) -> None:
    func = straight_line.program(seed)
    module = ModuleOp([func])
    reuse_donated_buffers(func)
    once = str(module)
    reuse_donated_buffers(func)
    assert str(module) == once


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(JUDGED_ON))
def test_what_is_rejected_is_what_interferes(seed: int) -> None:
    """Values in buffers at random: the run of the program and the intervals say the same."""
    draw = random.Random(seed)
    func = straight_line.program(seed)
    ModuleOp([func])
    donated = len(func.args) - 1
    operations = len(list(func.body.block.ops)) - 1
    place(func, {number: draw.randrange(donated) for number in range(operations) if draw.random() < 0.35})
    if draw.random() < 0.5:
        move_a_result(func, draw.randrange(len(straight_line.returned(func))), draw.randrange(donated))
    assert (find_overwritten(func) is not None) == bool(straight_line.interfering(func))


def made_in_place(func: FuncOp) -> int:
    """How many values are written where they are placed, without a buffer of their own."""
    return sum(_maker(op) is op.source.owner and len(list(op.source.uses)) == 1 for op in writes(func))


def _maker(op: MaterializeInDestinationOp) -> Operation | None:
    before = op.prev_op
    while isinstance(before, MaterializeInDestinationOp):
        before = before.prev_op
    return before


def test_nearly_as_many_values_are_placed_as_can_be() -> None:
    placed = possible = 0
    for seed in JUDGED_ON[:25]:
        func = straight_line.program(seed, operations=5)
        ModuleOp([func])
        untouched = func.clone()
        reuse_donated_buffers(func)
        operations = len(list(untouched.body.block.ops)) - 1
        choices = itertools.product([None, *range(len(func.args) - 1)], repeat=operations)
        mine = made_in_place(func)
        placed += mine
        possible += max([mine, *(_count(untouched, choice, mine) for choice in choices)])
    assert placed >= 0.9 * possible


def _count(func: FuncOp, choice: tuple[int | None, ...], at_least: int) -> int:
    chosen = {number: argument for number, argument in enumerate(choice) if argument is not None}
    if len(chosen) <= at_least:
        return 0
    tried = func.clone()
    place(tried, chosen)
    return 0 if straight_line.interfering(tried) else len(chosen)


@pytest.mark.parametrize("seed", JUDGED_ON[:20])
def test_every_destination_is_an_argument_that_was_donated(seed: int) -> None:
    func = straight_line.program(seed)
    ModuleOp([func])
    reuse_donated_buffers(func)
    for op in writes(func):
        assert isinstance(op.dest, BlockArgument)
        assert op.dest.index < len(func.args) - 1
