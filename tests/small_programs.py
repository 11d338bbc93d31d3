"""Small programs for the compile and measure tests, as Programs and as modules to edit."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from donation_inspector.xla import internals
from donation_inspector.xla.lowering import lower
from donation_inspector.xla.program import Program


def program(
    fn: Callable[..., Any], *shapes: tuple[int, ...], donate: tuple[int, ...] = (), dtype: Any = None
) -> Program:
    """`fn` on arrays of these shapes, float32 unless said."""
    arguments = tuple(jax.ShapeDtypeStruct(shape, dtype or jnp.float32) for shape in shapes)
    return lower(jax.jit(fn, donate_argnums=donate), arguments, {}).program()


def with_text(original: Program, text: str) -> Program:
    """The program with another module in its place."""
    from jaxlib.mlir import ir

    with internals.mlir.make_ir_context():
        module = ir.Module.parse(text)
        data = io.BytesIO()
        module.operation.write_bytecode(data)
    return dataclasses.replace(original, bytecode=data.getvalue())


def add(a: Any, b: Any) -> Any:
    return a + b


def endless(a: Any) -> Any:
    """Never ends when it runs: the counter stays below 3, and XLA cannot see it."""
    _, out = jax.lax.while_loop(lambda c: c[0] < 5, lambda c: ((c[0] + 1) % 3, c[1] + 1), (0, a))
    return out


TWO_INPUTS_ONE_RESULT = """
module @twice {
  func.func public @main(%a: tensor<8xf32> {tf.aliasing_output = 0 : i32},
                         %b: tensor<8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8xf32> {
    %0 = stablehlo.add %a, %b : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""

UNKNOWN_CUSTOM_CALL = """
module @unknown {
  func.func public @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.custom_call @only_there(%a) {api_version = 4 : i32, backend_config = {}}
        : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""


TWO_FOR_ONE_RESULT = """
module {
  func.func public @main(%arg0: tensor<8xf32> {tf.aliasing_output = 0 : i32},
                         %arg1: tensor<8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
"""A program that asks XLA for what it refuses: two arguments are to be the same result."""
