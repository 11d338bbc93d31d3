"""The names of a call that JAX has packed: those of the function's parameters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from donation_inspector.frameworks.step import lower


def step(state: Any, x: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf + x.sum(), state)


def paths(fn: Any, *args: Any, **kwargs: Any) -> list[str]:
    return [leaf.path for leaf in lower(fn, args, kwargs).signature.arguments]


def test_what_pmap_is_given_has_the_names_of_the_parameters() -> None:
    state = {"w": jnp.ones((2, 3)), "z": jnp.ones((2, 4))}
    assert paths(jax.pmap(step), state, jnp.ones((2, 5))) == ["state['w']", "state['z']", "x"]
    assert paths(jax.pmap(step, donate_argnums=0), jnp.ones((2, 3)), jnp.ones((2, 5))) == ["state", "x"]


def test_a_static_argument_of_pmap_shifts_no_name() -> None:
    scaled = jax.pmap(lambda times, x: x * times, static_broadcasted_argnums=0)
    assert "times" not in paths(scaled, 3, jnp.ones((2, 3)))


def test_a_parameter_of_that_name_keeps_it() -> None:
    assert paths(jax.jit(lambda *flat_args: flat_args), jnp.ones(2), jnp.ones(3)) == ["flat_args[0]", "flat_args[1]"]
