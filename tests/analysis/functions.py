"""Functions from text, random ones for property tests, and a slow second opinion on what is live in them.

The second opinion searches paths in the graph of operations from each point, for each value, over the use lists. It
shares nothing with `Liveness` but the definition.
"""

from __future__ import annotations

import hypothesis.strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import DYNAMIC_INDEX, Builtin, TensorType, f32, f64, i8
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.dialects.test import Test, TestOp, TestTermOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.parser import Parser

SIZES: dict[Attribute, int | None] = {
    TensorType(f32, [4]): 16,
    TensorType(i8, [3, 1]): 3,
    TensorType(f64, []): 8,
    TensorType(f32, [0, 7]): 0,
    TensorType(f32, [DYNAMIC_INDEX]): None,
}


def parse(text: str) -> FuncOp:
    """The first function of a module in xDSL's own text."""
    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, Test):
        context.load_dialect(dialect)
    func = Parser(context, text).parse_module().body.block.first_op
    assert isinstance(func, FuncOp)
    return func


types = st.sampled_from(tuple(SIZES))


class Generated:
    """A function that a failing test shows as text."""

    def __init__(self, func: FuncOp) -> None:
        self.func = func

    def __repr__(self) -> str:
        return str(self.func)


def _some(draw: st.DrawFn, values: list[SSAValue], most: int) -> list[SSAValue]:
    """Drawn by index: Hypothesis would print values with all the IR around them."""
    if not values:
        return []
    return [values[index] for index in draw(st.lists(st.integers(0, len(values) - 1), max_size=most))]


def _operation(draw: st.DrawFn, visible: list[SSAValue], depth: int) -> Operation:
    """One operation on visible values; some have regions, whose operations may use all that is visible outside."""
    operands = _some(draw, visible, 3)
    regions: list[Region] = []
    if depth and draw(st.integers(0, 3)) == 0:
        for _ in range(draw(st.integers(1, 2))):
            block = Block(arg_types=draw(st.lists(types, max_size=1)))
            inner = [*visible, *block.args]
            for _ in range(draw(st.integers(1, 3))):
                op = _operation(draw, inner, depth - 1)
                block.add_op(op)
                inner += op.results
            block.add_op(TestTermOp(operands=_some(draw, inner, 2)))
            regions.append(Region(block))
    return TestOp(operands=operands, result_types=draw(st.lists(types, max_size=2)), regions=regions)


@st.composite
def single_block_functions(draw: st.DrawFn) -> Generated:
    block = Block(arg_types=draw(st.lists(types, max_size=4)))
    visible: list[SSAValue] = list(block.args)
    for _ in range(draw(st.integers(0, 8))):
        op = _operation(draw, visible, 2)
        block.add_op(op)
        visible += op.results
    returned = _some(draw, visible, 4)
    block.add_op(ReturnOp(*returned))
    return Generated(FuncOp("main", (block.arg_types, [value.type for value in returned]), Region(block)))


@st.composite
def multi_block_functions(draw: st.DrawFn) -> Generated:
    """Any control flow graph of two to five blocks, loops and unreachable blocks among them."""
    count = draw(st.integers(2, 5))
    # as in MLIR, nothing branches to the entry block
    successors = [draw(st.lists(st.integers(1, count - 1), max_size=2)) for _ in range(count)]
    blocks = [Block(arg_types=draw(st.lists(types, max_size=2))) for _ in range(count)]
    region = Region(blocks)
    returned_types = draw(st.lists(types, max_size=3))
    made: dict[int, list[SSAValue]] = {}
    for index in sorted(range(count), key=lambda index: len(_dominators(index, successors))):
        visible = [value for dominator in _dominators(index, successors) for value in made.get(dominator, ())]
        visible += blocks[index].args
        for _ in range(draw(st.integers(0, 3))):
            op = _operation(draw, visible, 1)
            blocks[index].add_op(op)
            visible += op.results
        if successors[index]:
            operands = _some(draw, visible, 2)
            blocks[index].add_op(TestTermOp(operands=operands, successors=[blocks[s] for s in successors[index]]))
        else:
            returned = [_of_type(draw, blocks[index], visible, type_) for type_ in returned_types]
            blocks[index].add_op(ReturnOp(*returned))
        made[index] = [*blocks[index].args, *(result for op in blocks[index].ops for result in op.results)]
    return Generated(FuncOp("main", (blocks[0].arg_types, returned_types), region))


def _of_type(draw: st.DrawFn, block: Block, visible: list[SSAValue], type_: Attribute) -> SSAValue:
    """A visible value of the type, made at the end of the block where there is none."""
    alike = [value for value in visible if value.type == type_]
    if alike:
        return alike[draw(st.integers(0, len(alike) - 1))]
    op = TestOp(result_types=[type_])
    block.add_op(op)
    return op.results[0]


def _dominators(index: int, successors: list[list[int]]) -> list[int]:
    """The other blocks without which this one cannot be reached; none for one that never can."""
    if index not in _reached(successors, without=None):
        return []
    return [other for other in range(len(successors)) if other != index and index not in _reached(successors, other)]


def _reached(successors: list[list[int]], without: int | None) -> set[int]:
    reached: set[int] = set()
    pending = [0]
    while pending:
        index = pending.pop()
        if index != without and index not in reached:
            reached.add(index)
            pending += successors[index]
    return reached


def own_operations(func: FuncOp) -> list[Operation]:
    return [op for block in func.body.blocks for op in block.ops]


def own_values(func: FuncOp) -> list[SSAValue]:
    return [
        value
        for block in func.body.blocks
        for value in (*block.args, *(result for op in block.ops for result in op.results))
    ]


def live_points(func: FuncOp) -> dict[SSAValue, set[int]]:
    """For each of the function's own values, the operations at which it is live, by searching paths from each."""
    points = own_operations(func)
    index = {op: number for number, op in enumerate(points)}
    following: list[list[int]] = []
    for op in points:
        after = [op.next_op] if op.next_op is not None else [block.first_op for block in op.successors]
        following.append([index[successor] for successor in after if successor is not None])
    live: dict[SSAValue, set[int]] = {}
    for value in own_values(func):
        uses = {index[_own(use.operation, index)] for use in value.uses}
        defining = value.block.first_op if isinstance(value, BlockArgument) else value.owner
        assert isinstance(defining, Operation)
        definition = index[defining]
        # a path that comes to the definition gets to uses of another value under this name, not of this one
        live[value] = {definition} | {
            point for point in range(len(points)) if uses & _reachable(point, following, definition)
        }
    return live


def _reachable(start: int, following: list[list[int]], stop: int) -> set[int]:
    """The operations on all paths from `start`, itself included, that do not pass through `stop`."""
    reached: set[int] = set()
    pending = [start]
    while pending:
        point = pending.pop()
        if point not in reached and point != stop:
            reached.add(point)
            pending += following[point]
    return reached


def _own(op: Operation, index: dict[Operation, int]) -> Operation:
    while op not in index:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op
