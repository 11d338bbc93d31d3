"""Which result comes back in an argument's place: on steps as people write them, lowered by JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from donation_inspector.analysis.dataflow import Dataflow
from donation_inspector.analysis.interference import Interference
from donation_inspector.analysis.replacement import find_replacements
from donation_inspector.analysis.successors import Successors
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.importer import import_module
from donation_inspector.xla.lowering import lower

SQUARE = jnp.ones((8, 8))
TREE = {"w": SQUARE, "b": jnp.ones(8)}


def sgd(params: Any, batch: Any) -> Any:
    grads = jax.grad(lambda p: jnp.sum((batch["w"] @ p["w"] + p["b"] * batch["b"]) ** 2))(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def batch_first(batch: Any, params: Any) -> Any:
    return sgd(params, batch), 0.0


def frozen_and_trained(frozen: Any, trained: Any) -> Any:
    return {"new": sgd(trained, frozen), "loss": jnp.float32(0)}


def one_array(x: Any, w: Any) -> Any:
    return w - 0.1 * jnp.tanh(x @ w)


def two_that_are_alike(x: Any, w: Any) -> Any:
    return w - 0.1 * x


def other_containers(params: Any, x: Any) -> Any:
    return params["w"] - x, params["b"] * 2


def rolled(a: Any, b: Any, key: Any) -> Any:
    return b * 2, a + key


def adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return m, v, p - m / (jnp.sqrt(v) + 1e-8)


def cached(params: Any, cache: Any, x: Any) -> Any:
    return x @ params, jax.lax.dynamic_update_slice(cache, (x @ params)[:1], (3, 0))


def recurrent(h: Any, x: Any, params: Any) -> Any:
    return jnp.tanh(h @ params + x @ params), h.sum()


def iterated(x: Any, params: Any) -> Any:
    return x @ params


def integrated(x: Any, t: Any) -> Any:
    middle = x + 0.5 * jnp.roll(x, 1)
    return x + middle @ middle, t + 0.1


def looped(x: Any, t: Any) -> Any:
    return jax.lax.fori_loop(0, 3, lambda _, carried: (carried[0] @ x, carried[1] * 0.5), (x, t))


def averaged(params: Any, average: Any, scale: Any) -> Any:
    loss = jnp.mean((params * scale) ** 2)
    finite = jnp.isfinite(loss)
    return params * 2, 0.9 * average + 0.1 * loss, jnp.where(finite, scale * 2, scale / 2)


def keyed(key: Any, params: Any) -> Any:
    key, once = jax.random.split(key)
    return key, params + jax.random.normal(once, params.shape)


def trained(params: Any, x: Any, lr: Any) -> Any:
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p) ** 2))(params)
    new = params - lr * grads
    return new, jnp.mean((x @ new) ** 2), loss


def hyperparameters(state: Any, lr: Any) -> Any:
    return {"w": state["w"] * lr, "lr": lr}, state["w"].sum()


def autoencoder(params: Any, x: Any) -> Any:
    return params - 0.1 * jax.grad(lambda p: jnp.sum((x @ p - x) ** 2))(params), x @ params


def loss(params: Any, x: Any) -> Any:
    # the weight decay makes the gradient an element-wise function of the parameters too, within what is differentiated
    return jnp.mean(jax.nn.relu(x @ params["w"] + params["b"]) ** 2) + 1e-3 * jnp.sum(jnp.square(params["w"]))


def gradient(params: Any, x: Any) -> Any:
    return jax.value_and_grad(loss)(params, x)


def hessian_vector(params: Any, x: Any, direction: Any) -> Any:
    return jax.jvp(jax.grad(lambda p: jnp.mean(jnp.tanh(x @ p) ** 2)), (params,), (direction,))[1]


def gauss_newton(params: Any, x: Any, direction: Any) -> Any:
    def model(p: Any) -> Any:
        return jnp.tanh(x @ p)

    _, tangent = jax.jvp(model, (params,), (direction,))
    return jax.vjp(model, params)[1](tangent)[0]


def accumulated(params: Any, grads: Any, x: Any) -> Any:
    return jax.tree.map(jnp.add, grads, jax.grad(loss)(params, x))


def accumulated_in_a_scan(params: Any, grads: Any, xs: Any) -> Any:
    return jax.lax.scan(lambda grads, x: (accumulated(params, grads, x), None), grads, xs[:, None])[0]


def trained_in_a_scan(params: Any, xs: Any) -> Any:
    def one(params: Any, x: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x)), None

    return jax.lax.scan(one, params, xs[:, None])[0]


def solver(force: Any, u: Any) -> Any:
    return u + 0.1 * (jnp.roll(u, 1, 0) - 2 * u + force)


def solver_of_a_tree(force: Any, u: Any) -> Any:
    return jax.tree.map(solver, force, u)


def newton(target: Any, x: Any) -> Any:
    return x - 0.5 * (jnp.tanh(x) - target)


@pytest.mark.parametrize(
    ("function", "arguments", "unlikely", "without"),
    [
        (sgd, (TREE, TREE), (), {"batch['b']", "batch['w']"}),
        (batch_first, (TREE, TREE), (), {"batch['b']", "batch['w']"}),
        (frozen_and_trained, (TREE, TREE), (), {"frozen['b']", "frozen['w']"}),
        (one_array, (SQUARE, SQUARE), (), {"x"}),
        (two_that_are_alike, (SQUARE, SQUARE), ("x",), {"x"}),
        (other_containers, (TREE, SQUARE), ("x",), {"x"}),
        (rolled, (SQUARE, SQUARE, jnp.ones(8)), (), {"key"}),
        (adam, (SQUARE,) * 4, (), {"g"}),
        (cached, (SQUARE, SQUARE, SQUARE[:2]), ("x",), {"x", "params"}),
        (recurrent, (SQUARE[:2], SQUARE[:2], SQUARE), ("x",), {"x", "params"}),
        (iterated, (SQUARE[:2], SQUARE), ("x",), {"params"}),
        (integrated, (SQUARE, jnp.float32(0)), ("x",), set()),
        (looped, (SQUARE, jnp.float32(0)), ("x",), set()),
        (averaged, (SQUARE, jnp.float32(0), jnp.float32(1)), (), set()),
        (keyed, (jax.random.key(0), SQUARE), (), set()),
        (trained, (SQUARE, SQUARE[:2], jnp.float32(0)), ("x",), {"x", "lr"}),
        (hyperparameters, ({"w": SQUARE, "lr": jnp.float32(0)}, jnp.float32(0)), (), {"lr"}),
        (autoencoder, (SQUARE, SQUARE[:2]), ("x",), {"x"}),
        (gradient, (TREE, SQUARE), (), {"params['b']", "params['w']", "x"}),
        (hessian_vector, (SQUARE, SQUARE, SQUARE), (), {"params", "x", "direction"}),
        (gauss_newton, (SQUARE, SQUARE, SQUARE), (), {"params", "x", "direction"}),
        (accumulated, (TREE, TREE, SQUARE), (), {"params['b']", "params['w']", "x"}),
        (accumulated_in_a_scan, (TREE, TREE, SQUARE), (), {"params['b']", "params['w']", "xs"}),
        (trained_in_a_scan, (TREE, SQUARE), (), {"xs"}),
        (solver, (SQUARE, SQUARE), (), {"force"}),
        (solver_of_a_tree, (TREE, TREE), (), {"force['b']", "force['w']"}),
        (newton, (SQUARE, SQUARE), (), {"target"}),
    ],
)
def test_what_is_not_replaced(
    function: Callable[..., Any], arguments: tuple[Any, ...], unlikely: tuple[str, ...], without: set[str]
) -> None:
    lowered = lower(function, arguments, {})
    flow = Dataflow(entry_function(import_module(lowered.module).module))
    interference = Interference(flow)
    leaves = lowered.signature.arguments
    doubted = {leaf.index for leaf in leaves if leaf.root in unlikely}
    found = find_replacements(lowered.signature, Successors(flow), lambda: interference, doubted)
    assert {leaf.path for leaf in leaves if leaf.index not in found} == without
    assert len(set(found.values())) == len(found)
    for argument, result in found.items():
        new = lowered.signature.results[result]
        assert (leaves[argument].shape, leaves[argument].dtype) == (new.shape, new.dtype)


def test_what_is_plain_by_paths_asks_for_no_interference() -> None:
    def step(params: Any, state: Any, batch: Any) -> Any:
        new = jax.tree.map(lambda p, m: p - 0.1 * m, params, state["mu"])
        return new, {"mu": params, "nu": state["nu"]}, batch["x"].sum()

    many = {f"layer{number}": TREE for number in range(20)}
    lowered = lower(step, (many, {"mu": many, "nu": many}, {"x": jnp.ones(3)}), {})

    def none() -> Interference:
        raise AssertionError("asked for")

    flow = Dataflow(entry_function(import_module(lowered.module).module))
    found = find_replacements(lowered.signature, Successors(flow), none)
    assert len(found) == 3 * len(jax.tree.leaves(many))


def test_of_very_many_bare_arguments_each_has_its_own_new_value() -> None:
    def step(scale: Any, *many: Any) -> Any:
        return tuple(one - 0.1 * jnp.tanh(one) * scale.sum() for one in reversed(many))

    lowered = lower(step, (jnp.ones(3), *(jnp.ones(4),) * 101), {})
    flow = Dataflow(entry_function(import_module(lowered.module).module))

    def none() -> Interference:
        raise AssertionError("asked for")

    found = find_replacements(lowered.signature, Successors(flow), none)
    assert found == {argument: 101 - argument for argument in range(1, 102)}
