"""NNX steps: named as the user wrote them, refused where JAX cannot trace them, and running as before in every case."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from donation_inspector.errors import TraceError
from donation_inspector.frameworks.step import lower
from donation_inspector.xla.lowering import decide

X, Y = jnp.ones((3, 4)), jnp.ones((3, 2))
ADAM = optax.adam(1e-3)


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(4, 8, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.out = nnx.Linear(8, 2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.out(nnx.relu(self.norm(self.hidden(x))))

    @nnx.jit(donate_argnums=0)
    def shift(self, x: Any) -> Any:
        self.hidden.bias[...] += x.mean(0).sum()
        return x.sum()


def loss(model: Net, x: Any, y: Any) -> Any:
    return ((model(x) - y) ** 2).mean()


def plain_step(model: Net, optimizer: Any, x: Any, y: Any) -> Any:
    value, gradients = nnx.value_and_grad(loss)(model, x, y)
    optimizer.update(model, gradients)
    return value


STEP = nnx.jit(plain_step, donate_argnames=("model", "optimizer"))


class Training:
    """A model, its optimizer and three ways people write the step."""

    def __init__(self) -> None:
        self.model = Net(nnx.Rngs(0))
        self.optimizer = nnx.Optimizer(self.model, ADAM, wrt=nnx.Param)
        self.step = STEP

    def run(self) -> list[float]:
        return [float(self.step(self.model, self.optimizer, X, Y)) for _ in range(3)] + [float(self.model.shift(X))]

    def through_attributes(self, x: Any, y: Any) -> Any:
        return self.step(self.model, self.optimizer, x, y)


@functools.cache
def undisturbed() -> tuple[list[float], list[Any]]:
    alone = Training()
    return alone.run(), jax.tree.leaves(nnx.state(alone.model))


@pytest.fixture
def training() -> Iterator[Training]:
    """After each test, the user's own step gives what it gives where nobody looked."""
    inspected = Training()
    yield inspected
    values, state = undisturbed()
    assert inspected.run() == values
    for mine, other in zip(jax.tree.leaves(nnx.state(inspected.model)), state, strict=True):
        np.testing.assert_array_equal(mine, other)


MODEL_PATHS = [
    f"model.{part}"
    for part in (
        "hidden.bias",
        "hidden.kernel",
        "norm.bias",
        "norm.mean",
        "norm.scale",
        "norm.var",
        "out.bias",
        "out.kernel",
    )
]


def test_a_jitted_step_is_named_as_the_user_wrote_it(training: Training) -> None:
    lowered = lower(training.step, (training.model, training.optimizer, X, Y), {})

    paths = [leaf.path for leaf in lowered.signature.arguments]
    assert paths[:8] == MODEL_PATHS
    assert paths[8:10] == ["optimizer.opt_state[0].count", "optimizer.opt_state[0].mu.hidden.bias"]
    assert paths[-3:] == ["optimizer.step", "x", "y"]
    assert {leaf.root for leaf in lowered.signature.arguments} == {"model", "optimizer", "x", "y"}
    assert [leaf.path for leaf in lowered.signature.results] == [*(f"{path}, updated" for path in paths[:-2]), "result"]
    assert [leaf.updates for leaf in lowered.signature.results] == [*paths[:-2], None]
    assert lowered.inputs[1] is training.model.hidden.kernel.get_value()


def test_its_donation_is_jaxs(training: Training) -> None:
    lowered = lower(training.step, (training.model, training.optimizer, X, Y), {})

    donated = frozenset(leaf.index for leaf in lowered.signature.arguments if leaf.donated)
    assert donated == frozenset(range(len(lowered.signature.arguments) - 2))
    assert len(lowered.donation.aliases) == len(donated)
    assert decide(lowered, donated) == lowered.donation


def test_every_leaf_is_the_users_array_of_that_name(training: Training) -> None:
    lowered = lower(training.step, (training.model, training.optimizer, X, Y), {})

    scope = {"model": training.model, "optimizer": training.optimizer, "x": X, "y": Y}
    for leaf, value in zip(lowered.signature.arguments, lowered.inputs, strict=True):
        found = eval(leaf.path, {}, scope)
        assert (found.get_value() if isinstance(found, nnx.Variable) else found) is value


def test_a_method_is_named_by_self(training: Training) -> None:
    lowered = lower(training.model.shift, (X,), {})

    assert [leaf.path for leaf in lowered.signature.arguments][1] == "self.hidden.kernel"
    assert lowered.signature.arguments[1].donated


def test_a_model_of_shapes_alone_is_taken(training: Training) -> None:
    shapes = nnx.eval_shape(lambda: Net(nnx.Rngs(0)))

    lowered = lower(Net.shift, (shapes, jax.ShapeDtypeStruct((3, 4), jnp.float32)), {})

    assert [leaf.path for leaf in lowered.signature.arguments][:2] == ["self.hidden.bias", "self.hidden.kernel"]
    assert all(isinstance(value, jax.ShapeDtypeStruct) for value in lowered.inputs)
    assert training.model is not shapes


def test_tree_mode_is_taken(training: Training) -> None:
    lowered = lower(nnx.jit(plain_step, graph=False), (training.model, training.optimizer, X, Y), {})

    assert [leaf.path for leaf in lowered.signature.arguments][:8] == MODEL_PATHS
    # what stays as it is comes back in graph mode alone
    changed = [path for path in MODEL_PATHS if not path.startswith("model.norm.")]
    returned = [leaf.path for leaf in lowered.signature.results]
    assert returned[0] == "result"
    assert {f"{path}, updated" for path in changed} < set(returned)
    assert "optimizer.opt_state[0].mu.hidden.kernel, updated" in returned
    assert len(set(returned)) == len(returned)


def test_a_traced_or_lowered_step_is_taken(training: Training) -> None:
    args = (training.model, training.optimizer, X, Y)

    for stage in (training.step.trace(*args), training.step.lower(*args)):
        assert len(lower(stage, (), {}).signature.arguments) == 24


def test_a_pure_function_of_split_state_is_taken(training: Training) -> None:
    graph, state = nnx.split(training.model)

    def forward(state: Any, x: Any) -> Any:
        return nnx.merge(graph, state)(x)

    assert len(lower(forward, (state, X), {}).signature.arguments) == 9


def test_a_function_that_only_reads_a_model_outside_is_taken(training: Training) -> None:
    frozen = nnx.Linear(4, 2, rngs=nnx.Rngs(1))

    assert lower(lambda x: frozen(x), (X,), {}).signature.results[0].shape == (3, 2)
    assert training.model is not None


def calls_the_step(training: Training) -> Callable[..., Any]:
    step, model, optimizer = training.step, training.model, training.optimizer

    def outer(x: Any, y: Any) -> Any:
        return step(model, optimizer, x, y)

    return outer


def changes_a_model_outside(training: Training) -> Callable[..., Any]:
    def touching(x: Any, _: Any) -> Any:
        training.model.hidden.bias[...] *= 2
        return x

    return touching


@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit], ids=["plain", "jax.jit"])
def test_nnx_arguments_outside_nnx_jit_are_refused(training: Training, wrapped: Any) -> None:
    with pytest.raises(TraceError, match=r"an NNX object \(model: Net\) but is not jitted by nnx\.jit.*@nnx\.jit"):
        lower(wrapped(plain_step), (training.model, training.optimizer, X, Y), {})


def trains_a_model_outside(training: Training) -> Callable[..., Any]:
    def training_one(x: Any, y: Any) -> Any:
        loss, gradients = nnx.value_and_grad(lambda model: ((model(x) - y) ** 2).mean())(training.model)
        training.optimizer.update(training.model, gradients)
        return loss

    return training_one


@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit], ids=["plain", "jax.jit"])
@pytest.mark.parametrize("make", [calls_the_step, changes_a_model_outside, trains_a_model_outside])
def test_a_function_that_changes_live_objects_is_refused(training: Training, make: Any, wrapped: Any) -> None:
    with pytest.raises(TraceError, match=r"changes NNX objects, but is not jitted by nnx\.jit") as raised:
        lower(wrapped(make(training)), (X, Y), {})

    assert "Your objects are as they were before. Inspect" in str(raised.value)


def test_the_refusal_names_the_step_to_inspect(training: Training) -> None:
    with pytest.raises(TraceError, match=r"Inspect step itself, .*: inspect\(step, model, optimizer, batch\)"):
        lower(calls_the_step(training), (X, Y), {})


def test_what_cached_partial_holds_is_not_said_to_be_no_jit(training: Training) -> None:
    held = nnx.cached_partial(training.step, training.model, training.optimizer)
    with pytest.raises(TraceError) as raised:
        lower(held, (X, Y), {})
    text = str(raised.value)
    assert "plain_step with some of its arguments held by nnx.cached_partial is not looked into" in text
    assert "Inspect plain_step itself, with all its arguments" in text
    assert "not jitted" not in text
    assert lower(training.step, (training.model, training.optimizer, X, Y), {}).name == "plain_step"


def test_a_bound_method_that_calls_the_step_is_refused_and_undone(training: Training) -> None:
    with pytest.raises(TraceError, match="through_attributes changes NNX objects"):
        lower(training.through_attributes, (X, Y), {})


def test_another_threads_model_is_left_as_that_thread_left_it() -> None:
    other, go, done = nnx.Variable(jnp.zeros(())), threading.Event(), threading.Event()

    def train() -> None:
        if go.wait(20):
            other[...] = jnp.ones(())
        done.set()

    def step(x: Any) -> Any:
        go.set()
        done.wait(20)
        return x * 2

    thread = threading.Thread(target=train)
    thread.start()
    lowered = lower(step, (X,), {})
    thread.join()

    assert lowered.notes == ()
    assert float(other[...]) == 1


def test_an_interrupt_while_tracing_undoes_too(training: Training) -> None:
    def interrupted(x: Any, y: Any) -> Any:
        try:
            training.through_attributes(x, y)
        finally:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lower(interrupted, (X, Y), {})


def test_a_step_that_fails_to_trace_is_one_message_and_undone(training: Training) -> None:
    with pytest.raises(TraceError, match=r"plain_step cannot be traced: .*incompatible shapes.*\n.*def loss|return"):
        lower(training.step, (training.model, training.optimizer, X, X), {})


def test_a_wrong_call_is_one_message(training: Training) -> None:
    with pytest.raises(TraceError, match=r"missing 1 required positional argument: 'y'"):
        lower(training.step, (training.model, training.optimizer, X), {})


def test_names_fall_back_to_jaxs_where_nnx_packs_in_another_way(
    training: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("donation_inspector.frameworks.nnx._flat_inputs", lambda *_: None)

    lowered = lower(training.step, (training.model, training.optimizer, X, Y), {})

    assert lowered.signature.arguments[0].path == "model.states[0][0]"
    assert all(isinstance(value, jax.ShapeDtypeStruct) for value in lowered.inputs)


def test_a_step_that_returns_what_it_changes_is_jitted_by_jax(training: Training) -> None:
    @functools.partial(jax.jit, donate_argnames=("model", "optimizer"))
    def step(model: Net, optimizer: Any, x: Any, y: Any) -> Any:
        value = plain_step(model, optimizer, x, y)
        return model, optimizer, value

    lowered = lower(step, (training.model, training.optimizer, X, Y), {})

    paths = [leaf.path for leaf in lowered.signature.arguments]
    assert paths[:8] == MODEL_PATHS
    assert paths[8] == "optimizer.opt_state[0].count"
    assert [leaf.updates for leaf in lowered.signature.results] == [*paths[:-2], None]
    assert len(lowered.donation.aliases) == len(paths) - 2


def test_a_forward_pass_is_jitted_by_jax_unless_it_changes_statistics(training: Training) -> None:
    linear = nnx.Linear(4, 2, rngs=nnx.Rngs(1))
    forward = jax.jit(lambda model, x: model(x))

    assert [leaf.path for leaf in lower(forward, (linear, X), {}).signature.arguments] == [
        "model.bias",
        "model.kernel",
        "x",
    ]
    with pytest.raises(TraceError, match=r"loses what the step changes in it: model\.norm\.mean, model\.norm\.var\. "):
        lower(forward, (training.model, X), {})


def test_an_object_that_is_no_pytree_is_refused() -> None:
    class Opaque(nnx.Module, pytree=False):
        def __init__(self) -> None:
            self.weight = nnx.Param(jnp.ones(4))

    opaque = Opaque()

    with pytest.raises(TraceError, match=r"an NNX object \(opaque: Opaque\) but is not jitted by nnx\.jit"):
        lower(lambda opaque, x: x * opaque.weight, (opaque, X), {})

    assert opaque.weight.get_value().shape == (4,)


def test_arguments_that_are_no_pytree_are_left_to_jax(training: Training) -> None:
    with pytest.raises(TraceError, match="sorting pytree dictionary keys"):
        lower(lambda mixed: mixed["b"], ({1: X, "b": training.model},), {})
