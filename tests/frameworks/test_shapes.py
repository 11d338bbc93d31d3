"""Arrays in the user's structures and objects: found, and replaced without a change to any of them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from donation_inspector.frameworks.shapes import arrays, is_deleted, map_arrays, shape_of


class Shared(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.one = nnx.Linear(2, 2, rngs=rngs)
        self.other = self.one


def test_a_shape_stands_for_its_array_also_when_it_is_deleted() -> None:
    mesh = jax.make_mesh((2,), ("d",))
    for array in (
        jnp.ones((4, 2), "bfloat16"),
        jnp.asarray(3.0),
        jax.device_put(jnp.ones((4, 2)), NamedSharding(mesh, PartitionSpec("d"))),
        jax.random.split(jax.random.key(0), 3),
        np.ones(3, "float64"),
    ):
        before = jax.jit(lambda x: x).trace(array).in_avals
        if isinstance(array, jax.Array):
            array.delete()
            assert is_deleted(array)
        assert jax.jit(lambda x: x).trace(shape_of(array)).in_avals == before


def test_every_array_is_found_once_where_nnx_shares_it() -> None:
    model = Shared(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    x = jnp.ones(3)
    found = arrays(({"m": model, "o": optimizer}, [x, 3, "text"], model))
    held = [model.one.kernel.get_value(), model.one.bias.get_value(), optimizer.step.get_value(), x]
    assert {id(one) for one in found} == {id(one) for one in held}
    assert len(found) == len(held)


def test_objects_of_nnx_are_made_anew_and_share_what_they_shared() -> None:
    model = Shared(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1, 0.9), wrt=nnx.Param)
    kernel = model.one.kernel.get_value()
    (new, again), changed = map_arrays(shape_of, ([model, model], {"o": optimizer}))
    assert new is again
    assert new is not model
    assert new.one is new.other
    assert new.one.kernel.get_value() == jax.ShapeDtypeStruct((2, 2), jnp.float32)
    assert changed["o"].step.get_value().shape == ()
    assert model.one.kernel.get_value() is kernel


def test_what_does_not_change_is_the_same_object() -> None:
    model, x = Shared(nnx.Rngs(0)), jnp.ones(3)
    same = map_arrays(lambda one: one, (model, x, "text"))
    assert same[0] is model
    assert same[1] is x


def test_a_module_of_equinox_is_a_pytree_as_any() -> None:
    layer = eqx.nn.Linear(2, 3, key=jax.random.key(0))
    shapes: Any = map_arrays(shape_of, layer)
    assert shapes.weight.shape == (3, 2)
    assert isinstance(shapes.weight, jax.ShapeDtypeStruct)
    assert isinstance(layer.weight, jax.Array)
