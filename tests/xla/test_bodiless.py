"""Functions without a body, on which XLA dies: where nothing calls it, it makes no difference; a called one is told."""

from __future__ import annotations

import pytest

import donation_inspector as di

_DECLARED = """
module {{
  func.func private @elsewhere(tensor<2xf32>) -> tensor<2xf32>
  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
    %0 = {operation} : {type}
    return %0 : tensor<2xf32>
  }}
}}
"""
_TYPE = "tensor<2xf32>"


@pytest.mark.parametrize(
    ("operation", "type_", "status"),
    [
        ("stablehlo.add %a, %a", _TYPE, "ok"),
        ("func.call @elsewhere(%a)", f"({_TYPE}) -> {_TYPE}", "refused"),
    ],
)
def test_a_function_without_a_body(operation: str, type_: str, status: str) -> None:
    comparison = di.inspect_ir(_DECLARED.format(operation=operation, type=type_)).compare()

    for variant in comparison.variants.values():
        assert variant.status == status
        assert status == "ok" or "@elsewhere is called and has no body" in str(variant.error)
