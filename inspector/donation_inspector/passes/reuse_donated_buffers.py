"""`reuse-donated-buffers`: a donated buffer serves further values while its argument is dead.

`jax-use-donated-arguments` gives each buffer to one result, at the very end. A dead buffer can hold more before: values
of its type, one after the other, each from where it is made to its last use. A
`bufferization.materialize_in_destination` right behind the operation that makes a value, read in its place from there
on, says so: one-shot bufferization, after `eliminate-empty-tensors`, writes the value into the argument without a
buffer of its own. The destination is always the argument itself, which nothing reads any more: with the value that was
there before, bufferization finds a conflict.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.analysis.buffers.model import find_overwritten
from donation_inspector.analysis.destination import behind_casts, destination_argument
from donation_inspector.analysis.naming import operation_name
from donation_inspector.analysis.reuse import made_before, plan_reuse
from donation_inspector.common.signature import Donation
from donation_inspector.ir.entry import read_donation, read_signature
from donation_inspector.passes.check_donated_buffers import check_donated_buffers
from donation_inspector.passes.donate_by_live_range import donate_by_live_range
from donation_inspector.passes.flags import set_donation, uncalled_functions
from donation_inspector.passes.notes import tell

NAME = "reuse-donated-buffers"


def reuse_donated_buffers(func: FuncOp) -> None:
    """Places values of `func` in the buffers of its donated arguments, as `analysis.reuse` plans it.

    Donated are the arguments that something is materialized into and those with a flag. The latter are paired with
    results first, as `donate-by-live-range` does. A sharded argument serves nothing further, because what other values
    take on one device is not known, which is told. What `check-donated-buffers` would reject is not placed, and told.

    Told and left as it is, is a function that `donate-by-live-range` leaves, and one that `check-donated-buffers`
    rejects already.
    """
    donation = read_donation(func)
    written = {destination_argument(op) for op in func.walk() if isinstance(op, MaterializeInDestinationOp)}
    if not donation.positions and not any(argument in written for argument in func.args):
        return
    donate_by_live_range(func)
    if len(func.body.blocks) > 1 or not isinstance(func.body.block.last_op, ReturnOp):
        return
    try:
        check_donated_buffers(func)
    except DiagnosticException as rejected:
        tell(NAME, "overwritten", func, f"is left as it is: {rejected}")
        return
    sharded = {
        leaf.position: leaf.sharding
        for leaf in read_signature(func).arguments
        if leaf.position is not None and leaf.shard_shape != leaf.shape
    }
    for position in sorted((donation.positions | {one.index for one in func.args if one in written}) & sharded.keys()):
        told = f"is sharded, {sharded[position]}, and serves nothing else: what that takes on one device is not known"
        tell(NAME, "sharded", func, told, position)
    donors = read_donation(func).donors
    plan = plan_reuse(func, donors, frozenset(sharded))
    for op in plan.earlier:
        op.detach()
        _place(op, op.source)
    placed: list[MaterializeInDestinationOp] = []
    for value, position in plan.placed:
        placed.append(
            MaterializeInDestinationOp.create(operands=[value, func.args[position]], result_types=[value.type])
        )
        _place(placed[-1], value)
    _withdraw_unsound(func, [*plan.earlier, *placed], frozenset(plan.earlier))
    for op in func.body.block.ops:
        if isinstance(op, MaterializeInDestinationOp) and (value := made_before(op)) is not None:
            _give_own_empty(value.op)
    used = {argument.index for op in placed if op.parent and (argument := destination_argument(op)) is not None}
    set_donation(func, Donation(donors=donors - used))


def _withdraw_unsound(
    func: FuncOp, placed: Sequence[MaterializeInDestinationOp], earlier: Set[MaterializeInDestinationOp]
) -> None:
    """Takes back, one after the other, what would overwrite something that is still read."""
    left = list(placed)
    while left and (wrong := find_overwritten(func)) is not None:
        mine = [op for op in left if wrong.buffer is not None and behind_casts(op.dest) is wrong.buffer.value]
        op = wrong.writer if wrong.writer in left else (mine or left)[-1]
        assert isinstance(op, MaterializeInDestinationOp)
        argument, value = destination_argument(op), op.source.owner
        name = operation_name(value) if isinstance(value, Operation) else "an argument"
        told = f"does not hold the result of '{name}' too, because {wrong.what}"
        tell(NAME, "overwritten", func, told, None if argument is None else argument.index)
        left.remove(op)
        _take_back(func, op, before_the_return=op in earlier)


def _take_back(func: FuncOp, op: MaterializeInDestinationOp, *, before_the_return: bool) -> None:
    assert op.result is not None
    last = func.body.block.last_op
    assert last is not None
    op.result.replace_uses_with_if(op.source, lambda use: not (before_the_return and use.operation is last))
    op.detach()
    if before_the_return:
        func.body.block.insert_op_before(op, last)
    else:
        op.erase()


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


@dataclass(frozen=True)
class ReuseDonatedBuffers(ModulePass):
    """Places further values in the buffers of dead donated arguments, in functions called from outside alone."""

    name = NAME

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        for func in uncalled_functions(op, self.name):
            reuse_donated_buffers(func)
