"""Which further values a donated argument's buffer can hold, one after the other, in the order of the program.

A value stays in a buffer from the operation that makes it to the last that reads it, itself or as another value that
lives there, or may (`in_place.may_live_in`). The next may come where the one before ends, if that operation can write
its result over what it reads (`in_place.writes_over`).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from donation_inspector.analysis.destination import destination_argument
from donation_inspector.analysis.in_place import has_own_buffers, lives_in, may_live_in, writes_over
from donation_inspector.analysis.liveness import Liveness
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


def plan_reuse(func: FuncOp, donated: Iterable[int]) -> Reuse:
    """What the buffers of the `donated` arguments of `func`, and of those that something is materialized into, can hold
    besides what they do. `func` has one block.

    What is materialized before the return has its buffer from its definition on, where that is free by then. The gaps
    go to the values that end first, each into the buffer that was idle for the shortest time. A buffer of a dynamic
    size holds nothing further.
    """
    buffers = _Buffers(func, donated)
    earlier = [op for op in tuple(buffers.moved) if buffers.bring_forward(op)]
    for value in buffers.in_order(value for op in func.body.block.ops if has_own_buffers(op) for value in op.results):
        buffers.place(value)
    return Reuse(tuple(earlier), tuple(buffers.placed))


class _Buffers:
    """What stays when in which argument's buffer."""

    def __init__(self, func: FuncOp, donated: Iterable[int]) -> None:
        self._func, self._liveness = func, Liveness(func)
        self._held: set[SSAValue] = set()
        self._inside: defaultdict[SSAValue, list[OpResult]] = defaultdict(list)
        """By value, the results that may live in its buffer with it."""
        for result in (result for op in func.body.block.ops for result in op.results):
            for value in may_live_in(result):
                self._inside[value].append(result)
        self.placed: list[tuple[OpResult, int]] = []
        self.moved: dict[MaterializeInDestinationOp, _Stay] = {}
        writes = [op for op in func.body.block.ops if isinstance(op, MaterializeInDestinationOp)]
        written = ((op, destination_argument(op)) for op in writes)
        self._position = {op: argument.index for op, argument in written if argument is not None}
        self._stays: dict[int, list[_Stay]] = {}
        """What each buffer holds, by where it starts. No two meet, or the program would be wrong already."""
        for position in sorted({*donated, *self._position.values()}):
            self._stays[position] = []
            self._hold(self._stay(func.args[position], position), position)
        self._of_type: defaultdict[Attribute, list[int]] = defaultdict(list)
        for position in self._stays:
            self._of_type[func.args[position].type].append(position)
        for op, position in self._position.items():
            assert op.result is not None
            if op.result in self._held:
                continue
            behind = made_before(op)
            stay = self._stay(op.result if behind is None else behind, position)
            self._hold(stay, position)
            if behind is None:
                self.moved[op] = stay

    def in_order(self, values: Iterable[OpResult]) -> list[OpResult]:
        """Values by where they end, if they fit any of the buffers."""
        stays = {value: self._stay(value, None) for value in values if value.type in self._of_type}
        return sorted(stays, key=lambda value: (stays[value].end, stays[value].start, value.index))

    def bring_forward(self, op: MaterializeInDestinationOp) -> bool:
        """Whether the moved value can have its buffer where it is made, and the materialization stand there.

        Where it is made in the buffer of another one, that one is placed, and the materialization stays as it is.
        """
        root = op.source
        while isinstance(root, OpResult) and (operand := lives_in(root.op, root.index)) is not None:
            root = root.op.operands[operand]
        position = self._position[op]
        if not isinstance(root, OpResult) or root in self._held or not has_own_buffers(root.op):
            return False
        stay = self._stay(root, position)
        others = [other for other in self._stays[position] if other is not self.moved[op]]
        if root.type != op.dest.type or root.owner.parent is not op.parent or not _fits(stay, others):
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
        stay, fitting = self._stay(value, None), list[tuple[int, int]]()
        for position in self._of_type[value.type]:
            stays = self._stays[position]
            if stays[0].end <= stay.start and _fits(stay, stays):
                before = bisect_right(stays, stay.start, key=lambda other: other.start) - 1
                fitting.append((stays[before].end, -position))
        if fitting:
            position = -max(fitting)[1]
            self._hold(self._stay(value, position), position)
            self.placed.append((value, position))

    def _hold(self, stay: _Stay, position: int) -> None:
        self._held |= stay.values
        insort(self._stays[position], stay, key=lambda other: other.start)

    def _stay(self, value: SSAValue, position: int | None) -> _Stay:
        """The stay of `value` and all that lives with it in the buffer of the argument at `position`."""
        values = [value]
        reads: defaultdict[int, list[tuple[Operation, int | None]]] = defaultdict(list)
        for held in values:
            values += [result for result in self._inside.get(held, ()) if result not in values]
            for use in held.uses:
                op = use.operation
                index = self._liveness.index(op)
                own = self._liveness.operations[index] is op
                if isinstance(op, MaterializeInDestinationOp):
                    if use.index == 1:
                        continue
                    living = op.results if self._position.get(op) == position else ()
                    values += [result for result in living if result not in values]
                reads[index].append((op, use.index if own else None))
        if not isinstance(value, OpResult):
            return _Stay(None, -1, max(reads, default=-1), frozenset(values), reads)
        start = self._liveness.definition(value)
        made = None if isinstance(value.op, MaterializeInDestinationOp) else value
        return _Stay(made, start, max(reads, default=start), frozenset(values), reads)


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
