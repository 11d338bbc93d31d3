"""Adam, 64 × 64: the two problems that xDSL's pass leaves open, seen on what runs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import donation_inspector as di
from donation_inspector.bufferized.values import UPSTREAM, Bufferization

OURS = "donate-by-live-range,reuse-donated-buffers"
SIZE = 64
ARRAY = SIZE * SIZE * 4


def adam(p: Any, m: Any, v: Any, x: Any) -> Any:
    g = jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(p)
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    return p - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v


def arguments() -> list[Any]:
    make = np.random.default_rng(0).standard_normal
    p, m, v, x = (jnp.asarray(make((SIZE, SIZE)), jnp.float32) for _ in range(4))
    return [0.1 * p, m, jnp.abs(v) + 0.5, 0.5 * x]


@pytest.fixture(scope="module")
def inspection() -> di.Inspection:
    return di.inspect(jax.jit(adam, donate_argnums=(0, 1, 2)), *arguments()).with_pipeline(OURS)


@pytest.fixture(scope="module")
def answer(inspection: di.Inspection) -> Bufferization:
    return inspection.compare("mlir")


def test_fewer_allocations_and_copies_than_xdsls_own_pass(answer: Bufferization) -> None:
    none, theirs, ours = answer.variants.values()
    assert (none.allocations, none.copies) == (5, 1)
    assert (theirs.allocations, theirs.copies) == (5, 4)
    assert ours.allocations is not None
    assert ours.copies is not None
    assert ours.allocations < 5
    assert ours.copies < 4
    # each result is written anew and copied into its argument: nothing is saved at the peak
    assert theirs.peak == none.peak
    assert ours.peak is not None
    assert none.peak is not None
    assert ours.peak <= none.peak - 2 * ARRAY
    assert ours.total == 4 * ARRAY + ours.peak


def test_the_outputs_are_jaxs(answer: Bufferization) -> None:
    for one in answer.variants.values():
        assert one.status == "ok"
        assert one.error is None
        assert one.outputs_close
        assert one.max_error is not None
        assert one.max_error < 1e-6
        assert one.seconds is not None
    assert answer.inputs == "real"


def test_results_come_back_in_the_donated_arguments(answer: Bufferization) -> None:
    none, theirs, ours = answer.variants.values()
    assert dict(none.reused) == {}
    assert dict(theirs.reused) == dict(ours.reused) == {0: (0,), 1: (1,), 2: (2,)}
    # what a result is not in, the program frees; without donation the caller gets three
    assert [one.allocations - (one.frees or 0) for one in (none, theirs, ours) if one.allocations] == [3, 0, 0]


def test_why_xdsls_own_pass_is_not_in_place(answer: Bufferization) -> None:
    none, theirs, ours = answer.variants.values()
    assert theirs.conflict is not None
    assert "RaW conflict" in theirs.conflict
    assert none.conflict is None
    assert ours.conflict is None
    assert "memref.copy" in (theirs.ir or "")
    assert (ours.ir or "").count("memref.alloc()") == ours.allocations


def test_it_is_kept_and_reported(inspection: di.Inspection, answer: Bufferization) -> None:
    assert inspection.bufferization is answer
    assert inspection.keep("p").bufferization is None
    lines = inspection.report().splitlines()
    row = next(line for line in lines if line.startswith(f"{UPSTREAM}  "))
    assert row.split()[1:3] == ["5", "4"]
    assert any("called once on this CPU; inputs: real" in line for line in lines)
    assert any(line.startswith(f"{UPSTREAM}: not in place with eliminate-empty-tensors, mlir-opt") for line in lines)
    assert [line.split()[0] for line in repr(answer).splitlines()[1:4]] == ["none", UPSTREAM, OURS]
