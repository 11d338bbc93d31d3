"""What comes after the trace grows as the program does: work is counted, in lines of Python, and not timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.present import payload
from work import growth, lines_run

ROW = jax.ShapeDtypeStruct((8,), jnp.float32)
LINEAR = 1.05
"""The exponent; a part that is quadratic shows at these sizes."""


def leaves(count: int) -> di.Inspection:
    """A step over `count` leaves, all donated."""
    params = {f"w{number}": ROW for number in range(count)}
    return di.inspect(jax.jit(lambda params, x: jax.tree.map(lambda w: w - x, params), donate_argnums=0), params, ROW)


def chain(count: int) -> di.Inspection:
    """`count` operations, each on the one before and on the same array, whose dataflow the report looks into."""

    def step(x: Any, scale: Any) -> Any:
        for _ in range(count):
            x = x * scale
        return x

    return di.inspect(jax.jit(step), jax.ShapeDtypeStruct((), jnp.float32), ROW)


def tree(count: int) -> di.Inspection:
    """`count` operations on one array, added up in pairs."""

    def step(x: Any) -> Any:
        values = [x * number for number in range(count)]
        while len(values) > 1:
            values = [jax.lax.add(one, other) for one, other in zip(values[::2], values[1::2], strict=True)]
        return values[0]

    return di.inspect(jax.jit(step, donate_argnums=0), ROW)


def click(inspection: di.Inspection) -> None:
    """What the kernel does when a box is clicked off and another on."""
    payload.current(inspection.keep(inspection.arguments[0].path), 1)
    payload.current(inspection.donate(inspection.arguments[-1].path), 2)


WORK: dict[str, Callable[[di.Inspection], Any]] = {
    "report": lambda inspection: inspection.report(),
    "payload": lambda inspection: payload.once(inspection),
    "click": click,
}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize(("program", "size"), [(leaves, 32), (chain, 64), (tree, 64)])
def test_work_grows_no_faster_than_the_program(program: Callable[[int], di.Inspection], size: int, work: str) -> None:
    WORK[work](program(size))  # what is loaded and kept at the first call is no work

    def lines_at(count: int) -> int:
        inspection = program(count)
        return lines_run(lambda: WORK[work](inspection))

    assert growth(lines_at, size) <= LINEAR


@pytest.mark.parametrize("program", [chain, tree])
def test_a_click_sends_no_more_where_the_program_is_longer(program: Callable[[int], di.Inspection]) -> None:
    def sent(count: int) -> int:
        inspection = program(count)
        before = payload.current(inspection, 0)
        after = payload.current(inspection.donate(inspection.arguments[0].path), 1)
        return sum(len(after[name]) for name in ("freed", "ends") if after[name] != before[name])

    assert sent(64) == sent(128)
