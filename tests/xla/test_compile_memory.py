"""How many programs are compiled at once, by the memory that there is and what XLA is expected to take."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from donation_inspector.xla import compile_memory, memory
from small_programs import add, program

MB = 1 << 20


@pytest.fixture(autouse=True)
def _four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_memory, "workers", lambda: 4)
    monkeypatch.setattr(compile_memory, "_more_than_thought", dict[str, float]())


@pytest.mark.parametrize(("megabytes", "children"), [(100, 1), (700, 2), (1100, 3), (90_000, 4), (None, 4)])
def test_as_many_as_there_is_memory_and_cores_for(
    megabytes: int | None, children: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: megabytes and megabytes * MB)
    one = program(add, (8,), (8,))
    number, why_not = compile_memory.at_once([one] * 6)
    assert number == children
    assert (why_not is None) == (children == 4)
    assert compile_memory.at_once([one]) == (1, None)
    assert compile_memory.at_once([]) == (0, None)


def test_what_others_have_begun_with_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1100 * MB)
    one = program(add, (8,), (8,))
    with compile_memory.taken([one, one]):
        assert compile_memory.at_once([one] * 6)[0] == 2
    assert compile_memory.at_once([one] * 6)[0] == 3


def test_a_constant_takes_its_copies_and_operations_take_much_more() -> None:
    big = np.arange(1 << 20, dtype=np.float32)

    def many(a: jnp.ndarray) -> jnp.ndarray:
        for i in range(500):
            a = jnp.sin(a) * (1.5 + i)
        return a

    small = program(add, (8,), (8,))
    constant = program(lambda a: a + jnp.asarray(big).sum(), (8,))
    more = compile_memory.needs(constant) - compile_memory.needs(small)
    assert big.nbytes <= more <= 8 * big.nbytes
    assert compile_memory.needs(program(many, (8,))) - compile_memory.needs(small) > 10_000_000


def test_what_a_child_took_is_learnt_for_its_kind_of_target() -> None:
    here = program(add, (8,), (8,))
    elsewhere = dataclasses.replace(here, target=dataclasses.replace(here.target, platform="tpu"))
    before = compile_memory.needs(elsewhere)
    compile_memory.learn(here, 5_000_000_000)
    compile_memory.learn(here, 1)
    compile_memory.learn(here, None)
    assert compile_memory.needs(here) == pytest.approx(5_000_000_000)
    assert compile_memory.needs(elsewhere) == before
