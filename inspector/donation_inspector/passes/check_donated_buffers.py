"""`check-donated-buffers`: no value that is still read has lost its buffer to another one.

Whoever placed values in donated arguments, `reuse-donated-buffers` or anybody else: the program is followed in its
order, and a module in which two values that interfere share a buffer is rejected. Nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.analysis.buffers.model import find_overwritten
from donation_inspector.analysis.destination import behind_casts, fits_destination
from donation_inspector.passes.flags import called_from_outside, defined_functions


def check_donated_buffers(func: FuncOp) -> None:
    """Proves that nothing in `func`, called from outside, reads what another value has overwritten.

    Raises DiagnosticException when something does, and when that cannot be proved, because a materialization
    - stands in a function of several blocks, or in the region of an operation that is not known;
    - writes what the caller keeps: an argument that is not donated, through a view or a call, or a constant;
    - writes under a type that takes other bytes, or bytes that are not known.
    """
    found = [op for op in func.walk() if isinstance(op, MaterializeInDestinationOp)]
    for op in found:
        if len(func.body.blocks) > 1:
            raise _rejection(func, f"it has {len(func.body.blocks)} blocks; only one can be checked.")
        destination = behind_casts(op.dest)
        if not fits_destination(op, destination):
            number = f"argument {destination.index}, " if isinstance(destination, BlockArgument) else ""
            raise _rejection(func, f"{op.source.type} is written into {number}{destination.type}.")
    if len(func.body.blocks) == 1 and (overwritten := find_overwritten(func)) is not None:
        raise _rejection(func, f"{overwritten.what}.")


def _rejection(func: FuncOp, why: str) -> DiagnosticException:
    return DiagnosticException(f"check-donated-buffers: in function @{func.sym_name.data}: {why}")


@dataclass(frozen=True)
class CheckDonatedBuffers(ModulePass):
    """Rejects a module in which values that interfere share a buffer, whichever function is called from outside."""

    name = "check-donated-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        for func in called_from_outside(defined_functions(op, self.name)):
            check_donated_buffers(func)
