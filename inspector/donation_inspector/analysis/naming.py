"""The names that MLIR's printer gives a function's values, so that a live range and the text show the same one.

After `SSANameState` in mlir/lib/IR/AsmPrinter.cpp: the entry block's arguments are "%arg0", "%arg1", …; every other
value takes the next number, an operation of several results one number for all ("%4#0", "%4#1"). Constants of StableHLO
ask for "%c" or "%cst"; a name that is taken gets a suffix.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import IntegerType, TensorType, UnregisteredOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

CONSTANT = "stablehlo.constant"


def operation_name(op: Operation) -> str:
    """The operation's name in the text, for one whose dialect xDSL does not know too."""
    # asked for every operation again and again: a name is compared sooner than a class
    return op.name if op.name != UnregisteredOp.name else cast(UnregisteredOp, op).op_name.data


def value_names(func: FuncOp) -> dict[SSAValue, str]:
    """The printed name of every argument of the function's own blocks and every result of its own operations."""
    names: dict[SSAValue, str] = {}
    used: set[str] = set()
    number = conflict = 0
    for block in func.body.blocks:
        is_entry = block is func.body.blocks.first
        for position, argument in enumerate(block.args):
            names[argument] = f"%arg{position}" if is_entry else f"%{number}"
            number += not is_entry
        for op in block.ops:
            results = op.results
            if not results:
                continue
            if operation_name(op) == CONSTANT:
                wish = name = "c" if _holds_integers(results[0].type) else "cst"
                while name in used:
                    name, conflict = f"{wish}_{conflict}", conflict + 1
                used.add(name)
                names[results[0]] = f"%{name}"
                continue
            if len(results) == 1:
                names[results[0]] = f"%{number}"
            else:
                names.update((result, f"%{number}#{index}") for index, result in enumerate(results))
            number += 1
    return names


def _holds_integers(type_: Attribute) -> bool:
    return isinstance(type_, TensorType) and isinstance(type_.get_element_type(), IntegerType)  # pyright: ignore[reportUnknownMemberType]  # xDSL's tensor is generic in it
