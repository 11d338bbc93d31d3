"""What people reported about donation in JAX and XLA, in kind and on small sizes: the inspector names the cause.

jax-ml/jax#35473: a huge matrix is handed from one jitted function to the next, and no result is like it.
openxla/xla#45912: since jaxlib 0.7.2 a donated array is no longer updated in place where a loop reads the value in
between: a full array more at the peak. jax-ml/jax#9635: the donated argument is given twice.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import donation_inspector as di
from donation_inspector.analysis.donation import Verdict
from donation_inspector.xla.results import Memory

SIDE = 96
MATRIX = 4 * SIDE * SIDE


def solve(fisher: Any, gradient: Any) -> Any:
    return jnp.linalg.solve(fisher + jnp.eye(SIDE), gradient)


def test_jax_35473_no_result_is_like_the_matrix_and_it_stays() -> None:
    fisher, gradient = jnp.eye(SIDE), jnp.ones(SIDE)
    donating = jax.jit(solve, donate_argnames=("fisher",))

    inspection = di.inspect(donating, fisher, gradient)

    argument = inspection.arguments[0]
    assert (argument.path, argument.verdict) == ("fisher", Verdict.UNUSABLE)
    assert argument.reason.startswith("donated, but no result is float32[96,96]")
    assert "They are kept until the call ends, as if they were not donated" in inspection.notes[0]
    variants = inspection.compare().variants
    assert variants["jax"].memory == variants["none"].memory
    assert "Donation saves nothing of" in inspection.report()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        donating(fisher, gradient)
    assert not fisher.is_deleted()


N = 1 << 15
WHOLE = 4 * N


@functools.partial(jax.jit, donate_argnums=0)
def read_in_between(x_initial: Any) -> Any:
    x_intermediate = jnp.exp(x_initial)

    def body(i: Any, s: Any) -> Any:
        return s + x_intermediate[i * (N // 8)]

    return x_intermediate + lax.fori_loop(0, 8, body, 0.0)


@functools.partial(jax.jit, donate_argnums=0)
def not_read(x_initial: Any) -> Any:
    return jnp.exp(x_initial) + 1.0


def memory(fn: Any) -> Memory:
    found = di.inspect(fn, jnp.ones(N)).compare().variants["jax"].memory
    assert found is not None
    return found


def test_xla_45912_a_whole_array_more_and_where_it_comes_from() -> None:
    inspection = di.inspect(read_in_between, jnp.ones(N))
    donating = inspection.compare().variants["jax"].memory

    assert donating is not None
    assert donating.alias == WHOLE
    assert WHOLE <= donating.temp < WHOLE + 1024
    assert memory(not_read).temp < 1024
    line = read_in_between.__wrapped__.__code__.co_firstlineno + 2
    assert (
        f"x_initial's buffer is empty then and waits for its result, while exp at test_jax_reports.py:{line} takes "
        "131 KB of its own"
    ) in inspection.report()
    assert inspection.keep("x_initial").compare().variants["jax"].module is not None
    assert "waits for its result" not in inspection.keep("x_initial").report()


def test_xla_45912_two_functions_do_without() -> None:
    @functools.partial(jax.jit, donate_argnums=0)
    def first(x: Any) -> Any:
        return jnp.exp(x)

    @functools.partial(jax.jit, donate_argnums=0)
    def second(x: Any) -> Any:
        return x + lax.fori_loop(0, 8, lambda i, s: s + x[i * (N // 8)], 0.0)

    for half in (first, second):
        assert memory(half).temp < 1024


def test_jax_9635_the_same_array_twice_is_told_before_the_call() -> None:
    x = jnp.zeros(10)
    add = jax.jit(lambda x, y: x + y, donate_argnums=(0,))

    (note,) = di.inspect(add, x, x).notes

    assert note.startswith("x and y are the same array, and x is donated: JAX refuses the call when it runs")
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"f\(donate\(a\), a\)"):
        add(x, x)
    assert di.inspect(add, jnp.zeros(10), jnp.zeros(10)).notes == ()
