"""What a call of a jitted function gives away."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from donation_inspector.frameworks.donates import donated, is_step


def step(model: Any, opt: Any, x: Any) -> Any:
    return model, opt, x


class Held:
    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def fit(self, x: Any) -> Any:
        return x


class Net(nnx.Module):
    @nnx.jit(donate_argnums=0)
    def fit(self, x: Any) -> Any:
        return x


class Layer(eqx.Module):
    w: jax.Array

    @eqx.filter_jit(donate="all-except-first")
    def rest(self, x: Any) -> Any:
        return x * self.w

    @eqx.filter_jit(donate="all")
    def everything(self, x: Any) -> Any:
        return x * self.w


NET, LAYER = Net(), Layer(jnp.ones(2))
FIRST = jax.jit(step, donate_argnums=0)
NAMED = jax.jit(step, donate_argnames=("opt", "x"))


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "expected"),
    [
        (FIRST, ["m", "o", "x"], {}, ["m"]),
        (FIRST, ["m"], {"opt": "o", "x": "x"}, ["m"]),
        (FIRST, [], {"model": "m", "opt": "o", "x": "x"}, ["m"]),
        (NAMED, ["m", "o"], {"x": "x"}, ["o", "x"]),
        (functools.partial(NAMED, "m"), ["o"], {"x": "x"}, ["o", "x"]),
        (functools.partial(FIRST, "m"), ["o", "x"], {}, ["m"]),
        (jax.jit(step), ["m", "o", "x"], {}, []),
        (step, ["m", "o", "x"], {}, []),
        (Held().fit, ["x"], {}, ["x"]),
        (nnx.jit(step, donate_argnames="opt"), ["m", "o", "x"], {}, ["o"]),
        (nnx.jit(step, donate_argnums=(0, 2), graph=False), ["m", "o"], {"x": "x"}, ["m", "x"]),
        (NET.fit, ["x"], {}, [NET]),
        (eqx.filter_jit(step, donate="all"), ["m", "o"], {"x": "x"}, ["m", "o", "x"]),
        (eqx.filter_jit(step, donate="all-except-first"), ["m", "o", "x"], {}, ["o", "x"]),
        (eqx.filter_jit(step, donate="all-except-first"), [], {"x": "x", "model": "m", "opt": "o"}, ["x", "o"]),
        (eqx.filter_jit(step), ["m", "o", "x"], {}, []),
        (LAYER.rest, ["x"], {}, ["x"]),
        (LAYER.everything, ["x"], {}, [LAYER, "x"]),
    ],
)
def test_the_donated_arguments_of_a_call(
    fn: Any, args: Sequence[str], kwargs: Mapping[str, str], expected: list[Any]
) -> None:
    found = donated(fn, args, kwargs)
    assert len(found) == len(expected)
    assert all(one is other for one, other in zip(found, expected, strict=True))


def test_what_is_a_step_of_the_users() -> None:
    steps = (FIRST, functools.partial(FIRST, 1), Held().fit, nnx.jit(step), NET.fit, eqx.filter_jit(step), LAYER.rest)
    assert [is_step(one) for one in steps] == [True] * len(steps)
    others = (step, jnp.dot, jnp.ones, jax.jit, print, "text", None, NET, LAYER, jnp.ones(3))
    assert [is_step(one) for one in others] == [False] * len(others)
