"""A module as `jax-use-donated-arguments` sees it: signatures and returns, with nothing in between."""

from __future__ import annotations

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from donation_inspector.common.signature import ENTRY
from donation_inspector.ir.entry import ALIAS

_OUTLINED = UnregisteredOp.with_name("donation_inspector.outlined")


def outline(entry: FuncOp) -> ModuleOp:
    """The entry function, and every other function of its module that has donated arguments, each with its signature,
    its attributes and the same values in each return. One opaque operation a block stands for all that makes them.

    A returned value that is a materialization already stays one, because the pass leaves it alone. Costs as much as the
    signatures are long, however long the bodies are.
    """
    module = entry.parent_op()
    functions = [op for op in module.ops if isinstance(op, FuncOp)] if isinstance(module, ModuleOp) else [entry]
    chosen = module.attributes.get(ENTRY) if isinstance(module, ModuleOp) else None
    return ModuleOp(
        [_outline(func) for func in functions if func is entry or _has_donated_arguments(func)],
        {} if chosen is None else {ENTRY: chosen},
    )


def _has_donated_arguments(func: FuncOp) -> bool:
    return func.arg_attrs is not None and any(ALIAS in attributes.data for attributes in func.arg_attrs)


def _outline(func: FuncOp) -> FuncOp:
    copy = FuncOp(
        func.sym_name.data,
        func.function_type,
        Region([Block(arg_types=block.arg_types) for block in func.body.blocks]),
        func.sym_visibility,
        arg_attrs=func.arg_attrs,
        res_attrs=func.res_attrs,
    )
    blocks = tuple(zip(func.body.blocks, copy.body.blocks, strict=True))
    values: dict[SSAValue, SSAValue] = {}
    for block, block_copy in blocks:
        values.update(zip(block.args, block_copy.args, strict=True))
    for block, block_copy in blocks:
        block_copy.add_ops(_operations(block, values))
    return copy


def _operations(block: Block, values: dict[SSAValue, SSAValue]) -> list[Operation]:
    terminator = block.last_op
    if not isinstance(terminator, ReturnOp):
        return [_OUTLINED.create()]
    materialized = {
        value.owner: None for value in terminator.operands if isinstance(value.owner, MaterializeInDestinationOp)
    }
    needed = [*(operand for op in materialized for operand in op.operands), *terminator.operands]
    made = [value for value in dict.fromkeys(needed) if value not in values]
    opaque = _OUTLINED.create(result_types=[value.type for value in made])
    values.update(zip(made, opaque.results, strict=True))
    copies = [op.clone(values) for op in materialized]
    return [opaque, *copies, ReturnOp(*[values[value] for value in terminator.operands])]
