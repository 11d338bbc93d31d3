"""Sizes, shapes and dtypes are numpy's and ml_dtypes'; what those don't know is unknown."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Attribute
from xdsl.parser import Parser

from donation_inspector.ir.dialect import make_context
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.importer import import_module
from donation_inspector.ir.size import is_token, nbytes, shape_dtype
from ir.programs import module

_DTYPES = {
    "i1": "bool",
    "i2": "int2",
    "i4": "int4",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "ui2": "uint2",
    "ui4": "uint4",
    "ui8": "uint8",
    "ui16": "uint16",
    "ui32": "uint32",
    "ui64": "uint64",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "f8E3M4": "float8_e3m4",
    "f8E4M3": "float8_e4m3",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn",
    "f4E2M1FN": "float4_e2m1fn",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}


def _type(text: str) -> Attribute:
    return Parser(make_context(), text).parse_type()


@given(st.sampled_from(sorted(_DTYPES)), st.lists(st.integers(0, 40), max_size=4))
def test_tensors(element: str, shape: list[int]) -> None:
    type = _type(f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>")
    expected = np.dtype(getattr(ml_dtypes, _DTYPES[element], _DTYPES[element]))
    assert nbytes(type) == np.zeros(shape, expected).nbytes
    assert shape_dtype(type) == (tuple(shape), expected.name)


@pytest.mark.parametrize(
    ("text", "size", "shown"),
    [
        ("tensor<?x16xf32>", None, ((None, 16), "float32")),
        ("tensor<*xf32>", None, ((), "tensor<*xf32>")),
        ("tensor<4xindex>", None, ((4,), "index")),
        ("tensor<4xtf32>", None, ((4,), "tf32")),
        ("tensor<4xi7>", None, ((4,), "i7")),
        ("tensor<4x!quant.any>", None, ((4,), "!quant.any")),
        ("complex<bf16>", None, ((), "complex<bf16>")),
        ("!stablehlo.token", 0, ((), "token")),
        ("tuple<tensor<8xf32>, !stablehlo.token>", 32, ((), "tuple<tensor<8xf32>, !stablehlo.token>")),
        ("tuple<tensor<8xf32>, tensor<?xi32>>", None, ((), "tuple<tensor<8xf32>, tensor<?xi32>>")),
        ("f32", 4, ((), "float32")),
        ("vector<3xf64>", 24, ((3,), "float64")),
    ],
)
def test_the_rest(text: str, size: int | None, shown: object) -> None:
    assert nbytes(_type(text)) == size
    assert shape_dtype(_type(text)) == shown
    assert is_token(_type(text)) == (text == "!stablehlo.token")


def test_the_file_of_odd_types() -> None:
    function = entry_function(import_module(module("07_odd_types.mlir")).module)
    assert [nbytes(argument.type) for argument in function.args] == [8, 8, 8, 4, 4, 32, 32, 0]
