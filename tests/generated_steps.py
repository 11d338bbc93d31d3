"""Small random train-step-like JAX programs: arrays that are donated, operations on them, results in any order.

What is drawn: elementwise steps, products, transposes, writes of a slice, loops, arguments handed on as they are, one
value returned twice; results in the order of the arguments or shuffled. Sizes are small, and large enough that a copy
of a state is more than all scalars together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

SIDE = 24
_SQUARE, _ROW = (SIDE, SIDE), (SIDE,)
_SHAPES = ((2, 2, 0), (2, 2, 1), (3, 2, 0), (2, 3, 0), (3, 3, 0), (3, 3, 0), (3, 3, 0), (4, 2, 0))
"""Donated squares, squares returned, donated rows: at most 34 ways to pair them."""

Step = Callable[[list[Any], random.Random], Any]


@dataclass(frozen=True)
class Generated:
    """A function of `donated` donated arguments and one that is not, the last."""

    function: Callable[..., Any]
    arguments: tuple[jax.ShapeDtypeStruct, ...]
    donated: int


def generate(seed: int) -> Generated:
    """The program of this seed."""
    draw = random.Random(seed)
    squares, returned, rows = draw.choice(_SHAPES)
    recipe, in_order, repeated = draw.random(), draw.random() < 0.5, draw.random() < 0.1
    shapes = (*[_SQUARE] * squares, *[_ROW] * rows, _SQUARE)

    def step(*arguments: Any) -> Any:
        # the same draws every time it is traced
        again = random.Random(recipe)
        states, x = list(arguments[:squares]), arguments[-1]
        results = _squares(states, x, returned, again)
        if repeated:
            results[-1] = results[0]
        if not in_order:
            again.shuffle(results)
        smaller = [_row(row, results, again) for row in arguments[squares:-1]]
        return (*results, *smaller, (results[0] * x).sum())

    return Generated(step, tuple(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes), squares + rows)


def _squares(states: Sequence[Any], x: Any, count: int, draw: random.Random) -> list[Any]:
    """As many results as asked for, each from a state or from what was made before."""
    values = [*states, x]
    updated: list[Any] = []
    for number in range(count):
        state = states[number % len(states)]
        for _ in range(draw.randint(1, 3)):
            state = draw.choice(_OPERATIONS)([state, *values], draw)
            values.append(state)
        updated.append(states[number % len(states)] if draw.random() < 0.1 else state)
    return updated


def _row(row: Any, results: Sequence[Any], draw: random.Random) -> Any:
    return row * 0.9 + draw.choice(results).sum(axis=0)


def _add(values: list[Any], draw: random.Random) -> Any:
    return values[0] * 0.9 + draw.choice(values) * 0.1


def _relu(values: list[Any], draw: random.Random) -> Any:
    return jnp.maximum(values[0], 0.1) * draw.choice(values)


def _product(values: list[Any], draw: random.Random) -> Any:
    return draw.choice(values) @ values[0] * 0.1


def _gradient(values: list[Any], draw: random.Random) -> Any:
    other = draw.choice(values)
    return values[0] - 0.1 * jax.grad(lambda w: jnp.sum(jnp.square(other @ w)))(values[0])


def _transpose(values: list[Any], draw: random.Random) -> Any:
    return values[0] + draw.choice(values).T


def _write(values: list[Any], draw: random.Random) -> Any:
    start = draw.randrange(SIDE)
    return jax.lax.dynamic_update_slice(values[0], draw.choice(values)[:1] * 2.0, (start, 0))


def _loop(values: list[Any], draw: random.Random) -> Any:
    other, times = draw.choice(values), draw.randint(2, 5)
    return jax.lax.fori_loop(0, times, lambda _, carried: jnp.abs(carried) + other, values[0])


def _scan(values: list[Any], draw: random.Random) -> Any:
    rows = draw.choice(values)
    carried, written = jax.lax.scan(lambda c, row: (c * 0.5 + row, -c), values[0][0], rows)
    return written + carried


_OPERATIONS: tuple[Step, ...] = (_add, _add, _relu, _product, _gradient, _transpose, _write, _loop, _scan)
