"""What people give by mistake: each is one clear message that says what, where, and what to do; nothing is harmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx
from jax.sharding import PartitionSpec as P

import donation_inspector as di
from donation_inspector.errors import TraceError


def batches() -> Iterator[Any]:
    yield from (jnp.full(3, float(number)) for number in range(3))


# ---- iterators


def step(state: Any, batch: Any) -> Any:
    return state + next(batch)


@pytest.mark.parametrize("jit", [lambda f: f, jax.jit, eqx.filter_jit, nnx.jit], ids=["plain", "jax", "eqx", "nnx"])
@pytest.mark.parametrize("iterator", [batches, lambda: iter(list(batches()))], ids=["generator", "list_iterator"])
def test_an_iterator_is_refused_and_keeps_what_it_has(jit: Callable[[Any], Any], iterator: Callable[[], Any]) -> None:
    given = iterator()

    with pytest.raises(TraceError, match=r"batch\['train'\] is an iterator \(.*Nothing was taken.*batch = next\(…\)"):
        di.inspect(jit(step), jnp.ones(3), {"train": given})

    assert len(list(given)) == 3


# ---- a model that an earlier call took


class Net(nnx.Module):
    def __init__(self) -> None:
        self.first = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        self.second = nnx.Linear(2, 2, rngs=nnx.Rngs(0))


def test_a_donated_nnx_model_is_named_by_its_leaves() -> None:
    model = Net()
    for leaf in jax.tree.leaves(nnx.state(model.first)):
        leaf.delete()

    told = r"^model\.first\.bias, model\.first\.kernel: these arrays have been deleted, .* donated them\. Pass"
    with pytest.raises(TraceError, match=told):
        di.inspect(nnx.jit(lambda model, x: model.first(x)), model, jnp.ones((1, 2)))


def test_a_donated_equinox_model_is_named_by_its_leaves() -> None:
    model = eqx.nn.MLP(2, 2, 2, 1, key=jax.random.key(0))
    eqx.filter_jit(lambda model: model, donate="all")(model)

    with pytest.raises(
        TraceError, match=r"^model\.layers\[0\]\.weight, model\.layers\[0\]\.bias, .* have been deleted"
    ):
        di.inspect(eqx.filter_jit(lambda model, x: jax.vmap(model)(x)), model, jnp.ones((1, 2)))


# ---- versions


def test_an_equinox_that_is_too_old_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eqx, "__version__", "0.11.4")

    with pytest.raises(TraceError, match=r"equinox 0\.11\.4 is too old.*pip install -U 'equinox>=0\.13'"):
        di.inspect(eqx.filter_jit(lambda x: x), jnp.ones(3))


# ---- meshes and devices


def constrained(x: Any) -> Any:
    return jax.lax.with_sharding_constraint(2 * x, P("x"))


def sharded(x: Any) -> Any:
    return jax.shard_map(lambda part: 2 * part, in_specs=P("x"), out_specs=P("x"))(x)


@pytest.mark.parametrize("fn", [constrained, sharded])
def test_a_mesh_that_is_not_set_is_told_with_the_way(fn: Callable[[Any], Any]) -> None:
    with pytest.raises(TraceError) as raised:
        di.inspect(jax.jit(fn), jnp.ones(8))

    name = fn.__name__
    assert f"{name} needs a mesh, and none is set: " in str(raised.value)
    assert str(raised.value).endswith(f"    with jax.set_mesh(mesh):\n        inspect({name}, …)")
    with jax.set_mesh(jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))):
        assert di.inspect(jax.jit(fn), jnp.ones(8)).devices == 2


def test_jit_shardings_without_a_mesh_are_told_too() -> None:
    with pytest.raises(TraceError, match="needs a mesh, and none is set"):
        di.inspect(jax.jit(lambda x: x, in_shardings=P("x")), jnp.ones(8))


def on(device: int, *shape: int) -> Any:
    return jax.device_put(jnp.ones(shape), jax.devices()[device])


def test_arrays_on_two_devices_are_told_by_leaf() -> None:
    params = {"b": on(0, 2), "w": on(1, 2, 2)}

    with pytest.raises(TraceError) as raised:
        di.inspect(jax.jit(lambda params, x: x @ params["w"] + params["b"]), params, on(0, 3, 2))

    assert str(raised.value) == (
        "<lambda> cannot run on arrays that are on different devices: params['b'], x on cpu:0; params['w'] on cpu:1. "
        "Put them together, as in jax.device_put(params['w'], params['b'].sharding)."
    )


def test_they_are_told_by_the_frameworks_leaf() -> None:
    linear = eqx.tree_at(lambda one: one.bias, eqx.nn.Linear(2, 2, key=jax.random.key(0)), on(3, 2))

    with pytest.raises(TraceError, match=r"model\.bias on cpu:3; x on cpu:1\. .*device_put\("):
        di.inspect(eqx.filter_jit(lambda model, x: model(x)), linear, on(1, 2))


def test_a_mesh_and_a_device_are_two_places() -> None:
    mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    spread = jax.device_put(jnp.ones(8), jax.NamedSharding(mesh, P("x")))

    with pytest.raises(TraceError, match=r"a on 4 devices \(cpu:0 … cpu:3\); b on cpu:5"):
        di.inspect(lambda a, b: a + b, spread, on(5, 8))
