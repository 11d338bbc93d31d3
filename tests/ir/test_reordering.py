"""Another order of what the entry function takes and returns: MLIR verifies it, JAX says what it is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.errors import IRError
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.exporter import to_jaxlib
from donation_inspector.ir.importer import import_module
from donation_inspector.ir.reordering import reordered


def test_arguments_results_and_their_attributes_change_places_together() -> None:
    def step(p: jax.Array, n: jax.Array, g: jax.Array) -> tuple[jax.Array, ...]:
        return p + g, n + 1, g.sum()

    def turned(g: jax.Array, p: jax.Array, n: jax.Array) -> tuple[jax.Array, ...]:
        added, more, total = step(p, n, g)
        return more, added, total

    p, n, g = jnp.ones((4, 2)), jnp.ones(3, jnp.int32), jnp.ones((4, 2))
    module = jax.jit(step, donate_argnums=(0, 1)).lower(p, n, g).compiler_ir()
    imported = import_module(module)
    before = str(module)
    made = reordered(imported.module, [2, 0, 1], [1, 0, 2])
    exported = to_jaxlib(imported, made)
    assert exported.operation.verify()
    assert str(module) == before
    func = entry_function(made)
    assert [str(one) for one in func.function_type.outputs] == ["tensor<3xi32>", "tensor<4x2xf32>", "tensor<f32>"]
    wanted = str(jax.jit(turned).lower(g, p, n).compiler_ir())
    types = "(%arg0: tensor<4x2xf32>, %arg1: tensor<4x2xf32> {tf.aliasing_output = 0 : i32}, %arg2: tensor<3xi32> {tf"
    assert types in str(exported)
    body = [line for line in str(exported).splitlines() if "stablehlo" in line]
    assert body == [line.replace("jit_turned", "jit_step") for line in wanted.splitlines() if "stablehlo" in line]
    assert str(exported).count('jax.result_info = "result[1]"}, tensor<4x2xf32>') == 1


def test_several_blocks_have_no_single_place_for_the_results() -> None:
    module = """
module {
  func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    cf.br ^next(%a : tensor<8xf32>)
  ^next(%b: tensor<8xf32>):
    return %b : tensor<8xf32>
  }
}
"""
    with pytest.raises(IRError, match="@main is not one block that returns"):
        reordered(di.inspect_ir(module)._subject.imported.module, [0], [0])
