"""StableHLO's loops and branches, which jaxlib's passes have no linalg for, as `scf`.

Only the operation changes: its regions are linalg already, and values that they take from outside stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects import arith, bufferization, scf, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from donation_inspector.analysis.naming import operation_name


def to_scf(module: ModuleOp) -> None:
    """Rewrites every operation of `REWRITES` in `module`."""
    for op in list(module.walk()):
        rewrite = REWRITES.get(operation_name(op))
        if rewrite is not None:
            rewrite(op)


def _while(op: Operation) -> None:
    condition, body = _detached(op)
    returned = _last(condition)
    extracted = _scalar(returned.operands[0])
    condition.block.insert_op_before(extracted, returned)
    _end(condition, scf.ConditionOp(extracted.result, *condition.block.args))
    _own_parts(_last(body))
    _end(body, scf.YieldOp(*_last(body).operands))
    _own_parts(op)
    _replace(op, scf.WhileOp(op.operands, [result.type for result in op.results], condition, body))


def _own_parts(op: Operation) -> None:
    """Gives what is a part of another tensor a buffer of its own: a loop of LLVM 19 cannot carry one with an offset."""
    for number, operand in enumerate(op.operands):
        if _is_part(operand):
            own = bufferization.AllocTensorOp(operand.type, copy=operand)
            assert op.parent is not None
            op.parent.insert_op_before(own, op)
            op.operands[number] = own.tensor


def _is_part(value: SSAValue) -> bool:
    while isinstance(value.owner, Operation) and operation_name(value.owner) in _RESHAPES:
        value = value.owner.operands[0]
    return isinstance(value.owner, Operation) and operation_name(value.owner) == "tensor.extract_slice"


def _if(op: Operation) -> None:
    true, false = _detached(op)
    for region in (true, false):
        _end(region, scf.YieldOp(*_last(region).operands))
    extracted = _scalar(op.operands[0])
    _replace(op, extracted, scf.IfOp(extracted.result, [result.type for result in op.results], true, false))


def _case(op: Operation) -> None:
    """An index that is out of range takes the last branch.

    Not as `scf.index_switch`: LLVM 19 lets the results of two of them share a buffer while both are live.
    """
    *branches, rest = _detached(op)
    for region in (*branches, rest):
        _end(region, scf.YieldOp(*_last(region).operands))
    extracted = _scalar(op.operands[0])
    if not branches:
        branches, rest = [rest], rest.clone()
    types = [result.type for result in op.results]
    made: list[Operation] = []
    for number in reversed(range(len(branches))):
        wanted = arith.ConstantOp.from_int_and_width(number, 32)
        taken = arith.CmpiOp(extracted.result, wanted, "eq")
        made = [wanted, taken, scf.IfOp(taken, types, branches[number], rest)]
        if number:
            rest = Region(Block([*made, scf.YieldOp(*made[-1].results)]))
    _replace(op, extracted, *made)


def _forward(op: Operation) -> None:
    """What changes nothing on one device."""
    for result, operand in zip(op.results, op.operands, strict=True):
        result.replace_all_uses_with(operand)
    op.detach()
    op.erase()


REWRITES: dict[str, Callable[[Operation], None]] = {
    "stablehlo.while": _while,
    "stablehlo.if": _if,
    "stablehlo.case": _case,
    "stablehlo.optimization_barrier": _forward,
    "sdy.sharding_constraint": _forward,
    "sdy.mesh": _forward,
}
"""By the operation's name."""

_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape", "tensor.cast")


def _detached(op: Operation) -> list[Region]:
    return [op.detach_region(region) for region in list(op.regions)]


def _last(region: Region) -> Operation:
    last = region.block.last_op
    assert last is not None
    return last


def _scalar(value: SSAValue) -> tensor.ExtractOp:
    """The one element of a tensor without dimensions."""
    return tensor.ExtractOp(value, [], cast(Any, value.type).get_element_type())


def _end(region: Region, terminator: Operation) -> None:
    """Puts `terminator` in place of the region's own."""
    block: Block = region.block
    old = _last(region)
    block.insert_op_after(terminator, old)
    old.detach()
    old.erase()


def _replace(op: Operation, *made: Operation) -> None:
    """Puts `made` in place of `op`; the last of them has its results."""
    block = op.parent
    assert block is not None
    block.insert_ops_before(made, op)
    for old, new in zip(op.results, made[-1].results, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()
