"""`reuse-donated-buffers`: a donated buffer serves further values while its argument is dead.

`jax-use-donated-arguments` gives each buffer to one result, at the very end. A dead buffer can hold more before: values
of its type, one after the other, each from where it is made to its last use. A
`bufferization.materialize_in_destination` right behind the operation that makes a value, read in its place from there
on, says so: one-shot bufferization, after `eliminate-empty-tensors`, writes the value into the argument without a
buffer of its own. The destination is always the argument itself, which nothing reads any more: with the value that was
there before, bufferization finds a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.analysis.destination import destination_argument
from donation_inspector.analysis.naming import operation_name
from donation_inspector.analysis.reuse import made_before, plan_reuse
from donation_inspector.common.signature import Donation
from donation_inspector.ir.entry import read_donation, read_signature
from donation_inspector.passes.check_donated_buffers import check_donated_buffers
from donation_inspector.passes.donate_by_live_range import donate_by_live_range, is_private
from donation_inspector.passes.flags import defined_functions, set_donation


def reuse_donated_buffers(func: FuncOp) -> None:
    """Places values of `func` in the buffers of its donated arguments, as `analysis.reuse` plans it.

    Donated are the arguments that something is materialized into and those with a flag. The latter are paired with
    results first, as `donate-by-live-range` does.

    Raises DiagnosticException, and changes nothing, when donated arguments stand at a function that
    - has several blocks;
    - is refused by `donate-by-live-range`;
    - has donated arguments that are sharded: what other values take on one device is not known;
    - has materializations that `check-donated-buffers` rejects.
    """
    donation = read_donation(func)
    written = {destination_argument(op) for op in func.walk() if isinstance(op, MaterializeInDestinationOp)}
    positions = donation.positions | {argument.index for argument in func.args if argument in written}
    if not positions:
        return
    if len(func.body.blocks) > 1:
        raise _refusal(func, f"it has {len(func.body.blocks)} blocks; only one is understood.")
    for leaf in read_signature(func).arguments:
        if leaf.position in positions and leaf.shard_shape != leaf.shape:
            raise _refusal(
                func,
                f"argument {leaf.position} is sharded, {leaf.sharding}: what other values of its type take on one "
                "device is not known.",
            )
    check_donated_buffers(func)
    donate_by_live_range(func)
    donors = read_donation(func).donors
    plan = plan_reuse(func, donors)
    for op in plan.earlier:
        op.detach()
        _place(op, op.source)
    for value, position in plan.placed:
        _place(
            MaterializeInDestinationOp.create(operands=[value, func.args[position]], result_types=[value.type]), value
        )
    for op in func.body.block.ops:
        if isinstance(op, MaterializeInDestinationOp) and (value := made_before(op)) is not None:
            _give_own_empty(value.op)
    set_donation(func, Donation(donors=donors - {position for _, position in plan.placed}))


def _place(op: MaterializeInDestinationOp, value: SSAValue) -> None:
    """Puts the materialization right behind the operation that makes `value`, and itself in place of that."""
    made = value.owner
    assert isinstance(made, Operation)
    assert made.parent is not None
    assert op.result is not None
    made.parent.insert_op_after(op, made)
    value.replace_uses_with_if(op.result, lambda use: use.operation is not op)


def _give_own_empty(op: Operation) -> None:
    """Makes the destinations of `op` that are a `tensor.empty` its own: `eliminate-empty-tensors` puts the argument in
    place of one, and would give it to everything that shares it."""
    for number, operand in enumerate(op.operands):
        empty = operand.owner
        if isinstance(empty, Operation) and operation_name(empty) == "tensor.empty" and len(list(operand.uses)) > 1:
            own = empty.clone()
            assert op.parent is not None
            op.parent.insert_op_before(own, op)
            op.operands[number] = own.results[0]


def _refusal(func: FuncOp, why: str) -> DiagnosticException:
    return DiagnosticException(
        f"reuse-donated-buffers: cannot reuse the donated buffers of @{func.sym_name.data}: {why}"
    )


@dataclass(frozen=True)
class ReuseDonatedBuffers(ModulePass):
    """Places further values in the buffers of dead donated arguments, in every function that is not private."""

    name = "reuse-donated-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        for func in defined_functions(op, self.name):
            if not is_private(func):
                reuse_donated_buffers(func)
