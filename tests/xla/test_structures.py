"""Structures that look at their leaves when they are flattened: JAX jits them, and so they are inspected."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.xla.lowering import lower


@jax.tree_util.register_pytree_node_class
class Mixed:
    """Its leaves are what is an array; the rest is put aside."""

    def __init__(self, **held: Any) -> None:
        self.held = held

    def tree_flatten(self) -> Any:
        arrays = {key: value for key, value in self.held.items() if isinstance(value, jax.Array)}
        rest = {key: value for key, value in self.held.items() if key not in arrays}
        return tuple(arrays.values()), (tuple(arrays), tuple(rest.items()))

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Mixed:
        names, rest = aux
        return cls(**dict(zip(names, children, strict=True)), **dict(rest))


@pytest.mark.parametrize("returns", [False, True], ids=["array", "structure"])
def test_they_are_inspected(returns: bool) -> None:
    def step(mixed: Any, x: Any) -> Any:
        loc = mixed.held["loc"] + x
        return (Mixed(loc=loc, scale=mixed.held["scale"] * 2, name="next"), x * 2) if returns else (loc, x * 2)

    inspection = di.inspect(jax.jit(step, donate_argnums=0), Mixed(loc=jnp.ones(8), scale=jnp.ones(8), name="a"), X)

    assert [argument.donated for argument in inspection.arguments] == [True, True, False]
    assert [argument.shape for argument in inspection.arguments] == [(8,)] * 3
    assert len({argument.path for argument in inspection.arguments}) == 3
    assert len(inspection.results) == 2 + returns
    assert len({result.path for result in inspection.results}) == 2 + returns
    assert "8" in inspection.report()


def test_of_a_lowering_alone_it_is_told() -> None:
    lowered = jax.jit(lambda mixed: mixed.held["loc"] * 2).lower(Mixed(loc=X, name="a"))
    with pytest.raises(di.TraceError, match=r"looks at its leaves .* what \.trace\(\) returned"):
        lower(lowered, (), {})


X = jnp.ones(8)
