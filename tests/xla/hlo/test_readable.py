"""XLA's own modules hold together; what leads nowhere, or back to itself, is told before anything follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.xla.hlo.proto import parse
from donation_inspector.xla.hlo.readable import why_unreadable


def loop(x: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, 3, lambda _, y: jax.lax.cond(y.sum() > 0, jnp.tanh, jnp.sin, y @ x), x)


@pytest.fixture(scope="module")
def made() -> bytes:
    hlo = di.inspect(loop, jnp.ones((8, 8))).compare().variants["none"].hlo
    assert hlo is not None
    return hlo


def test_what_xla_writes_is_readable(made: bytes) -> None:
    assert why_unreadable(made) is None


def own_parent(hlo: Any) -> None:
    hlo.hlo_module.stack_frame_index.stack_frames[0].parent_frame_id = 1


def cyclic_operands(hlo: Any) -> None:
    first = hlo.hlo_module.computations[-1].instructions[0]
    first.operand_ids.append(first.id)


def cyclic_calls(hlo: Any) -> None:
    entry = hlo.hlo_module.computations[-1]
    hlo.hlo_module.computations[0].instructions[0].called_computation_ids.append(entry.id)


def no_root(hlo: Any) -> None:
    hlo.hlo_module.computations[0].root_id = 1 << 40


def twice(hlo: Any) -> None:
    instructions = hlo.hlo_module.computations[-1].instructions
    instructions[1].id = instructions[0].id


def no_entry(hlo: Any) -> None:
    hlo.hlo_module.entry_computation_id = -1


def scheduled_elsewhere(hlo: Any) -> None:
    sequences = hlo.hlo_module.schedule.sequences
    sequences[hlo.hlo_module.entry_computation_id].instruction_ids.append(-5)


def nowhere(hlo: Any) -> None:
    hlo.buffer_assignment.logical_buffers[0].defined_at.instruction_id = 1 << 40


def negative(hlo: Any) -> None:
    hlo.buffer_assignment.buffer_allocations[0].size = -1


def enormous(hlo: Any) -> None:
    hlo.buffer_assignment.logical_buffers[0].size = 1 << 62


def foreign_buffer(hlo: Any) -> None:
    hlo.buffer_assignment.buffer_allocations[0].assigned[0].logical_buffer_id = 12345


def many_spaces(hlo: Any) -> None:
    for color in range(100):
        hlo.buffer_assignment.buffer_allocations.add(index=1000 + color, color=color, size=8)


CHANGES: list[Callable[[Any], None]] = [
    *(own_parent, cyclic_operands, cyclic_calls, no_root, twice, no_entry, scheduled_elsewhere),
    *(nowhere, negative, enormous, foreign_buffer, many_spaces),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_does_not_hold_together_is_told(change: Callable[[Any], None], made: bytes) -> None:
    hlo: Any = parse(made)
    change(hlo)
    assert why_unreadable(hlo.SerializeToString()) is not None
