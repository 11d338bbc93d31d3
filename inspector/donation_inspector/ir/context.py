"""jaxlib's MLIR context with JAX's dialects, and what it reads. Imports jaxlib's MLIR alone: a trial starts with it."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

from typing import Any, cast

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, mpmd, sdy, stablehlo

BYTECODE = b"ML\xefR"
_PORTABLE = b"StableHLO_v"
_PRODUCER = slice(0, 64)


def make_context() -> ir.Context:
    """An MLIR context of our own with every dialect that JAX registers; dialects it doesn't know stay opaque."""
    registry = ir.DialectRegistry()
    # no public name registers the upstream dialects, and importing jax for it is not for this layer
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (sdy, mpmd, chlo, stablehlo):
        cast(Any, dialect).register_dialect(context)
    cast(Any, mhlo).register_mhlo_dialect(context)
    context.allow_unregistered_dialects = True
    return context


def read(data: bytes | str, context: ir.Context) -> ir.Module:
    """The module in text, bytecode or a portable StableHLO artifact, verified; raises what jaxlib raises."""
    if isinstance(data, bytes) and _PORTABLE in data[_PRODUCER]:
        return cast(Any, stablehlo).deserialize_portable_artifact(context, data)
    return ir.Module.parse(data, context=context)
