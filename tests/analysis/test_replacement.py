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
    ],
)
def test_what_is_not_replaced(
    function: Callable[..., Any], arguments: tuple[Any, ...], unlikely: tuple[str, ...], without: set[str]
) -> None:
    lowered = lower(function, arguments, {})
    interference = Interference(Dataflow(entry_function(import_module(lowered.module).module)))
    leaves = lowered.signature.arguments
    doubted = {leaf.index for leaf in leaves if leaf.root in unlikely}
    found = find_replacements(lowered.signature, interference, doubted)
    assert {leaf.path for leaf in leaves if leaf.index not in found} == without
    assert len(set(found.values())) == len(found)
    for argument, result in found.items():
        new = lowered.signature.results[result]
        assert (leaves[argument].shape, leaves[argument].dtype) == (new.shape, new.dtype)
