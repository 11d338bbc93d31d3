"""Which argument's buffer a `bufferization.materialize_in_destination` writes.

Source and destination have one type. To write a value into an equally large argument of another type, the destination
is a `builtin.unrealized_conversion_cast` of the argument.
"""

from __future__ import annotations

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import UnrealizedConversionCastOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from donation_inspector.ir.size import nbytes


def destination_argument(op: MaterializeInDestinationOp) -> BlockArgument | None:
    """The block argument that `op` writes, under its own type or another; None where it writes another value."""
    dest = behind_casts(op.dest)
    return dest if isinstance(dest, BlockArgument) else None


def behind_casts(value: SSAValue) -> SSAValue:
    """The value itself of one that casts give another type."""
    while isinstance(value.owner, UnrealizedConversionCastOp) and len(value.owner.inputs) == 1:
        value = value.owner.inputs[0]
    return value


def fits_destination(op: MaterializeInDestinationOp, argument: SSAValue) -> bool:
    """Whether the value and what `op` writes have one type, or take the same bytes and a cast says so."""
    if op.source.type == argument.type:
        return True
    size = nbytes(op.source.type)
    return op.dest is not argument and size is not None and size == nbytes(argument.type)


def is_destination(op: Operation) -> bool:
    """Whether `op` is a cast that is there for materializations alone: it reads nothing."""
    return isinstance(op, UnrealizedConversionCastOp) and all(
        isinstance(use.operation, MaterializeInDestinationOp) and use.index == 1
        for result in op.results
        for use in result.uses
    )
