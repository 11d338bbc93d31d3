"""Which further values a donated argument's buffer can hold, one after the other, in the order of the program.

A value stays in a buffer from the operation that makes it to the last that reads it, itself or as another value that is
there, or may be (`buffers`), or is made by working in place there: what a loop carries, linalg's `outs`, an insertion,
and any update whose result is materialized there. The old value must not be read after that, or it needs a buffer of
its own. The next value may come where the one before ends, if that operation can write its result over what it reads
(`in_place.writes_over`).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from donation_inspector.analysis.buffers.model import Buffers
from donation_inspector.analysis.buffers.places import Buffer, Home, buffers
from donation_inspector.analysis.destination import destination_argument
from donation_inspector.analysis.in_place import destination, has_own_buffers, is_view, lives_in, writes_over
from donation_inspector.analysis.liveness import Liveness
from donation_inspector.analysis.naming import operation_name
from donation_inspector.ir.size import shape_dtype


@dataclass(frozen=True, slots=True)
class Reuse:
    """What can be placed where it is made.

    earlier: materializations that stand before the return, of a value that can have its buffer from the start.
    placed: (value, position of the argument) of each further value.
    """

    earlier: tuple[MaterializeInDestinationOp, ...]
    placed: tuple[tuple[OpResult, int], ...]


@dataclass(frozen=True, slots=True)
class _Stay:
    """What one buffer holds from operation `start` to `end`, both inclusive, as one value or several that live there.

    `made` is written there by its own operation. An argument is there from -1 on, and what is moved there comes as a
    copy: neither is made there. `reads` tells by operation what reads it, as which operand; None inside a region.
    """

    made: OpResult | None
    start: int
    end: int
    values: frozenset[SSAValue]
    reads: Mapping[int, Sequence[tuple[Operation, int | None]]]


def plan_reuse(func: FuncOp, donated: Iterable[int], full: Set[int] = frozenset()) -> Reuse:
    """What the buffers of the `donated` arguments of `func`, and of those that something is materialized into, can hold
    besides what they do. `func` has one block.

    What is materialized before the return has its buffer from its definition on, where that is free by then. The gaps
    go to the values that end first, each into the buffer that was idle for the shortest time. A buffer of a dynamic
    size holds nothing further, nor do those of the arguments that are `full`.
    """
    stays = _Stays(func, donated, full)
    earlier = [op for op in tuple(stays.moved) if stays.bring_forward(op)]
    for value in stays.in_order(value for op in func.body.block.ops if has_own_buffers(op) for value in op.results):
        stays.place(value)
    return Reuse(tuple(earlier), tuple(stays.placed))


class _Stays:
    """What stays when in which argument's buffer."""

    def __init__(self, func: FuncOp, donated: Iterable[int], full: Set[int]) -> None:
        self._func, self._liveness, self._buffers = func, Liveness(func), Buffers(func)
        self._held: set[SSAValue] = set()
        self.placed: list[tuple[OpResult, int]] = []
        self.moved: dict[MaterializeInDestinationOp, _Stay] = {}
        writes = [op for op in func.body.block.ops if isinstance(op, MaterializeInDestinationOp)]
        written = ((op, destination_argument(op)) for op in writes)
        self._position = {op: argument.index for op, argument in written if argument is not None}
        self._stays: dict[int, list[_Stay]] = {}
        """What each buffer holds, by where it starts. No two meet, or the program would be wrong already."""
        for position in sorted({*donated, *self._position.values()}):
            self._stays[position] = []
            values = self._together(func.args[position])
            reads = self._reads(values)
            self._hold(_Stay(None, -1, max(reads, default=-1), frozenset(values), reads), position)
        self._of_type: defaultdict[Attribute, list[int]] = defaultdict(list)
        for position in sorted(self._stays.keys() - full):
            self._of_type[func.args[position].type].append(position)
        for op, position in self._position.items():
            assert op.result is not None
            if op.result in self._held:
                continue
            behind = made_before(op) or self._made_in_place(op)
            stay = self._stay(op.result if behind is None else behind, position)
            if stay is None:
                continue
            self._hold(stay, position)
            if behind is None:
                self.moved[op] = stay

    def _made_in_place(self, op: MaterializeInDestinationOp) -> OpResult | None:
        """What works in the argument's buffer already to make the value that is materialized there."""
        if Buffer(self._func.args[self._position[op]]) not in buffers(self._buffers.place(op.source)):
            return None
        value = op.source
        while isinstance(value, OpResult) and is_view(value.op):
            value = value.op.operands[min(value.index, len(value.op.operands) - 1)]
        return value if isinstance(value, OpResult) else None

    def in_order(self, values: Iterable[OpResult]) -> list[OpResult]:
        """Values by where they end, if they fit any of the buffers."""
        found = ((value, self._stay(value, None)) for value in values if value.type in self._of_type)
        stays = {value: stay for value, stay in found if stay is not None}
        return sorted(stays, key=lambda value: (stays[value].end, stays[value].start, value.index))

    def bring_forward(self, op: MaterializeInDestinationOp) -> bool:
        """Whether the moved value can have its buffer where it is made, and the materialization stand there.

        Where it is made in the buffer of another one, that one is placed, and the materialization stays as it is.
        """
        root = op.source
        while isinstance(root, OpResult) and (operand := lives_in(root.op, root.index)) is not None:
            before = root.op.operands[operand]
            if not is_view(root.op) and self._is_read_behind(self._together(before), root.op):
                break
            root = before
        position = self._position[op]
        if position not in self._of_type[op.dest.type]:
            return False
        if not isinstance(root, OpResult) or root in self._held or not has_own_buffers(root.op):
            return False
        stay = self._stay(root, position)
        others = [other for other in self._stays[position] if other is not self.moved[op]]
        if root.type != op.dest.type or root.owner.parent is not op.parent or stay is None or not _fits(stay, others):
            return False
        self._stays[position] = others
        self._hold(stay, position)
        if root is not op.source:
            self.placed.append((root, position))
        return root is op.source

    def place(self, value: OpResult) -> None:
        """Gives the value the buffer of its type that is free for it and was idle for the shortest time, if any."""
        if value in self._held or not _is_static(value):
            return
        fitting = list[tuple[int, int, _Stay]]()
        for position in self._of_type[value.type]:
            stays, stay = self._stays[position], self._stay(value, position)
            if stay is not None and stays[0].end <= stay.start and _fits(stay, stays):
                before = bisect_right(stays, stay.start, key=lambda other: other.start) - 1
                fitting.append((stays[before].end, -position, stay))
        if fitting:
            _, position, stay = max(fitting, key=lambda fit: fit[:2])
            self._hold(stay, -position)
            self.placed.append((value, -position))

    def _hold(self, stay: _Stay, position: int) -> None:
        self._held |= stay.values
        insort(self._stays[position], stay, key=lambda other: other.start)

    def _stay(self, value: SSAValue, position: int | None) -> _Stay | None:
        """The stay of `value` and all that is with it in the buffer of the argument at `position`; None where something
        would be worked on there while the old value is still read."""
        values = self._together(value)
        for held in values:
            for use in held.uses:
                if operation_name(use.operation) == "scf.while":
                    # one-shot bufferization finds no way for a loop that starts in a buffer which it did not make
                    return None
                made = self._made_there(use.operation, use.index, position)
                if made is None or made in values:
                    continue
                claimed = not isinstance(use.operation, MaterializeInDestinationOp) and self._is_claimed(made, position)
                if isinstance(use.operation, MaterializeInDestinationOp) or not self._is_read_behind(values, made.op):
                    values += [one for one in self._together(made) if one not in values]
                elif claimed:
                    return None
        reads = self._reads(values)
        if not isinstance(value, OpResult):
            return _Stay(None, -1, max(reads, default=-1), frozenset(values), reads)
        start = self._liveness.definition(value)
        made = None if isinstance(value.op, MaterializeInDestinationOp) else value
        return _Stay(made, start, max(reads, default=start), frozenset(values), reads)

    def _together(self, value: SSAValue) -> list[SSAValue]:
        """The value and those of the function's block that are, or may be, in its buffer with it: views."""
        block, inside = self._func.body.block, self._buffers.inside(Home(Buffer(value)))
        return [value, *(one for one in inside if one is not value and block in (one.owner, one.owner.parent))]

    def _made_there(self, op: Operation, operand: int, position: int | None) -> OpResult | None:
        """The result that `op` makes in the operand's buffer, where that is the argument's at `position`."""
        if isinstance(op, MaterializeInDestinationOp):
            return op.results[0] if operand == 0 and self._position.get(op) == position else None
        for result in op.results:
            if destination(op, result.index) == operand:
                is_there = lives_in(op, result.index) == operand or self._is_claimed(result, position)
                return result if is_there else None
        return None

    def _is_claimed(self, result: SSAValue, position: int | None) -> bool:
        """Whether the result, or a view of it, is materialized into the argument at `position`."""
        return position is not None and any(
            self._position.get(use.operation) == position and use.index == 0
            if isinstance(use.operation, MaterializeInDestinationOp)
            else is_view(use.operation) and any(self._is_claimed(view, position) for view in use.operation.results)
            for use in result.uses
        )

    def _is_read_behind(self, values: Iterable[SSAValue], op: Operation) -> bool:
        """Whether an operation behind `op` reads one of the values, or `op` itself while it works in their buffer."""
        index = self._liveness.index(op)
        for value in values:
            for use in value.uses:
                at = self._liveness.index(use.operation)
                if isinstance(use.operation, MaterializeInDestinationOp) and use.index == 1:
                    continue
                if at > index or (at == index and use.operation is not op):
                    return True
        return False

    def _reads(self, values: Iterable[SSAValue]) -> Mapping[int, Sequence[tuple[Operation, int | None]]]:
        """What reads the values, by operation; what is moved within the buffer is no read."""
        reads: defaultdict[int, list[tuple[Operation, int | None]]] = defaultdict(list)
        for use in (use for value in values for use in value.uses):
            op = use.operation
            if isinstance(op, MaterializeInDestinationOp) and use.index == 1:
                continue
            index = self._liveness.index(op)
            reads[index].append((op, use.index if self._liveness.operations[index] is op else None))
        return reads


def made_before(op: MaterializeInDestinationOp) -> OpResult | None:
    """The source, where `op` stands right behind the operation that makes it and nothing else reads it: then it is
    written into the destination there, and has no buffer of its own."""
    source, before = op.source, op.prev_op
    while isinstance(before, MaterializeInDestinationOp):
        before = before.prev_op
    if not isinstance(source, OpResult) or source.op is not before or not has_own_buffers(source.op):
        return None
    return source if source.has_one_use() else None


def _is_static(value: SSAValue) -> bool:
    return None not in shape_dtype(value.type)[0]


def _fits(stay: _Stay, others: Sequence[_Stay]) -> bool:
    """Whether `stay` can have a buffer between the others, which are in the order of their start."""
    place = bisect_right(others, stay.start, key=lambda other: other.start)
    before, behind = others[max(0, place - 1) : place], others[place : place + 1]
    return all(_follows(stay, other) for other in before) and all(_follows(other, stay) for other in behind)


def _follows(stay: _Stay, before: _Stay) -> bool:
    """Whether `stay` can have the buffer after `before`."""
    if before.end != stay.start or before.start == stay.start:
        return before.end < stay.start
    made = stay.made
    return made is not None and all(
        op is made.op and operand is not None and writes_over(op, operand, made.index)
        for op, operand in before.reads[before.end]
    )
