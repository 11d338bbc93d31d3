"""The suggested line runs: it donates what it names, keeps what is static, and leaves live objects in step."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import donation_inspector as di
from donation_inspector.frameworks.jitting import call_that_jits, names_tuple
from donation_inspector.opening import inspect

X = jnp.ones((4, 4))


def scale(p: Any, x: Any, n: Any = 2) -> Any:
    return p * n + x.sum() if isinstance(n, int) else p


def positional(p: Any, /, x: Any) -> Any:
    return p + x


def shift(model: nnx.Linear, x: Any, n: Any = 2) -> Any:
    model.kernel[...] += x.sum() if isinstance(n, int) else 0
    return x.sum()


class Scale:
    def method(self, p: Any) -> Any:
        return p + 1

    @functools.partial(jax.jit, static_argnums=0)
    def jitted(self, p: Any) -> Any:
        return p + 1

    __call__ = method


def rewritten(fn: Any, *names: str) -> Any:
    """What `fn` is once the suggested line has run."""
    scope = {fn.__name__: fn, "jax": jax, "nnx": nnx}
    exec(f"{fn.__name__} = {call_that_jits(fn)}donate_argnames={names_tuple(names)})", scope)
    return scope[fn.__name__]


@pytest.mark.parametrize(
    ("fn", "static"),
    [
        (jax.jit(scale, static_argnums=2), (3,)),
        (jax.jit(scale, static_argnames="n"), (3,)),
        (jax.jit(scale), ()),
        (scale, ()),
    ],
)
def test_a_function_is_donated_and_its_static_arguments_stay_static(fn: Any, static: tuple[int, ...]) -> None:
    given = jnp.copy(X)
    result = rewritten(fn, "p")(given, X, *static)
    assert jnp.array_equal(result, scale(X, X, *static))
    assert given.is_deleted()


@pytest.mark.parametrize(
    ("step", "static"),
    [(nnx.jit(shift), ()), (nnx.jit(shift, static_argnames="n"), (3,)), (nnx.jit(shift, static_argnums=2), (3,))],
)
def test_an_nnx_step_stays_an_nnx_step(step: Any, static: tuple[int, ...]) -> None:
    model, expected = nnx.Linear(4, 4, rngs=nnx.Rngs(0)), nnx.Linear(4, 4, rngs=nnx.Rngs(0))
    suggested = inspect(step, model, X, *static).line_that_donates(["model"])
    assert suggested is not None
    assert suggested.startswith("shift = nnx.jit(shift, ")
    rewritten(step, "model")(model, X, *static)
    shift(expected, X, *static)
    assert jnp.array_equal(model.kernel[...], expected.kernel[...])


@pytest.mark.parametrize(
    "fn",
    [
        eqx.filter_jit(scale),
        Scale().method,
        Scale().jitted,
        Scale(),
        functools.partial(scale, n=3),
        lambda p: p,
        positional,
        di.jit(lambda p, q: (q, p), pairs={0: 1}),
    ],
)
def test_nothing_is_suggested_where_no_such_line_works(fn: Any) -> None:
    assert call_that_jits(fn) is None
