"""Whether a program reads what it has overwritten: it is run in its order, and each buffer's holder is kept in mind.

This knows nothing of live ranges and of how values were placed. It follows what `materialize_in_destination` says:
right behind the operation that makes a value which nothing else reads, that operation writes it into the destination;
otherwise it is copied there. A value of which it is not known in which of several buffers it is counts as in each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from donation_inspector.analysis.destination import destination_argument, is_destination
from donation_inspector.analysis.in_place import has_own_buffers, lives_in, may_live_in, writes_over
from donation_inspector.analysis.naming import operation_name


def find_overwritten(func: FuncOp) -> str | None:
    """What is read, or written while it is read, though its buffer holds another value by then; None if nothing is.

    `func` has one block, which has all its materializations, each into an argument of it.
    """
    run = _Run(func)
    for op in func.body.block.ops:
        found = run.move(op) if isinstance(op, MaterializeInDestinationOp) else run.step(op)
        if found is not None:
            return found
    return None


class _Home(NamedTuple):
    """The buffer of an argument in which a value is, for certain or perhaps, and what was written there with it."""

    argument: BlockArgument
    holder: SSAValue
    certain: bool = True


class _Run:
    """Where each value is. A holder is named by the value that was written: `buffers` has the one of each argument that
    is ever written, `homes` those of each value that is, or may be, in such a buffer."""

    def __init__(self, func: FuncOp) -> None:
        written = {destination_argument(op) for op in func.walk() if isinstance(op, MaterializeInDestinationOp)}
        self.buffers: dict[BlockArgument, SSAValue] = {}
        self.homes: dict[SSAValue, tuple[_Home, ...]] = {}
        for argument in func.args:
            if argument in written:
                self.buffers[argument] = argument
                self.homes[argument] = (_Home(argument, argument),)

    def step(self, op: Operation) -> str | None:
        """Runs an operation: it reads, then its results are written, those that are placed over what is there."""
        reads = list(_reads(op))
        for value, _ in reads:
            if (gone := self._gone(value)) is not None:
                return self._told(op, gone)
        placed = list(_placed(op))
        for result, argument in placed:
            for value, operand in reads:
                here = any(home.argument is argument for home in self.homes.get(value, ()))
                if here and (operand is None or not writes_over(op, operand, result.index)):
                    return (
                        f"'{operation_name(op)}' reads {_holder(argument, self.buffers[argument])} while it writes its "
                        f"result {result.index} there"
                    )
        for result, argument in placed:
            self.buffers[argument] = result
            self.homes[result] = (_Home(argument, result),)
        for result in op.results if self.homes else ():
            certain = lives_in(op, result.index) is not None
            homes = [home for value in may_live_in(result) for home in self.homes.get(value, ())]
            if homes:
                self.homes[result] = tuple(home._replace(certain=home.certain and certain) for home in homes)
        for result, argument in placed:
            if self._gone(result) is not None:
                return f"'{operation_name(op)}' writes two results into argument {argument.index}"
        return None

    def move(self, op: MaterializeInDestinationOp) -> str | None:
        """Runs a materialization: nothing happens where the value is there already, else it is copied there."""
        argument, result = destination_argument(op), op.result
        assert argument is not None
        assert result is not None
        if (gone := self._gone(op.source)) is not None:
            return self._told(op, gone)
        homes = self.homes.get(op.source, ())
        there = next((home for home in homes if home.certain and home.argument is argument), None)
        if there is None:
            self.buffers[argument] = result
            there = _Home(argument, result)
        self.homes[result] = (there,)
        return None

    def _gone(self, value: SSAValue) -> _Home | None:
        """The buffer in which `value` was, or may have been, and that holds another one now."""
        return next(
            (home for home in self.homes.get(value, ()) if self.buffers[home.argument] is not home.holder), None
        )

    def _told(self, op: Operation, home: _Home) -> str:
        argument, holder, certain = home
        reads = "reads" if certain else "may read"
        return (
            f"'{operation_name(op)}' {reads} {_holder(argument, holder)}, but {_maker(self.buffers[argument])} was "
            "written there before"
        )


def _reads(op: Operation) -> Iterator[tuple[SSAValue, int | None]]:
    """All that the operation reads, with the number of the operand; None for what its regions use."""
    for number, operand in enumerate(op.operands):
        if not is_destination(op):
            yield operand, number
    for region in op.regions:
        for nested in region.walk():
            for operand in nested.operands:
                yield operand, None


def _placed(op: Operation) -> Iterator[tuple[OpResult, BlockArgument]]:
    """The results that materializations right behind the operation place, and the arguments that they go to."""
    behind = op.next_op if has_own_buffers(op) else None
    while isinstance(behind, MaterializeInDestinationOp):
        source, argument = behind.source, destination_argument(behind)
        if isinstance(source, OpResult) and source.op is op and source.has_one_use() and argument is not None:
            yield source, argument
        behind = behind.next_op


def _holder(argument: BlockArgument, holder: SSAValue) -> str:
    if holder is argument:
        return f"argument {argument.index}"
    return f"{_maker(holder)} in argument {argument.index}"


def _maker(value: SSAValue) -> str:
    if isinstance(value, OpResult) and not isinstance(value.op, MaterializeInDestinationOp):
        return f"result {value.index} of '{operation_name(value.op)}'"
    source = (
        value.op.source if isinstance(value, OpResult) and isinstance(value.op, MaterializeInDestinationOp) else value
    )
    return f"argument {source.index}" if isinstance(source, BlockArgument) else "another value"
