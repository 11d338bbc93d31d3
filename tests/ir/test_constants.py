"""Dense constants are exact to the bit in xDSL and come back as the very same: held to the bits they were made from."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, DenseResourceAttr, TensorType, f32
from xdsl.ir import Attribute

from donation_inspector.ir.bridge import constants
from donation_inspector.ir.bridge.constants import LARGEST_INLINE
from donation_inspector.ir.context import make_context
from donation_inspector.ir.exporter import to_jaxlib
from donation_inspector.ir.importer import Imported, import_module

# MLIR's name, the dtype of the bits, the values that the bits stand for
_TYPES: dict[str, tuple[str, Any]] = {
    "i1": ("bool", np.bool_),
    "i2": ("int8", ml_dtypes.int2),
    "i4": ("int8", ml_dtypes.int4),
    "ui4": ("uint8", ml_dtypes.uint4),
    "i8": ("int8", np.int8),
    "ui8": ("uint8", np.uint8),
    "i16": ("int16", np.int16),
    "ui16": ("uint16", np.uint16),
    "i32": ("int32", np.int32),
    "ui32": ("uint32", np.uint32),
    "i64": ("int64", np.int64),
    "ui64": ("uint64", np.uint64),
    "bf16": ("uint16", ml_dtypes.bfloat16),
    "f16": ("float16", np.float16),
    "f32": ("float32", np.float32),
    "f64": ("float64", np.float64),
    "f8E3M4": ("uint8", ml_dtypes.float8_e3m4),
    "f8E4M3": ("uint8", ml_dtypes.float8_e4m3),
    "f8E4M3FN": ("uint8", ml_dtypes.float8_e4m3fn),
    "f8E4M3FNUZ": ("uint8", ml_dtypes.float8_e4m3fnuz),
    "f8E4M3B11FNUZ": ("uint8", ml_dtypes.float8_e4m3b11fnuz),
    "f8E5M2": ("uint8", ml_dtypes.float8_e5m2),
    "f8E5M2FNUZ": ("uint8", ml_dtypes.float8_e5m2fnuz),
    "f8E8M0FNU": ("uint8", ml_dtypes.float8_e8m0fnu),
    "f6E2M3FN": ("uint8", ml_dtypes.float6_e2m3fn),
    "f6E3M2FN": ("uint8", ml_dtypes.float6_e3m2fn),
    "f4E2M1FN": ("uint8", ml_dtypes.float4_e2m1fn),
    "complex<f32>": ("complex64", np.complex64),
    "complex<f64>": ("complex128", np.complex128),
}
_BITS = {"i2": 2, "i4": 4, "ui4": 4, "f6E2M3FN": 6, "f6E3M2FN": 6, "f4E2M1FN": 4}
_CONTEXT = make_context()


def _bits(draw: st.DrawFn, name: str, count: int) -> Any:
    """Raw elements of any bit pattern, as MLIR takes them."""
    raw = np.dtype(_TYPES[name][0])
    if name == "i1":
        return np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool)
    words = draw(st.binary(min_size=count * raw.itemsize, max_size=count * raw.itemsize))
    if name in _BITS:
        width = _BITS[name]
        patterns = np.frombuffer(words, np.uint8) & ((1 << width) - 1)
        if name in ("i2", "i4"):
            return ((patterns ^ (1 << (width - 1))).astype(np.int8) - (1 << (width - 1))).astype(np.int8)
        return patterns
    return np.frombuffer(words, raw)


@st.composite
def constants_of_any_bits(draw: st.DrawFn) -> tuple[str, Any]:
    name = draw(st.sampled_from(sorted(_TYPES)))
    count = draw(st.integers(0, LARGEST_INLINE + 3))
    bits = _bits(draw, name, count)
    if count and draw(st.booleans()):
        bits = np.repeat(bits[:1], count)
    return name, bits


def import_constant(name: str, bits: Any) -> tuple[Imported, ir.Attribute]:
    with _CONTEXT, ir.Location.unknown():
        if name == "i1":
            words = ", ".join("true" if bit else "false" for bit in bits)
            constant = ir.Attribute.parse(f"dense<{f'[{words}]' if words else ''}> : tensor<{len(bits)}xi1>")
        else:
            constant = ir.DenseElementsAttr.get(bits, type=ir.Type.parse(name), shape=[len(bits)])
        module = ir.Module.create()
        ir.Operation.create(
            "stablehlo.constant",
            results=[ir.RankedTensorType.get([len(bits)], ir.Type.parse(name))],
            attributes={"value": constant},
            ip=ir.InsertionPoint(module.body),
        )
    return import_module(module), constant


def _value(imported: Imported) -> Attribute:
    operation = imported.module.body.block.first_op
    assert operation is not None
    return operation.properties["value"]


@settings(max_examples=300, deadline=None)
@given(constants_of_any_bits())
def test_any_bits_of_any_dtype(made: tuple[str, Any]) -> None:
    name, bits = made
    imported, constant = import_constant(name, bits)
    value = _value(imported)
    if len(bits) <= LARGEST_INLINE:
        assert isinstance(value, DenseIntOrFPElementsAttr)
        held = np.frombuffer(value.data.data, np.uint8 if name == "i1" else bits.dtype)
        np.testing.assert_array_equal(held != 0 if name == "i1" else held.view(np.uint8), _raw(name, bits))
    else:
        assert isinstance(value, DenseResourceAttr)
        assert str(imported.constants[value.resource_handle.data]) == str(constant)
    again = to_jaxlib(imported, imported.module)
    assert again.operation.get_asm(print_generic_op_form=True) == imported.origin.operation.get_asm(
        print_generic_op_form=True
    )


def _raw(name: str, bits: Any) -> Any:
    return bits if name == "i1" else bits.view(np.uint8)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_xdsl_reads_the_values_that_numpy_reads(data: st.DataObject) -> None:
    """xDSL's own view of the bytes is numpy's, so passes compute with the right values."""
    name = data.draw(st.sampled_from([name for name in _TYPES if "complex" not in name]))
    bits = data.draw(st.composite(lambda draw: _bits(draw, name, 4))())
    value = _value(import_constant(name, bits)[0])
    assert isinstance(value, DenseIntOrFPElementsAttr)
    if name == "i1":
        assert value == DenseIntOrFPElementsAttr.from_list(value.type, bits.tolist()), "true is -1"
        return
    meant = bits if _TYPES[name][1] is bits.dtype.type else bits.view(np.int8 if name == "i2" else bits.dtype)
    if not name.startswith(("i", "ui")):
        meant = bits.view(_TYPES[name][1])
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        expected = np.asarray(meant).astype(np.float64)
    np.testing.assert_array_equal(np.array(value.get_values(), np.float64), expected)


@pytest.mark.parametrize("name", ["f32", "bf16", "f8E4M3FN"])
def test_a_constant_that_a_pass_made(name: str) -> None:
    """Not one of the importer's: built anew from the bytes."""
    bits = np.array([1.0, -0.0, np.nan], _TYPES[name][1])
    raw = bits.view(_TYPES[name][0])
    imported, constant = import_constant(name, raw)
    value = _value(imported)
    assert isinstance(value, DenseIntOrFPElementsAttr)
    module = imported.module.clone()
    operation = module.body.block.first_op
    assert operation is not None
    operation.properties["value"] = DenseIntOrFPElementsAttr(value.type, BytesAttr(bytes(value.data.data)))
    assert f"value = {constant}" in to_jaxlib(imported, module).operation.get_asm(print_generic_op_form=True)


def test_minus_infinity() -> None:
    """MLIR's text for it is `dense<0xFF800000>`, which xDSL 0.75 takes for 4.28e9."""
    imported, _ = import_constant("f32", np.array([-np.inf], np.float32))
    value = _value(imported)
    assert isinstance(value, DenseIntOrFPElementsAttr)
    assert value.get_values() == (-np.inf,)
    assert value.type == TensorType(f32, [1])


def test_what_was_not_read_right_is_kept_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The net under the reading of MLIR's text, which ml_dtypes does here."""
    monkeypatch.setattr(constants, "_float", lambda _word, _type: b"\0\0")
    imported, constant = import_constant("bf16", np.array([0x3F80, 0x7FC1], np.uint16))
    value = _value(imported)
    assert isinstance(value, DenseResourceAttr)
    assert imported.constants[value.resource_handle.data] == constant
