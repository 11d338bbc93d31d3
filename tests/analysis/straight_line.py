"""Small random programs in one block, and slow second opinions on what may share a buffer in them.

The second opinions try every order and every assignment. They share nothing with the analyses but what an operation
does with its operands' buffers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, TensorType, UnregisteredOp, f32, i1
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

ARRAY = TensorType(f32, [4])
ELEMENTWISE = ("stablehlo.add", "stablehlo.sine")
PRODUCT = "stablehlo.dot_general"


def program(seed: int, *, operations: int = 6) -> FuncOp:
    """A function of one to three donated arguments and one that is not, of pure operations on one type of array.

    Every value may be returned, several times too, arguments among them.
    """
    draw = random.Random(seed)
    donated = draw.randint(1, 3)
    block = Block(arg_types=[ARRAY] * (donated + 1))
    values: list[SSAValue] = list(block.args)
    for _ in range(draw.randint(1, operations)):
        name = draw.choice([*ELEMENTWISE, PRODUCT])
        operands = [draw.choice(values) for _ in range(1 if name == "stablehlo.sine" else 2)]
        op = UnregisteredOp.with_name(name).create(operands=operands, result_types=[ARRAY])
        block.add_op(op)
        values += op.results
    returned = [draw.choice(values[-4:] if draw.random() < 0.8 else values) for _ in range(draw.randint(1, 3))]
    block.add_op(ReturnOp(*returned))
    donor = DictionaryAttr({"jax.buffer_donor": IntegerAttr(1, i1)})
    attributes = ArrayAttr([donor] * donated + [DictionaryAttr({})])
    return FuncOp("main", ([ARRAY] * (donated + 1), [ARRAY] * len(returned)), Region(block), arg_attrs=attributes)


def name(op: Operation) -> str:
    return op.op_name.data if isinstance(op, UnregisteredOp) else op.name


def returned(func: FuncOp) -> tuple[SSAValue, ...]:
    terminator = func.body.block.last_op
    assert terminator is not None
    return tuple(terminator.operands)


def needed(func: FuncOp) -> list[Operation]:
    """The operations that lead to what is returned."""
    found: set[Operation] = set()
    pending = [value.owner for value in returned(func)]
    while pending:
        op = pending.pop()
        if isinstance(op, Operation) and op not in found:
            found.add(op)
            pending += [operand.owner for operand in op.operands]
    return [op for op in func.body.block.ops if op in found]


def orders(operations: Sequence[Operation]) -> Iterator[tuple[Operation, ...]]:
    """Every order in which each operation comes after those that make its operands."""
    for order in itertools.permutations(operations):
        place = {op: index for index, op in enumerate(order)}
        if all(place.get(operand.owner, -1) < index for index, op in enumerate(order) for operand in op.operands):  # pyright: ignore[reportArgumentType]
            yield order


def fits_in_order(func: FuncOp, order: Sequence[Operation], argument: int, result: int) -> bool:
    """Whether, run in this order, the result can be written into the argument's buffer by what makes it; one that is
    an argument or returned before is copied there at the end."""
    taken, value = func.args[argument], returned(func)[result]
    if value is taken:
        return True
    if taken in returned(func):
        return False
    if isinstance(value, BlockArgument) or value in returned(func)[:result]:
        return True
    made = order.index(value.owner)  # pyright: ignore[reportArgumentType]
    reads = [index for index, op in enumerate(order) if taken in op.operands]
    return all(index < made or (index == made and name(order[index]) in ELEMENTWISE) for index in reads)


def most_pairs(func: FuncOp) -> int:
    """How many donated arguments can give their buffers to results at most, in the order that is best for that."""
    donated = range(len(func.args) - 1)
    results = range(len(returned(func)))
    best = 0
    for order in orders(needed(func)):
        fitting = {(a, r) for a in donated for r in results if fits_in_order(func, order, a, r)}
        for count in range(min(len(donated), len(results)), best, -1):
            if any(
                _assigned(fitting, arguments, count, results) for arguments in itertools.combinations(donated, count)
            ):
                best = count
                break
    return best


def _assigned(fitting: set[tuple[int, int]], arguments: Sequence[int], count: int, results: Iterable[int]) -> bool:
    return any(
        fitting.issuperset(zip(arguments, chosen, strict=True)) for chosen in itertools.permutations(results, count)
    )


def fit_together(func: FuncOp, pairs: Iterable[tuple[int, int]]) -> bool:
    """Whether some order has room for all the pairs."""
    wanted = tuple(pairs)
    return any(all(fits_in_order(func, order, *pair) for pair in wanted) for order in orders(needed(func)))


def interfering(func: FuncOp) -> list[tuple[str, str]]:
    """Pairs of values that are placed in one buffer and live at once, run in the order that stands there.

    A value is placed where a materialization stands right behind the operation that makes it and nothing else reads it,
    else moved.
    """
    block = func.body.block
    operations = list(block.ops)
    place = {op: index for index, op in enumerate(operations)}
    lives: list[tuple[str, BlockArgument, int, int, Operation | None, list[Operation]]] = []
    writes = [op for op in operations if isinstance(op, MaterializeInDestinationOp)]
    for argument in {op.dest for op in writes}:
        assert isinstance(argument, BlockArgument)
        reads = [use.operation for use in argument.uses if not _is_write(use.operation, argument)]
        lives.append(("argument", argument, -1, max((place[op] for op in reads), default=-1), None, reads))
    for op in writes:
        assert isinstance(op.dest, BlockArgument)
        assert op.result is not None
        made = op.source.owner if op.prev_op is op.source.owner and len(list(op.source.uses)) == 1 else None
        values = [op.result] if made is None else [op.result, op.source]
        reads = [use.operation for value in values for use in value.uses if use.operation is not op]
        assert made is None or isinstance(made, Operation)
        start = place[op] if made is None else place[made]
        if made is None and op.source is op.dest:
            continue
        lives.append((str(start), op.dest, start, max((place[read] for read in reads), default=start), made, reads))
    found: list[tuple[str, str]] = []
    for mine, theirs in itertools.combinations(lives, 2):
        first, second = sorted((mine, theirs), key=lambda life: life[2])
        if first[1] is not second[1] or first[3] < second[2]:
            continue
        at_once = [op for op in first[5] if place[op] >= second[2]]
        in_place = second[4] is not None and name(second[4]) in ELEMENTWISE and first[2] < second[2]
        if not in_place or any(op is not second[4] for op in at_once):
            found.append((first[0], second[0]))
    return found


def _is_write(op: Operation, argument: BlockArgument) -> bool:
    return isinstance(op, MaterializeInDestinationOp) and op.source is not argument
