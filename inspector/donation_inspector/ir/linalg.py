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
from xdsl.dialects.builtin import ModuleOp

from donation_inspector.errors import IRError
from donation_inspector.ir import native, source
from donation_inspector.ir.bridge import reading
from donation_inspector.ir.context import make_context
from donation_inspector.ir.exporter import to_jaxlib
from donation_inspector.ir.importer import Imported

_TO_LINALG = (
    "inline,symbol-dce,func.func(chlo-legalize-to-stablehlo),stablehlo-legalize-to-linalg,canonicalize,cse,symbol-dce"
)
_LEFT = re.compile(r'"((?:stablehlo|chlo|mhlo|sdy)\.\w+)"\(')
_UNSIGNED = re.compile(r"(?:\b|x)[us]i\d+\b")
_CALLEE = re.compile(r'call_target_name = "([^"]*)"')
LEFT = frozenset(
    {
        *("stablehlo.while", "stablehlo.if", "stablehlo.case", "stablehlo.return", "stablehlo.optimization_barrier"),
        *("sdy.mesh", "sdy.sharding_constraint"),
    }
)
"""What `to_linalg` leaves as it is, regions in linalg."""


def to_linalg(module: ir.Module) -> str:
    """The module as linalg, arith, math and tensor in MLIR's generic form; calls are inlined. `module` stays.

    What only arranges it is left: see `LEFT`.

    Raises IRError with the operations that jaxlib does not know, or that its passes have no linalg for.
    """
    context = _context()
    lowered = ir.Module.parse(source.bytecode(module), context=context)
    _refuse_unknown(lowered)
    _strip_shardings(lowered)
    _run(lowered, _TO_LINALG)
    text = _generic(lowered)
    left = sorted({name for name in _LEFT.findall(text) if name not in LEFT})
    if left:
        callees = sorted(set(_CALLEE.findall(text)))
        named = f" ({', '.join(f'@{callee}' for callee in callees)})" if callees else ""
        raise IRError(
            f"There is no linalg for {', '.join(left)}{named}: jaxlib's stablehlo-legalize-to-linalg leaves it."
        )
    return text


def _refuse_unknown(module: ir.Module) -> None:
    """On an operation that is not registered jaxlib's passes end the process, as where its region uses a value that
    they replace."""
    unknown: set[str] = set()

    def look(operation: ir.Operation) -> ir.WalkResult:
        if not module.context.is_registered_operation(operation.name):
            unknown.add(operation.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    if unknown:
        raise IRError(f"There is no linalg for {', '.join(sorted(unknown))}: jaxlib does not know it.")


def leaves_more(text: str) -> bool:
    """Whether `to_linalg` left something in its `text`: what `LEFT` names, or integers with a sign."""
    return _LEFT.search(text) is not None or _UNSIGNED.search(text) is not None


def text(imported: Imported, module: ModuleOp) -> str:
    """`module`, a changed clone of `imported.module` or that itself, in MLIR's generic form.

    Not as `generic.text`, which writes constants so that xDSL reads them too: LLVM 19 dies on a resource of booleans.
    """
    return _generic(to_jaxlib(imported, module))


def _generic(module: ir.Module) -> str:
    return cast(str, cast(Any, module.operation).get_asm(print_generic_op_form=True))


def parse(text: str) -> ir.Module:
    """A module in linalg, whose operations are registered: jaxlib lists no properties of one that it does not know.

    Raises IRError where jaxlib's linalg is another one than the text's.
    """
    try:
        return ir.Module.parse(text, context=_context())
    except ir.MLIRError as error:
        raise IRError(f"jaxlib does not read this linalg: {native.first_message(error)}.") from None


def _strip_shardings(module: ir.Module) -> None:
    """On one device they say nothing, and the passes take away the mesh that they name."""
    for function in (op.operation for op in module.body.operations if op.operation.name == "func.func"):
        for name in ("arg_attrs", "res_attrs"):
            if name in function.attributes:
                kept = [
                    {key: value for key, value in reading.entries(one) if not key.startswith(("sdy.", "mhlo."))}
                    for one in cast(Any, function.attributes[name])
                ]
                with module.context:
                    function.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(one) for one in kept])


def _context() -> ir.Context:
    """With the dialects that linalg goes with: a pass that makes them loads them, no public name does."""
    _register()
    context = make_context()
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
            raise IRError(f"jaxlib's passes do not make linalg of it: {native.first_message(error)}.") from None
