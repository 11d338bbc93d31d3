"""Whether a program reads what it has overwritten: it is run in its order, and each buffer's holder is kept in mind.

This knows nothing of live ranges and of how values were placed. It follows what `materialize_in_destination` says:
right behind the operation that makes a value which nothing else reads, that operation writes it into the destination;
otherwise it is copied there.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from donation_inspector.analysis.destination import destination_argument, is_destination
from donation_inspector.analysis.in_place import has_own_buffers, lives_in, writes_over
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


class _Run:
    """Where each value is. A holder is named by the value that was written: `buffers` has the one of each argument that
    is ever written, `homes` the argument and the holder of each value that is in such a buffer."""

    def __init__(self, func: FuncOp) -> None:
        written = {destination_argument(op) for op in func.walk() if isinstance(op, MaterializeInDestinationOp)}
        self.buffers: dict[BlockArgument, SSAValue] = {}
        self.homes: dict[SSAValue, tuple[BlockArgument, SSAValue]] = {}
        for argument in func.args:
            if argument in written:
                self.buffers[argument] = argument
                self.homes[argument] = (argument, argument)

    def step(self, op: Operation) -> str | None:
        """Runs an operation: it reads, then its results are written, those that are placed over what is there."""
        reads = list(_reads(op))
        for value, _ in reads:
            if self._is_gone(value):
                return self._told(op, value)
        placed = list(_placed(op))
        for result, argument in placed:
            for value, operand in reads:
                home = self.homes.get(value)
                here = home is not None and home[0] is argument
                if here and (operand is None or not writes_over(op, operand, result.index)):
                    return (
                        f"'{operation_name(op)}' reads {_holder(argument, self.buffers[argument])} while it writes its "
                        f"result {result.index} there"
                    )
        for result, argument in placed:
            self.buffers[argument] = result
            self.homes[result] = (argument, result)
        for result in op.results:
            operand = lives_in(op, result.index)
            if operand is not None and op.operands[operand] in self.homes:
                self.homes[result] = self.homes[op.operands[operand]]
        for result, argument in placed:
            if self._is_gone(result):
                return f"'{operation_name(op)}' writes two results into argument {argument.index}"
        return None

    def move(self, op: MaterializeInDestinationOp) -> str | None:
        """Runs a materialization: nothing happens where the value is there already, else it is copied there."""
        argument, result = destination_argument(op), op.result
        assert argument is not None
        assert result is not None
        if self._is_gone(op.source):
            return self._told(op, op.source)
        home = self.homes.get(op.source)
        if home is None or home[0] is not argument:
            self.buffers[argument] = result
            home = (argument, result)
        self.homes[result] = home
        return None

    def _is_gone(self, value: SSAValue) -> bool:
        home = self.homes.get(value)
        return home is not None and self.buffers[home[0]] is not home[1]

    def _told(self, op: Operation, value: SSAValue) -> str:
        argument, holder = self.homes[value]
        return (
            f"'{operation_name(op)}' reads {_holder(argument, holder)}, but {_maker(self.buffers[argument])} was "
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
