"""StableHLO as linalg on tensors, by jaxlib's own passes, and such text read again."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

import re
from functools import cache
from typing import Any, cast

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

from donation_inspector.errors import IRError
from donation_inspector.ir import native, source

_TO_LINALG = (
    "inline,symbol-dce,func.func(chlo-legalize-to-stablehlo),stablehlo-legalize-to-linalg,canonicalize,cse,symbol-dce"
)
_LEFT = re.compile(r'"((?:stablehlo|chlo|mhlo|sdy)\.\w+)"\(')
_CALLEE = re.compile(r'call_target_name = "([^"]*)"')
_TERMINATOR = "stablehlo.return"


def to_linalg(module: ir.Module) -> str:
    """The module as linalg, arith, math and tensor in MLIR's generic form; calls are inlined. `module` stays.

    Raises IRError with the operations that jaxlib's passes have no linalg for.
    """
    context = _context()
    lowered = ir.Module.parse(source.bytecode(module), context=context)
    _run(lowered, _TO_LINALG)
    text = cast(str, cast(Any, lowered.operation).get_asm(print_generic_op_form=True))
    left = sorted({name for name in _LEFT.findall(text) if name != _TERMINATOR})
    if left:
        callees = sorted(set(_CALLEE.findall(text)))
        named = f" ({', '.join(f'@{callee}' for callee in callees)})" if callees else ""
        raise IRError(
            f"There is no linalg for {', '.join(left)}{named}: jaxlib's stablehlo-legalize-to-linalg leaves it."
        )
    return text


def parse(text: str) -> ir.Module:
    """A module in linalg, whose operations are registered: jaxlib lists no properties of one that it does not know.

    Raises IRError where jaxlib's linalg is another one than the text's.
    """
    try:
        return ir.Module.parse(text, context=_context())
    except ir.MLIRError as error:
        raise IRError(f"jaxlib does not read this linalg: {_first(error)}.") from None


def _context() -> ir.Context:
    """With the dialects that linalg goes with: a pass that makes them loads them, no public name does."""
    _register()
    context = native.make_context()
    with context, ir.Location.unknown():
        _run(ir.Module.create(), "stablehlo-legalize-to-linalg")
    return context


@cache
def _register() -> None:
    cast(Any, stablehlo).register_stablehlo_passes()


def _run(module: ir.Module, passes: str) -> None:
    with module.context:
        try:
            passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
        except ir.MLIRError as error:
            raise IRError(f"jaxlib's passes do not make linalg of it: {_first(error)}.") from None


def _first(error: ir.MLIRError) -> str:
    told = cast(Any, error).error_diagnostics
    return str(told[0].message).split("\n", 1)[0] if told else str(error)
