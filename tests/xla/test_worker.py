"""The child's own parts, run in this process: what it does where the system tells nothing, and how it raises."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from donation_inspector.xla import memory, peak, process, worker
from donation_inspector.xla.measure import measure_variants
from donation_inspector.xla.process import child, environment
from donation_inspector.xla.protocol import (
    CompileDone,
    CompileJob,
    Decoder,
    Event,
    MeasureJob,
    OutOfMemory,
    Raised,
    RunDone,
    WarmedUp,
    Workspace,
    encode,
)
from donation_inspector.xla.results import Compiled
from small_programs import add, endless, program


def events_of(job: MeasureJob) -> list[Event]:
    events: list[Event] = []
    worker.measure(job, events.append)
    return events


def test_without_proc_the_peak_is_unknown_and_the_rest_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path)
    compiled, warm, *runs, space = events_of(MeasureJob(program(add, (8,), (8,)), (None, None), None, 2))
    assert isinstance(compiled, CompileDone)
    assert isinstance(warm, WarmedUp)
    assert len(warm.output_hashes) == 1
    assert len(runs) == 2
    for run in runs:
        assert isinstance(run, RunDone)
        assert (run.highest, run.baseline) == (None, None)
        assert run.seconds > 0
    assert space == Workspace(None)


def test_a_figure_that_the_child_could_not_take_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    blind = "from donation_inspector.xla import memory; memory.resident = memory.peak = lambda: None; "
    before, start = process._BOOTSTRAP.split("from ", 1)
    monkeypatch.setattr(process, "_BOOTSTRAP", f"{before}{blind}from {start}")
    answer = measure_variants({"a": program(add, (8,), (8,))}, None, runs=2)["a"]
    assert (answer.status, answer.peak, answer.spread, answer.workspace, answer.runs) == ("ok", None, None, None, 2)
    assert answer.seconds is not None
    assert answer.output_hashes is not None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError("INTERNAL: bad"), Raised("RuntimeError: INTERNAL: bad")),
        (RuntimeError("RESOURCE_EXHAUSTED: no"), OutOfMemory(None, None, "RESOURCE_EXHAUSTED: no")),
        (MemoryError("no"), OutOfMemory(None, None, "no")),
    ],
)
def test_a_call_that_raises_is_an_event(error: Exception, expected: Event, monkeypatch: pytest.MonkeyPatch) -> None:
    def call(*_: object) -> None:
        raise error

    monkeypatch.setattr(worker, "_call", call)
    assert events_of(MeasureJob(program(add, (8,), (8,)), (None, None), None, 1))[-1] == expected


def test_the_kernel_killing_for_memory_is_out_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    kills = iter(range(10))
    monkeypatch.setattr(process, "out_of_memory_kills", lambda: next(kills))
    forever = program(endless, (8,))
    with child(MeasureJob(forever, (None,), None, 1), environment(forever)) as running:
        for _ in running.events(cancel=None, deadline=time.monotonic() + 60):
            process.os.kill(running.pid, signal.SIGKILL)
    assert running.failure is not None
    assert running.failure.status == "out of memory"
    assert "SIGKILL" in running.failure.error


def test_events_survive_any_cut() -> None:
    sent: list[Event] = [RunDone(0.1, 5, 2), CompileDone("x" * 300, Compiled("ok", None, {1: 0})), Raised("no")]
    data = b"".join(map(encode, sent))
    for size in (1, 7, 64, len(data)):
        decoder, got = Decoder(), list[Event]()
        for start in range(0, len(data), size):
            got += decoder.feed(data[start : start + size])
        assert got == sent


def test_a_job_for_many_devices_has_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENABLE_COMPILATION_CACHE", "1")
    env = environment(program(add, (8,), (8,)))
    assert env["JAX_NUM_CPU_DEVICES"] == "8"
    assert "device_count" not in env["XLA_FLAGS"]
    assert "JAX_ENABLE_COMPILATION_CACHE" not in env


def test_a_child_is_gone_when_the_body_raises() -> None:
    good = program(add, (8,), (8,))
    pids: list[int] = []

    def fail() -> None:
        with child(CompileJob((("a", good),)), environment(good)) as running:
            pids.append(running.pid)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with pytest.raises(ProcessLookupError):
        process.os.killpg(pids[0], 0)


@pytest.mark.parametrize(
    ("sizes", "limit"),
    [
        ([16_000_000] * 7, 16_000_000),
        # 0.1 % of the bytes may hide in work space, 1 % may not
        ([10_000] * 100 + [10_000_000] * 100, 10_000_000),
        ([100_000] * 100 + [10_000_000] * 100, None),
        ([1000] * 10, None),
        ([], None),
        ([0, 0], None),
    ],
)
def test_workspace_limit(sizes: list[int], limit: int | None) -> None:
    assert peak.workspace_limit(sizes) == limit
