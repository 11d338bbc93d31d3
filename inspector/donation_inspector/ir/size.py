"""Bytes, shape and dtype of a type, as numpy and ml_dtypes count them."""

from __future__ import annotations

import re
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ComplexType,
    IntegerType,
    MemRefType,
    Signedness,
    TensorType,
    TupleType,
    UnregisteredAttr,
    VectorType,
)
from xdsl.ir import Attribute

from donation_inspector.common.signature import Shape
from donation_inspector.ir.dialect import VerbatimType, to_text

_FLOATS = {
    "bf16": ("bfloat16", 2),
    "f16": ("float16", 2),
    "f32": ("float32", 4),
    "f64": ("float64", 8),
    "f8E3M4": ("float8_e3m4", 1),
    "f8E4M3": ("float8_e4m3", 1),
    "f8E4M3FN": ("float8_e4m3fn", 1),
    "f8E4M3FNUZ": ("float8_e4m3fnuz", 1),
    "f8E4M3B11FNUZ": ("float8_e4m3b11fnuz", 1),
    "f8E5M2": ("float8_e5m2", 1),
    "f8E5M2FNUZ": ("float8_e5m2fnuz", 1),
    "f8E8M0FNU": ("float8_e8m0fnu", 1),
    "f6E2M3FN": ("float6_e2m3fn", 1),
    "f6E3M2FN": ("float6_e3m2fn", 1),
    "f4E2M1FN": ("float4_e2m1fn", 1),
}
_COMPLEX = {"float32": "complex64", "float64": "complex128"}
_INTEGER_WIDTHS = (2, 4, 8, 16, 32, 64)
_TENSOR = re.compile(r"tensor<((?:(?:\d+|\?)x)*)(complex<\w+>|[us]?i\d+|\w+)(?:, .*)?>", re.DOTALL)
_TOKENS = ("stablehlo.token", "mhlo.token")


def is_token(type: Attribute) -> bool:
    """Whether values of this type only order effects and hold no data."""
    return isinstance(type, UnregisteredAttr) and type.attr_name.data in _TOKENS


def dtype(element: Attribute) -> tuple[str, int] | None:
    """numpy's (or ml_dtypes') name and item size in bytes of an element type; None where there is none.

    Types of less than a byte take one, as in `jax.Array.nbytes`.
    """
    if isinstance(element, IntegerType):
        width: int = cast(Any, element).width.data
        if width == 1:
            return "bool", 1
        if width not in _INTEGER_WIDTHS:
            return None
        kind = "uint" if cast(Any, element).signedness.data is Signedness.UNSIGNED else "int"
        return f"{kind}{width}", max(1, width // 8)
    if isinstance(element, ComplexType):
        part = dtype(cast(Any, element).element_type)
        if part is None or part[0] not in _COMPLEX:
            return None
        return _COMPLEX[part[0]], 2 * part[1]
    return _FLOATS.get(element.text.data if isinstance(element, VerbatimType) else element.name)


def nbytes(type: Attribute) -> int | None:
    """Bytes of one value of this type, whole (not per device); 0 for a token; None when unknown.

    Unknown are dynamic and unranked shapes and element types that numpy and ml_dtypes don't have.
    """
    if is_token(type):
        return 0
    if isinstance(type, TupleType):
        parts = [nbytes(part) for part in type.types.data]
        return None if None in parts else sum(part for part in parts if part is not None)
    return nbytes_of(type, _shape_element(type)[0])


def nbytes_of(type: Attribute, shape: Shape) -> int | None:
    """Bytes of an array of this shape with the elements of `type`; None when unknown."""
    known = dtype(_shape_element(type)[1])
    sizes = [size for size in shape if size is not None]
    return None if known is None or len(sizes) < len(shape) else prod(sizes) * known[1]


def shape_dtype(type: Attribute) -> tuple[Shape, str]:
    """Shape (None where dynamic) and dtype in numpy's words; a type that numpy lacks is named as MLIR prints it."""
    if is_token(type):
        return (), "token"
    shape, element = _shape_element(type)
    known = dtype(element)
    return shape, known[0] if known else to_text(element)


def of_text(text: str) -> tuple[Shape, str, int] | None:
    """Shape, dtype and item size of a tensor's type as MLIR prints it; None for any other, or one that numpy lacks."""
    found = _TENSOR.fullmatch(text)
    known = None if found is None else _element(found[2])
    if found is None or known is None:
        return None
    shape = tuple(None if size == "?" else int(size) for size in found[1].split("x")[:-1])
    return shape, *known


def _element(text: str) -> tuple[str, int] | None:
    if text.startswith("complex<"):
        part = _FLOATS.get(text[8:-1])
        return (_COMPLEX[part[0]], 2 * part[1]) if part is not None and part[0] in _COMPLEX else None
    kind, _, width = text.rpartition("i")
    if not width.isdigit():
        return _FLOATS.get(text)
    return dtype(IntegerType(int(width), Signedness.UNSIGNED if kind == "u" else Signedness.SIGNLESS))


def _shape_element(type: Attribute) -> tuple[Shape, Attribute]:
    if isinstance(type, TensorType | VectorType | MemRefType):
        shape = tuple(None if size == DYNAMIC_INDEX else size for size in type.get_shape())
        return shape, cast(Any, type).get_element_type()
    return (), type
