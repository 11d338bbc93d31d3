"""The suggested line runs: it donates what it names, keeps what is static, and leaves live objects in step."""

from __future__ import annotations

import functools
import inspect as inspect_signature
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import donation_inspector as di
from donation_inspector.capture.opening import inspect
from donation_inspector.frameworks.call_site import CallSite
from donation_inspector.frameworks.jitting import line_that_donates
from donation_inspector.frameworks.ways import way_of

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
    exec(line_that_donates(way_of(fn, CallSite(scope)), names) or "", scope)
    return scope[fn.__name__]


@pytest.mark.parametrize(
    ("fn", "static"),
    [
        (jax.jit(scale, static_argnums=2), (3,)),
        (jax.jit(scale, static_argnames="n"), (3,)),
        (jax.jit(scale), ()),
        (scale, ()),
        (positional, ()),
    ],
)
def test_a_function_is_donated_and_its_static_arguments_stay_static(fn: Any, static: tuple[int, ...]) -> None:
    given = jnp.copy(X)
    result = rewritten(fn, "p")(given, X, *static)
    assert jnp.array_equal(result, inspect_signature.unwrap(fn)(X, X, *static))
    assert given.is_deleted()


@pytest.mark.parametrize(
    ("step", "static"),
    [(nnx.jit(shift), ()), (nnx.jit(shift, static_argnames="n"), (3,)), (nnx.jit(shift, static_argnums=2), (3,))],
)
def test_an_nnx_step_stays_an_nnx_step(step: Any, static: tuple[int, ...]) -> None:
    model, expected = nnx.Linear(4, 4, rngs=nnx.Rngs(0)), nnx.Linear(4, 4, rngs=nnx.Rngs(0))
    suggested = inspect(step, model, X, *static).line_that_donates(["model"])
    assert suggested is not None
    assert suggested.startswith("shift = step = nnx.jit(shift, ")
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
        di.jit(lambda p, q: (q, p), pairs={0: 1}),
        jax.jit(scale, compiler_options={"xla_cpu_enable_fast_math": False}),
    ],
)
def test_nothing_is_suggested_where_no_such_line_works(fn: Any) -> None:
    assert line_that_donates(way_of(fn), ["p"]) is None


def some(a: Any, *bs: Any) -> Any:
    return a + 1, bs[0] * 2, [b.sum() for b in bs[1:]]


def all_of_them(*xs: Any) -> Any:
    return [x + 1 for x in xs]


def options(a: Any, **ks: Any) -> Any:
    return a + 1, ks["q"] * 2


def both(a: Any, /, *bs: Any, k: Any, **ks: Any) -> Any:
    return a + 1, bs[1] + 1, k + 1, ks["q"] + bs[0].sum()


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "donated"),
    [
        (some, 2, (), ["a", "bs[0]"]),
        (some, 3, (), ["bs[0]"]),
        (all_of_them, 3, (), ["xs[0]", "xs[2]"]),
        (options, 1, ("q",), ["a", "ks['q']"]),
        (options, 1, ("q",), ["ks['q']"]),
        (both, 3, ("k", "q"), ["a", "bs[1]", "k", "ks['q']"]),
        (both, 3, ("k", "q"), ["bs[1]", "ks['q']"]),
    ],
)
def test_what_is_taken_by_stars_is_donated_by_number_and_by_name(
    fn: Any, args: int, kwargs: tuple[str, ...], donated: list[str]
) -> None:
    given = [jnp.copy(X) for _ in range(args)], {name: jnp.copy(X) for name in kwargs}
    arguments = inspect(fn, *given[0], **given[1]).arguments
    changed = rewritten(fn, *donated)
    memory = changed.lower(*given[0], **given[1]).compile().memory_analysis()
    changed(*given[0], **given[1])
    deleted = [leaf.is_deleted() for leaf in jax.tree.leaves(given)]
    assert [argument.path for argument, gone in zip(arguments, deleted, strict=True) if gone] == donated
    assert memory.alias_size_in_bytes == len(donated) * X.nbytes


def test_what_nothing_reads_is_kept_where_it_was() -> None:
    fn = jax.jit(keeping, keep_unused=True)
    given = jnp.copy(X)
    rewritten(fn, "unused")(given, X)
    assert given.is_deleted()


def keeping(unused: Any, x: Any) -> Any:  # noqa: ARG001
    return x + 1


def test_an_inner_jit_is_left_away_that_would_ask_for_more_in_vain() -> None:
    di.assert_donated(rewritten(lone, "p"), X, X[0])


@functools.partial(jax.jit, donate_argnames=("p", "x"))
def lone(p: Any, x: Any) -> Any:
    return p + x.sum()


MODULE = """
import functools, jax
def fn(p, x):
    return p + x.sum()
def kept(p, x):
    return p * x.sum()
step = jax.jit(fn, donate_argnames=("p", "x"))
short = jax.jit(lambda p, x: p + x.sum())
kept = jax.jit(kept)
@jax.jit
def decorated(p, x):
    return p + x.sum()
also = decorated
plain = fn
"""


@pytest.mark.parametrize(
    ("variable", "line"),
    [
        ("step", 'step = jax.jit(fn, donate_argnames=("p",))'),
        ("short", 'short = jax.jit(short.__wrapped__, donate_argnames=("p",))'),
        ("kept", 'kept = jax.jit(kept.__wrapped__, donate_argnames=("p",))'),
        ("decorated", 'decorated = jax.jit(decorated.__wrapped__, donate_argnames=("p",))'),
        ("also", 'also = jax.jit(also.__wrapped__, donate_argnames=("p",))'),
        ("fn", 'fn = jax.jit(fn, donate_argnames=("p",))'),
    ],
)
def test_the_line_has_the_variable_that_the_function_is_in(variable: str, line: str) -> None:
    scope: dict[str, Any] = {}
    exec(MODULE, scope)
    fn, given = scope[variable], jnp.copy(X)
    assert line_that_donates(way_of(fn, CallSite(scope, written=variable)), ["p"]) == line
    exec(line, scope)
    scope[line.split(" ")[0]](given, X)
    assert given.is_deleted()
