"""Nothing is compiled twice in one kernel; several are compiled at once, and why not, where they are not."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.questions.compare import ask as compiling
from donation_inspector.xla import compile_memory, memory
from donation_inspector.xla.program import Program, fingerprint
from donation_inspector.xla.results import Compiled
from processes import children

CELL = """
def step(w, state, x):
    return w - 0.1 * jnp.tanh(x).sum() * w, state + w.sum()

inspection = di.inspect(jax.jit(step, donate_argnums=(0, 1)), jnp.ones((64, 64)), jnp.ones((64, 64)), jnp.ones(8))
"""


def run_cell() -> di.Inspection:
    """As a kernel runs it: under a file name that its text gives it."""
    namespace: dict[str, Any] = {"jax": jax, "jnp": jnp, "di": di}
    exec(compile(CELL, "/tmp/ipykernel_1/2.py", "exec"), namespace)
    return namespace["inspection"]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the children were given to compile, by content."""
    asked: list[str] = []
    real: Callable[..., Any] = compiling.compile_variants

    def listening(programs: Mapping[str, Program], **options: Any) -> Any:
        asked.extend(map(fingerprint, programs.values()))
        return real(programs, **options)

    monkeypatch.setattr(compiling, "compile_variants", listening)
    return asked


def test_a_session_compiles_each_module_once(compiled: list[str]) -> None:
    # from one and the same line, as a kernel calls what is in a cell
    inspection, again = [run_cell() for _ in range(2)]
    comparison = inspection.compare()
    assert len(compiled) == 2
    measurement = inspection.measure(runs=1)
    assert {one.executable for one in measurement.variants.values()} == {"compiled before"}
    assert measurement.executables in inspection.report()
    found = inspection.recommend(compiles=5)
    assert found.exhaustive
    tried = len(compiled)
    # the best is compiled once more where its line gives JAX another program
    assert tried in (2 + 5, 2 + 6)
    other = inspection.keep("w")
    assert other.compare().compiled_saved is not None
    assert other.donate("w").compare() == comparison
    # JAX's pairing with w kept was a candidate, and now has XLA's buffers without another compile
    assert other.compare().variants["jax"].buffers is not None
    assert again.compare() == comparison
    assert again.compare().how == "kept: compiled before"
    assert again.compare().variants["jax"].buffers is comparison.variants["jax"].buffers
    assert {one.executable for one in again.measure(runs=1).variants.values()} == {"compiled before"}
    assert again.recommend(compiles=5).total == found.total
    assert len(compiled) == len(set(compiled)) == tried


def test_measure_alone_compiles_once_for_all_runs_and_for_compare(compiled: list[str]) -> None:
    inspection, steps = run_cell(), list[tuple[int, int]]()
    measurement = inspection.measure(runs=1, progress=lambda step, all_, _: steps.append((step, all_)))
    assert {one.executable for one in measurement.variants.values()} == {"compiled for the runs"}
    assert measurement.outputs_equal
    assert steps[-1] == (6, 6)
    assert steps == sorted(steps)
    assert inspection.compare().compiled_saved is not None
    assert len(compiled) == 2


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_memory, "workers", lambda: 2)


@pytest.mark.usefixtures("two_cores")
def test_two_variants_are_compiled_at_once_and_a_crash_loses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    before, seen, inspection = children(), set[int](), run_cell()
    both = threading.Event()

    def watch() -> None:
        while not both.wait(0.01):
            seen.update(children() - before)
            if len(seen) == 2:
                os.kill(max(seen), signal.SIGKILL)
                both.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    comparison = inspection.compare()
    both.set()
    watcher.join()
    assert sorted(one.status for name, one in comparison.variants.items() if name != "pass") == ["crashed", "ok"]
    assert comparison.how == "compiled in 2 processes at once"
    assert children() == before
    # what was finished is kept, and the other one goes better the next time
    anew = inspection.compare()
    assert {one.status for one in anew.variants.values()} == {"ok"}
    assert anew.how == "compiled in one process, one after the other"
    monkeypatch.undo()


@pytest.mark.usefixtures("two_cores")
def test_without_memory_for_two_there_is_one_child_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 400 << 20)
    said: list[str] = []
    comparison = run_cell().compare(progress=lambda _step, _steps, label: said.append(label))
    assert said[0].startswith("one after the other: a compile takes about ")
    assert said[0].endswith(", 419 MB are free")
    assert said[1:] == ["none", "jax = pass"]
    assert comparison.how == f"compiled in one process, {said[0]}"


@pytest.mark.usefixtures("two_cores")
def test_what_ran_out_of_memory_beside_another_is_compiled_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[list[str]] = []

    def short(programs: Mapping[str, Program], **_: Any) -> dict[str, Compiled]:
        parts.append(list(programs))
        ended = Compiled("out of memory", error="ended") if len(parts) < 3 else Compiled("refused", error="no")
        return dict.fromkeys(programs, ended)

    monkeypatch.setattr(compiling, "compile_variants", short)
    comparison = run_cell().compare()
    assert sorted(parts) == [["jax = pass"], ["none"], ["none", "jax = pass"]]
    assert {one.status for one in comparison.variants.values()} == {"refused"}
    assert comparison.how == "compiled in one process, one after the other: memory ran out"


@pytest.mark.usefixtures("two_cores")
def test_ctrl_c_ends_both_and_keeps_what_was_finished() -> None:
    before, inspection = children(), run_cell()

    def interrupt(_step: int, _steps: int, _label: str) -> None:
        signal.raise_signal(signal.SIGINT)

    comparison = inspection.compare(progress=interrupt)
    statuses = [comparison.variants[name].status for name in ("none", "jax")]
    assert "ok" in statuses
    assert children() == before
    assert {one.status for one in inspection.compare().variants.values()} == {"ok"}
