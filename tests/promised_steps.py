"""Small random programs to be recommended a line for, with all that makes a line give JAX another program.

On top of `generated_steps`: arguments that nothing uses, large ones and ones of the donated type; trees of which single
leaves are donated; donated arguments that fit a result by their number of elements alone; values returned twice and
arguments handed on; several devices, with some results whose sharding is given.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from generated_steps import SIDE, generate

DEVICES = 4


@dataclass(frozen=True)
class Promised:
    """A function named `step`, its arguments, the paths that are donated, and the options of its jit.

    Where there are none of these paths, whatever is best is to be found; `options` is None where it is not jitted.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    donated: tuple[str, ...]
    options: dict[str, Any] | None


def promised(seed: int) -> Promised:
    """The program of this seed."""
    draw, base = random.Random(f"promised {seed}"), generate(seed)
    count, sharded = len(base.arguments), draw.random() < 0.3
    with_donor, twice = draw.random() < 0.4, draw.random() < 0.3
    shapes = [one.shape for one in base.arguments]
    unused = [draw.choice(((SIDE, SIDE), (4 * SIDE, 4 * SIDE))) for _ in range(draw.randint(0, 2))]

    def results(leaves: list[Any], flat: Any) -> tuple[Any, ...]:
        made = base.function(*leaves)
        if twice:
            made = (*made, made[0], leaves[0])
        return (*made, flat.reshape(SIDE // 2, 2 * SIDE) * 2.0) if with_donor else made

    shared = _Sharing(draw) if sharded else None
    array = shared.array if shared else _array
    flat = array((SIDE * SIDE,))
    form = draw.choice((_starred, _tree, _unused_first))
    function, arguments, states = form(
        results, [array(shape) for shape in shapes], flat, [array(one) for one in unused]
    )
    options: dict[str, Any] = {"keep_unused": True} if draw.random() < 0.15 else {}
    if shared:
        options["out_shardings"] = shared.of_results(function, arguments)
    donor = ("flat",) if with_donor and form is not _starred else ()
    kinds: tuple[tuple[str, ...], ...] = ((), states, tuple(one for one in states if draw.random() < 0.6))
    chosen = draw.choice(kinds[: 3 if count > 2 else 2])
    jitted = options if options or draw.random() < 0.5 else None
    return Promised(function, arguments, (*chosen, *donor) if chosen else (), jitted)


def _array(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


class _Sharing:
    """Arrays over several devices, and results of which some are told how they are to be shared."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        mesh = Mesh(np.array(jax.devices()[:DEVICES]), ("x",))
        self._split, self._whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())

    def array(self, shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
        sharding = self._split if len(shape) == 2 and self._draw.random() < 0.9 else self._whole
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)

    def of_results(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        left_to_xla = self._draw.random() < 0.4
        return tuple(
            None if left_to_xla and self._draw.random() < 0.4 else self._split if len(one.shape) == 2 else self._whole
            for one in jax.eval_shape(function, *arguments)
        )


Results = Callable[[list[Any], Any], tuple[Any, ...]]
Form = tuple[Callable[..., Any], tuple[Any, ...], tuple[str, ...]]


def _starred(results: Results, leaves: list[Any], flat: Any, unused: list[Any]) -> Form:
    def step(flat: Any, *arguments: Any) -> Any:
        return results(list(arguments[: len(leaves)]), flat)

    return step, (flat, *leaves, *unused), tuple(f"arguments[{i}]" for i in range(len(leaves) - 1))


def _tree(results: Results, leaves: list[Any], flat: Any, unused: list[Any]) -> Form:
    *states, x = leaves
    state = {"old": unused, "s": states}

    def step(state: Any, x: Any, flat: Any) -> Any:
        return results([*state["s"], x], flat)

    return step, (state, x, flat), tuple(f"state['s'][{i}]" for i in range(len(states)))


def _unused_first(results: Results, leaves: list[Any], flat: Any, unused: list[Any]) -> Form:
    first, *others = leaves

    def step(spare: Any, first: Any, others: Any, flat: Any) -> Any:  # noqa: ARG001
        return results([first, *others], flat)

    return step, (unused, first, others, flat), ("first", *(f"others[{i}]" for i in range(len(others) - 1)))
