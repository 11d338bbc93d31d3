"""A program whose entry function takes its arguments and returns its results in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp

from donation_inspector.errors import IRError
from donation_inspector.ir.entry import entry_function, is_one_block


def reordered(module: ModuleOp, arguments: Sequence[int], results: Sequence[int]) -> ModuleOp:
    """A copy of the module; at each place of the entry function stands the argument or result of that old position.

    Raises IRError where the entry function is not one block that returns.
    """
    made = module.clone()
    func = entry_function(made)
    if not is_one_block(func):
        raise IRError(f"@{func.sym_name.data} is not one block that returns: its results stand in no single place.")
    _take(func, arguments)
    block = func.body.block
    returned = cast(ReturnOp, block.last_op)
    returned.operands = [returned.operands[position] for position in results]
    func.function_type = FunctionType.from_lists(
        [argument.type for argument in block.args], [operand.type for operand in returned.operands]
    )
    func.arg_attrs = _picked(func.arg_attrs, arguments)
    func.res_attrs = _picked(func.res_attrs, results)
    return made


def _take(func: FuncOp, positions: Sequence[int]) -> None:
    block = func.body.block
    old = list(block.args)
    for position in positions:
        argument = old[position]
        moved = block.insert_arg(argument.type, len(block.args))
        moved.name_hint = argument.name_hint
        argument.replace_all_uses_with(moved)
    for argument in old:
        block.erase_arg(argument)


def _picked(attributes: ArrayAttr[Any] | None, positions: Sequence[int]) -> ArrayAttr[Any] | None:
    return None if attributes is None else ArrayAttr([attributes.data[position] for position in positions])
