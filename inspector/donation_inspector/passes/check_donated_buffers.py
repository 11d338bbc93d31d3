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
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.analysis.destination import destination_argument, fits_destination
from donation_inspector.analysis.overwriting import find_overwritten
from donation_inspector.passes.flags import defined_functions


def check_donated_buffers(func: FuncOp) -> None:
    """Proves that no two values that interfere share the buffer of an argument of `func`.

    Raises DiagnosticException when two do, and when that cannot be proved, because a materialization
    - stands in a function of several blocks, or in the region of another operation;
    - has a destination that is no argument of the function;
    - writes under a type that takes other bytes, or bytes that are not known.
    """
    found = [op for op in func.walk() if isinstance(op, MaterializeInDestinationOp)]
    for op in found:
        if len(func.body.blocks) > 1:
            raise _rejection(func, f"it has {len(func.body.blocks)} blocks; only one can be checked.")
        if op.parent is not func.body.block:
            raise _rejection(func, "a materialization stands in the region of another operation, which may run again.")
        argument = destination_argument(op)
        if argument is None or argument.block is not func.body.block:
            raise _rejection(func, "a materialization has a destination that is no argument of the function.")
        if not fits_destination(op, argument):
            raise _rejection(func, f"{op.source.type} is written into argument {argument.index}, {argument.type}.")
    overwritten = find_overwritten(func) if found else None
    if overwritten is not None:
        raise _rejection(func, f"{overwritten}.")


def _rejection(func: FuncOp, why: str) -> DiagnosticException:
    return DiagnosticException(f"check-donated-buffers: in function @{func.sym_name.data}: {why}")


@dataclass(frozen=True)
class CheckDonatedBuffers(ModulePass):
    """Rejects a module in which values that interfere share the buffer of a function's argument."""

    name = "check-donated-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        for func in defined_functions(op, self.name):
            check_donated_buffers(func)
