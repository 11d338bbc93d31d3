"""Integers without a sign, as linalg has them: jaxlib's passes keep StableHLO's types at functions and loops."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import (
    FunctionType,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
    UnrealizedConversionCastOp,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.rewriter import Rewriter


def to_signless(module: ModuleOp) -> None:
    """Takes the sign from the type of every value, and away the casts that only did that. The bits are the same."""
    for op in module.walk():
        arguments = (argument for region in op.regions for block in region.blocks for argument in block.args)
        for value in (*op.results, *arguments):
            plain = _signless(value.type)
            if plain != value.type:
                Rewriter.replace_value_with_new_type(value, plain)
        if isinstance(op, FuncOp):
            inputs, outputs = op.function_type.inputs, op.function_type.outputs
            op.function_type = FunctionType.from_lists([*map(_signless, inputs)], [*map(_signless, outputs)])
    for op in list(module.walk()):
        if isinstance(op, UnrealizedConversionCastOp) and [one.type for one in op.operands] == list(op.result_types):
            for result, operand in zip(op.results, op.operands, strict=True):
                result.replace_all_uses_with(operand)
            op.detach()
            op.erase()


def _signless(known: Attribute) -> Attribute:
    whatever = cast(Any, known)
    if isinstance(known, TensorType):
        element = _signless(whatever.get_element_type())
        return whatever if element is whatever.get_element_type() else TensorType(element, whatever.shape)
    if isinstance(known, IntegerType) and whatever.signedness.data is not Signedness.SIGNLESS:
        return cast(Any, IntegerType(whatever.width.data))
    return whatever
