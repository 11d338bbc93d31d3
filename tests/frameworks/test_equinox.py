"""Equinox steps: named as the user wrote them, with arrays or shapes alone, and running as before in every case."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest

from donation_inspector.errors import TraceError
from donation_inspector.frameworks.step import lower
from donation_inspector.xla.lowering import Lowered, decide

X, Y = jnp.ones((3, 4)), jnp.ones((3, 2))
OPTIMIZER = optax.adam(1e-3)


class Net(eqx.Module):
    mlp: eqx.nn.MLP
    scale: jax.Array
    name: str = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        return self.mlp(x) * self.scale

    @eqx.filter_jit
    def forward(self, x: Any) -> Any:
        return jax.vmap(self)(x)


def make_net() -> Net:
    return Net(eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0)), jnp.ones(2), "policy")


@eqx.filter_jit(donate="all-except-first")
def step(model: Net, opt_state: Any, x: Any, y: Any, lr: float = 1.0, *, flag: bool = True) -> Any:
    del lr, flag
    value, gradients = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
    updates, opt_state = OPTIMIZER.update(gradients, opt_state)
    return eqx.apply_updates(model, updates), opt_state, value


class Training:
    def __init__(self) -> None:
        self.net = make_net()
        self.opt_state = OPTIMIZER.init(eqx.filter(self.net, eqx.is_array))

    def run(self) -> list[float]:
        losses: list[float] = []
        for _ in range(3):
            self.net, self.opt_state, value = step(self.net, self.opt_state, X + 0, Y + 0)
            losses.append(float(value))
        return [*losses, float(self.net.forward(X).sum())]


@functools.cache
def undisturbed() -> list[float]:
    return Training().run()


@pytest.fixture
def training() -> Iterator[Training]:
    """After each test, the user's own step gives what it gives where nobody looked."""
    inspected = Training()
    yield inspected
    assert inspected.run() == undisturbed()


def paths(lowered: Lowered) -> list[str]:
    return [leaf.path for leaf in lowered.signature.arguments]


def test_a_filter_jit_step_is_named_as_the_user_wrote_it(training: Training) -> None:
    lowered = lower(step, (training.net, training.opt_state, X, Y), {})

    assert set(paths(lowered)) >= {"model.mlp.layers[0].weight", "model.scale", "opt_state[0].count", "x", "y"}
    assert {leaf.root for leaf in lowered.signature.arguments} == {"model", "opt_state", "x", "y"}
    results = [leaf.path for leaf in lowered.signature.results]
    assert results[:2] == ["eqx marker", "[0].mlp.layers[0].weight"]
    assert results[-1] == "[2]"


def test_every_leaf_is_the_users_array_of_that_name(training: Training) -> None:
    lowered = lower(step, (training.net, training.opt_state, X, Y), {})

    scope = {"model": training.net, "opt_state": training.opt_state, "x": X, "y": Y}
    for leaf, value in zip(lowered.signature.arguments, lowered.inputs, strict=True):
        assert eval(leaf.path, {}, scope) is value


def test_its_donation_is_what_equinox_asks_for(training: Training) -> None:
    lowered = lower(step, (training.net, training.opt_state, X, Y), {})

    assert {leaf.root for leaf in lowered.signature.arguments if leaf.donated} == {"opt_state", "x", "y"}
    donated = frozenset(leaf.index for leaf in lowered.signature.arguments if leaf.donated)
    assert decide(lowered, donated) == lowered.donation


def test_equinoxs_hidden_warning_is_told(training: Training) -> None:
    (note,) = lower(step, (training.net, training.opt_state, X, Y), {}).warnings

    assert str(note).startswith("Some donated buffers were not usable: x float32[3,4], y float32[3,2].")


def test_it_is_the_program_that_equinox_lowers(training: Training) -> None:
    lowered = lower(step, (training.net, training.opt_state, X, Y), {})

    own = step.lower(training.net, training.opt_state, X, Y).lowered
    assert str(lowered.module) == str(own.compiler_ir())
    assert lowered.jaxpr() is not None


def test_shapes_without_arrays_give_the_same_program(training: Training) -> None:
    shapes: Any = eqx.filter_eval_shape(lambda: (training.net, training.opt_state, X, Y))

    lowered = lower(step, shapes, {})

    with_arrays = lower(step, (training.net, training.opt_state, X, Y), {})
    assert str(lowered.module) == str(with_arrays.module)
    assert paths(lowered) == paths(with_arrays)
    assert all(isinstance(value, jax.ShapeDtypeStruct) for value in lowered.inputs)


def test_a_method_is_named_by_self(training: Training) -> None:
    assert paths(lower(training.net.forward, (X,), {}))[-2:] == ["self.scale", "x"]


def test_a_module_that_is_jitted_itself_is_taken(training: Training) -> None:
    assert "Net.scale" in paths(lower(eqx.filter_jit(training.net), (X[0],), {}))


def test_a_partial_is_taken(training: Training) -> None:
    lowered = lower(functools.partial(step, training.net), (training.opt_state, X, Y), {"flag": False})

    assert paths(lowered) == paths(lower(step, (training.net, training.opt_state, X, Y), {"flag": False}))


def test_a_lowered_step_is_taken(training: Training) -> None:
    stage = step.lower(training.net, training.opt_state, X, Y)

    assert len(lower(stage, (), {}).signature.arguments) == 18


def test_a_jax_jit_of_partitioned_parts_is_taken(training: Training) -> None:
    arrays, rest = eqx.partition(training.net, eqx.is_array)

    def forward(arrays: Any, x: Any) -> Any:
        return jax.vmap(eqx.combine(arrays, rest))(x)

    assert paths(lower(forward, (arrays, X), {}))[0] == "arrays.mlp.layers[0].weight"


def test_a_plain_function_with_a_whole_module_is_refused_with_the_way(training: Training) -> None:
    def forward(model: Any, x: Any) -> Any:
        return jax.vmap(model)(x)

    with pytest.raises(TraceError, match=r"its argument model\.mlp\.activation is a .*eqx\.filter_jit"):
        lower(forward, (training.net, X), {})


def test_a_step_that_fails_to_trace_is_one_message(training: Training) -> None:
    with pytest.raises(TraceError, match=r"step cannot be traced: TypeError: .*incompatible shapes"):
        lower(step, (training.net, training.opt_state, X, X), {})


def test_a_wrong_call_is_one_message(training: Training) -> None:
    with pytest.raises(TraceError, match=r"missing a required argument: 'y'\nIt is called as step\("):
        lower(step, (training.net, training.opt_state, X), {})
