"""What is unsafe to donate; where JAX itself can be asked, by calling it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import donation_inspector as di
from donation_inspector.advice.recommendation import Unsafe
from donation_inspector.questions.compare import ask as compiling
from xla_in_process import InProcess


def add(a: Any, b: Any) -> Any:
    return a + 1, b * 2


def array() -> jax.Array:
    return jnp.arange(64.0).reshape(8, 8) + 1


def unsafe(function: Any, *arguments: Any, donate: Any = ()) -> dict[str, Unsafe]:
    found = di.inspect(jax.jit(function, donate_argnums=donate), *arguments).recommend(budget=0)
    return {one.path: one for one in found.unsafe}


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_variants", InProcess().compile_variants)


def test_the_same_array_at_two_arguments_is_refused_by_jax() -> None:
    x = array()
    found = unsafe(add, x, x)
    assert found.keys() == {"a", "b"}
    assert "the same array as b" in found["a"].reason
    assert all(one.certain for one in found.values())
    with pytest.raises(Exception, match="donat"):
        jax.jit(add, donate_argnums=0)(x, x)


def test_a_shared_leaf_is_told_by_the_paths_of_both() -> None:
    def step(params: Any, x: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf - x.sum(), params)

    tied = array()
    params = {"embed": tied, "head": tied, "bias": array()}
    found = unsafe(step, params, jnp.ones(3), donate=0)
    assert found.keys() == {"params['embed']", "params['head']"}
    assert found["params['embed']"].leaves == (1,)
    assert "params['head']" in found["params['embed']"].reason


def test_another_array_on_the_same_buffer_is_refused_by_jax() -> None:
    x = array()
    part = x.addressable_shards[0].data
    other = jnp.from_dlpack(x) if part is x else part
    assert other is not x
    assert unsafe(add, x, other).keys() == {"a", "b"}
    assert "shares its buffer with b" in unsafe(add, x, other)["a"].reason


def test_another_array_on_the_same_buffers_of_two_devices() -> None:
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2])
    x = jax.device_put(array(), NamedSharding(mesh, PartitionSpec("x")))
    parts = [shard.data for shard in x.addressable_shards]
    other = jax.make_array_from_single_device_arrays(x.shape, x.sharding, parts)
    assert "shares its buffer with b" in unsafe(add, x, other)["a"].reason


def test_a_live_numpy_view_is_told_as_long_as_jax_cancels_the_donation() -> None:
    def donated(x: jax.Array) -> bool:
        jax.jit(add, donate_argnums=0)(x, array())
        return x.is_deleted()

    x, y = array(), array()
    view = np.asarray(x)[2:]
    copy = np.array(y)
    assert unsafe(add, x, y, donate=(0, 1)).keys() == {"a"}
    assert "numpy view" in unsafe(add, x, y, donate=0)["a"].reason
    assert not donated(x)
    del view
    assert unsafe(add, x, y, donate=(0, 1)) == {}
    assert donated(x)
    assert copy.shape == y.shape


def test_what_is_passed_again_is_a_guess_and_says_so() -> None:
    def step(params: Any, batch: Any, key: jax.Array) -> Any:
        grads = jax.grad(lambda p: jnp.sum((batch["w"] @ p["w"]) ** 2))(params)
        noise = jax.random.normal(key, (8, 8))
        new = jax.tree.map(lambda p, g: p - 0.1 * g + noise, params, grads)
        return new, batch["w"] @ params["w"]

    found = unsafe(step, {"w": array()}, {"w": array()}, jax.random.PRNGKey(0))
    assert found.keys() == {"batch['w']"}
    assert not found["batch['w']"].certain
    assert "probably passed again" in found["batch['w']"].reason


def test_who_donates_it_knows_that_it_is_not_passed_again() -> None:
    assert unsafe(lambda w, x: w - x, array(), array(), donate=1) == {}


def test_shapes_alone_show_no_arrays() -> None:
    shape = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    assert unsafe(add, shape, shape) == {}


def test_what_is_unsafe_is_not_recommended() -> None:
    x = array()
    found = di.inspect(add, x, x).recommend(budget=0)
    assert found.donated == frozenset()
    assert found.baselines["jax"] == found.total
    assert "Unsafe to donate: a: it is the same array as b" in repr(found)
    assert di.inspect(add, x, array()).recommend(budget=0).donated == {0, 1}
