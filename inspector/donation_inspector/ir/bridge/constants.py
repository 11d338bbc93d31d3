"""Dense constants between jaxlib's MLIR and xDSL, bit by bit.

xDSL's reading of MLIR's text is not trusted: 0.75 takes `dense<0xFF800000> : tensor<f32>`, minus infinity, for 4.28e9
and errs on NaN, bf16 and hexadecimal elements in lists. What is made here is compared with what it was made from.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

import re
from typing import Any, cast

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BytesAttr,
    ComplexType,
    DenseIntOrFPElementsAttr,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    TensorType,
    i1,
)
from xdsl.ir import Attribute

from donation_inspector.ir import size
from donation_inspector.ir.dialect import to_text

LARGEST_INLINE = 16
"""Dense constants of more elements are kept aside, splats too: xDSL would expand them."""

_ELEMENT = re.compile(r"0x[0-9A-Fa-f]+|true|false|-?\d[\d.]*(?:[eE][-+]?\d+)?")
_HEX_STRING = re.compile(r'dense<"0x([0-9A-Fa-f]*)">')


def to_xdsl(constant: ir.DenseElementsAttr, type: Attribute) -> Attribute | None:
    """A small constant as xDSL's own dense attribute; None where that would not be the same bits."""
    if not isinstance(type, TensorType):
        return None
    if type.element_type == i1 and constant.is_splat:
        # jaxlib before 0.10 lays out eight of a splat's booleans and reads on behind them
        return _from_text(str(constant), type)
    try:
        data = np.asarray(memoryview(cast(Any, constant))).tobytes()
    except BufferError:
        return _from_text(str(constant), type)
    if isinstance(type.element_type, IntegerType) and type.element_type.width.data == 1:
        data = _as_i1(np.frombuffer(data, np.uint8))
    return _checked(data, type, str(constant))


def _from_text(text: str, type: Attribute) -> Attribute | None:
    """A constant as MLIR prints it (`dense<…> : type`) in xDSL; None where its bits are not certain."""
    if not isinstance(type, TensorType) or DYNAMIC_INDEX in type.get_shape():
        return None
    count = int(np.prod(type.get_shape(), dtype=np.int64))
    data = _bytes(text.rsplit(" : ", 1)[0], type.element_type)
    if data is None:
        return None
    width = _width(type.element_type)
    if len(data) == width:
        data *= count
    return _checked(data, type, text)


def complex_from_text(text: str) -> ir.Attribute | None:
    """jaxlib's own attribute for a complex constant of which there is only the text; None where it is none such."""
    body, _, type = text.rpartition(" : ")
    tensor = ir.Type.parse(type)
    if not isinstance(tensor, ir.RankedTensorType):
        return None
    part = {"complex<f32>": Float32Type(), "complex<f64>": Float64Type()}.get(str(tensor.element_type))
    data = None if part is None else _bytes(body, ComplexType(part))
    if data is None:
        return None
    array: Any = np.frombuffer(data, np.complex64 if isinstance(part, Float32Type) else np.complex128)
    made = ir.DenseElementsAttr.get(array, type=tensor.element_type, shape=list(tensor.shape))
    return made if str(made) == text else None


def to_jaxlib(constant: DenseIntOrFPElementsAttr, element: ir.Type) -> ir.Attribute:
    """The constant of exactly these bits. The current MLIR context must be the one of `element`."""
    storage = _storage(constant.type.element_type)
    if storage is None:
        raise ValueError(f"no raw form for elements of type {constant.type.element_type}")
    array: Any = np.frombuffer(constant.data.data, storage)
    if isinstance(constant.type.element_type, IntegerType) and constant.type.element_type.width.data == 1:
        return _booleans(array != 0, element, list(constant.type.get_shape()))
    return ir.DenseElementsAttr.get(array, type=element, shape=list(constant.type.get_shape()))


def _booleans(flags: Any, element: ir.Type, shape: list[int]) -> ir.Attribute:
    try:
        return ir.DenseElementsAttr.get(flags, type=element, shape=shape)
    except ValueError:
        # jaxlib before 0.10 takes them as bits, where it does not see a splat
        if flags.all() or not flags.any():
            value = ir.IntegerAttr.get(element, int(flags[0]))
            return ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get(shape, element), value)
        bits: Any = np.packbits(flags, bitorder="little")
        return ir.DenseElementsAttr.get(bits, type=element, shape=shape)


def _checked(data: bytes, type: Any, text: str) -> Attribute | None:
    made = DenseIntOrFPElementsAttr(type, BytesAttr(data))
    element = ir.Type.parse(to_text(type.element_type))
    try:
        again = to_jaxlib(made, element)
    except (ValueError, TypeError):
        return None
    return made if str(again) == text else None


def _bytes(body: str, element: Attribute) -> bytes | None:
    part = element.element_type if isinstance(element, ComplexType) else element
    raw = _HEX_STRING.fullmatch(body)
    if raw is not None:
        data = bytes.fromhex(raw.group(1))
        return None if isinstance(part, IntegerType) and part.width.data < 8 else data
    words = _ELEMENT.findall(body.removeprefix("dense"))
    if isinstance(part, IntegerType | IndexType):
        if isinstance(part, IntegerType) and part.width.data == 1:
            return _as_i1(np.array([word == "true" for word in words], np.uint8))
        storage = _storage(part)
        return None if storage is None else np.array([int(word) for word in words], storage).tobytes()
    return b"".join(_float(word, part) for word in words)


def _float(word: str, type: Attribute) -> bytes:
    known = size.dtype(type)
    if known is None:
        raise ValueError(f"{type} has no numpy dtype")
    if word.startswith("0x"):
        return int(word, 16).to_bytes(known[1], "little")
    # MLIR, too, reads a decimal as a double and rounds it once, to nearest even
    return np.array(float(word)).astype(_numpy(known[0])).tobytes()


def _numpy(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


def _as_i1(flags: Any) -> bytes:
    # xDSL holds a true i1 as -1
    return np.where(flags != 0, np.uint8(255), np.uint8(0)).tobytes()


def _width(element: Attribute) -> int:
    storage = _storage(element)
    return 0 if storage is None else np.dtype(storage).itemsize


def _storage(element: Attribute) -> Any | None:
    """The numpy dtype whose bytes xDSL holds for this element type, and MLIR takes as a raw buffer."""
    if isinstance(element, IndexType):
        return np.int64
    if isinstance(element, IntegerType):
        known = size.dtype(element)
        if known is None:
            return None
        unsigned = known[0].startswith("uint")
        return np.dtype(f"{'uint' if unsigned else 'int'}{8 * known[1]}")
    known = size.dtype(element)
    if known is None:
        return None
    name, width = known
    if name in ("float16", "float32", "float64", "complex64", "complex128"):
        return np.dtype(name)
    return np.dtype(f"uint{8 * width}")
