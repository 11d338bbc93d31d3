"""What goes into an NNX step and comes out, by NNX's own graph: shared, new, added by NNX, beside static arguments."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import flax
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

import donation_inspector as di
from donation_inspector.errors import TraceError

X = jnp.ones((3, 4))


class Noisy(nnx.Module):
    """Shapes that tell the parameters apart: (4, 5) and (5,)."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(4, 5, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.dropout(self.linear(x))


def noisy_step(model: Noisy, optimizer: Any, x: Any) -> Any:
    loss, gradients = nnx.value_and_grad(lambda model: (model(x) ** 2).sum())(model)
    optimizer.update(model, gradients)
    return loss


def noisy_training(tx: Any = None) -> tuple[Noisy, Any]:
    model = Noisy(nnx.Rngs(0))
    return model, nnx.Optimizer(model, tx or optax.adam(1e-3), wrt=nnx.Param)


ADDED = {
    "model.dropout.rngs.count": "nnx.Rngs",
    "model.dropout.rngs.key": "nnx.Rngs",
    "optimizer.step": "nnx.Optimizer",
}


@pytest.mark.parametrize("options", [{}, {"graph": False}], ids=["graph mode", "tree mode"])
def test_what_nnx_adds_is_told(options: Any) -> None:
    inspection = di.inspect(nnx.jit(noisy_step, **options), *noisy_training(), X)

    assert {one.path: one.added_by for one in inspection.arguments if one.added_by} == ADDED
    told = {one.path: one.reason for one in inspection.arguments if one.reason.startswith("added by")}
    assert {path: reason.partition(": ")[0] for path, reason in told.items()} == {
        path: f"added by {by}" for path, by in ADDED.items()
    }
    added = {one.updates: one.added_by for one in inspection.results if one.added_by}
    assert added.items() <= ADDED.items()
    assert {"model.dropout.rngs.count", "optimizer.step"} <= added.keys()
    assert "added by nnx.Optimizer" in inspection.report()


def test_what_nnx_adds_to_a_split_state_is_told() -> None:
    graph, state = nnx.split(noisy_training())

    def step(state: Any, x: Any) -> Any:
        model, optimizer = nnx.merge(graph, state)
        noisy_step(model, optimizer, x)
        return nnx.state((model, optimizer))

    inspection = di.inspect(jax.jit(step), state, X)

    assert {one.path: one.added_by for one in inspection.arguments if one.added_by} == {
        "state[0]['dropout']['rngs']['count']": "nnx.Rngs",
        "state[0]['dropout']['rngs']['key']": "nnx.Rngs",
        "state[1]['step']": "nnx.Optimizer",
    }
    assert [one.updates for one in inspection.results] == [one.path for one in inspection.arguments[:-1]]


def test_a_variable_that_the_step_makes_is_new_and_shifts_no_other_name() -> None:
    @nnx.jit
    def caching(model: Noisy, x: Any) -> Any:
        model.cache = nnx.Cache(x[0, :2])
        return model(x)

    inspection = di.inspect(caching, Noisy(nnx.Rngs(0)), X)

    assert [(one.path, one.shape) for one in inspection.results] == [
        ("model.cache, new", (2,)),
        ("model.dropout.rngs.count, updated", ()),
        ("model.dropout.rngs.key, updated", ()),
        ("model.linear.bias, updated", (5,)),
        ("model.linear.kernel, updated", (4, 5)),
        ("result", (3, 5)),
    ]


def test_what_the_step_returns_has_its_place_there() -> None:
    @nnx.jit
    def making(model: Noisy, x: Any) -> Any:
        return {"made": nnx.Linear(2, 3, rngs=nnx.Rngs(1)), "same": model}, x

    inspection = di.inspect(making, Noisy(nnx.Rngs(0)), X)

    returned = [(one.path, one.shape) for one in inspection.results if one.updates is None]
    assert returned == [("[0]['made'].bias", (3,)), ("[0]['made'].kernel", (2, 3)), ("[1]", (3, 4))]


def test_static_arguments_shift_nothing() -> None:
    @nnx.jit(static_argnums=(0, 2))
    def scaled(times: int, model: Noisy, plus: int, other: nnx.Linear, x: Any) -> Any:
        model.linear.bias[...] += times + plus
        other.bias[...] += 1
        return x

    inspection = di.inspect(scaled, 2, Noisy(nnx.Rngs(0)), 3, nnx.Linear(2, 6, rngs=nnx.Rngs(1)), X)

    by_title = {one.title: one.shape for one in inspection.results}
    assert by_title["model.linear.bias, updated"] == (5,)
    assert by_title["other.bias, updated"] == (6,)


def test_what_is_sharded_apart_is_packed_apart() -> None:
    """NNX packs the Variables of each filter in a list of their own."""
    mesh = jax.make_mesh((2,), ("x",))
    replicated, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("x"))
    filters = nnx.StateSharding({nnx.Param: replicated, ...: replicated})
    step = nnx.jit(noisy_step, in_shardings=(filters, filters, split))
    model, optimizer = noisy_training()
    whole = di.inspect(nnx.jit(noisy_step), model, optimizer, X)

    inspection = di.inspect(step, model, optimizer, jnp.ones((4, 4)))

    assert {one.path: one.shape for one in inspection.arguments[:-1]} == {
        one.path: one.shape for one in whole.arguments[:-1]
    }
    assert {one.path: one.shape for one in inspection.results} == {one.path: one.shape for one in whole.results}
    assert [one.path for one in inspection.results] != [one.path for one in whole.results]


def test_a_model_that_two_arguments_share_has_the_first_ones_names() -> None:
    model = Noisy(nnx.Rngs(0))

    class Pair(nnx.Module):
        def __init__(self) -> None:
            self.model = model
            self.own = nnx.Param(jnp.ones(7))

    @nnx.jit
    def step(model: Noisy, pair: Pair, x: Any) -> Any:
        pair.model.linear.bias[...] += 1
        pair.own[...] += 1
        return model(x)

    inspection = di.inspect(step, model, Pair(), X)

    assert [one.path for one in inspection.arguments][2:] == [
        "model.linear.bias",
        "model.linear.kernel",
        "pair.own",
        "x",
    ]
    assert [one.updates for one in inspection.results][2:] == [
        "model.linear.bias",
        "model.linear.kernel",
        "pair.own",
        None,
    ]


def test_one_array_in_two_variables_has_both_names() -> None:
    model = Noisy(nnx.Rngs(0))
    kept = nnx.Param(model.linear.kernel.get_value())

    @nnx.jit
    def step(model: Noisy, kept: nnx.Param[Any], x: Any) -> Any:
        return model(x) + (x @ kept)

    inspection = di.inspect(step, model, kept, X)

    assert [one.path for one in inspection.arguments][-3:] == ["model.linear.kernel", "kept", "x"]


def test_names_hold_no_arrays() -> None:
    model = nnx.Linear(600, 600, rngs=nnx.Rngs(0))
    inspection = di.inspect(nnx.jit(lambda model, x: model(x)), model, jnp.ones((1, 600)))
    array = weakref.ref(model.kernel.get_value())

    del model
    gc.collect()

    assert array() is None
    assert inspection.arguments[1].path == "model.kernel"


def test_a_flax_that_is_too_old_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimizer = noisy_training()
    monkeypatch.setattr(flax, "__version__", "0.11.2")

    with pytest.raises(TraceError, match=r"flax 0\.11\.2 is too old.*from flax 0\.12 on.*pip install -U 'flax>=0\.12'"):
        di.inspect(nnx.jit(noisy_step), model, optimizer, X)

    monkeypatch.undo()
    assert jnp.isfinite(nnx.jit(noisy_step)(model, optimizer, X))
