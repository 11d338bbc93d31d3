"""What measure_variants reports when things go wrong, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

from donation_inspector.xla.measure import measure_variants
from lowered_cases import lower_case
from processes import children, group_exists
from small_programs import TWO_INPUTS_ONE_RESULT, add, endless, program, with_text


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, descriptors = children(), set(os.listdir("/proc/self/fd"))
    yield
    assert children() == before
    assert len(os.listdir("/proc/self/fd")) <= len(descriptors)
    assert list(tmp_path.iterdir()) == []


def test_no_programs_start_no_process() -> None:
    assert measure_variants({}, None) == {}


def test_a_refused_variant_is_a_result_and_the_others_run() -> None:
    good = program(add, (8,), (8,), donate=(0,))
    seen: list[tuple[int, int, str]] = []
    answers = measure_variants(
        {"bad": with_text(good, TWO_INPUTS_ONE_RESULT), "good": good},
        None,
        runs=2,
        progress=lambda *step: seen.append(step),
    )
    assert answers["bad"].status == "refused"
    assert "already aliased with param 0" in (answers["bad"].error or "")
    assert (answers["good"].status, answers["good"].runs) == ("ok", 2)
    assert seen == [
        (4, 8, "bad: refused"),
        (5, 8, "good: compiled"),
        (6, 8, "good: warmed up"),
        (7, 8, "good: run 1 of 2"),
        (8, 8, "good: run 2 of 2"),
    ]


def test_host_callbacks_are_refused_by_name() -> None:
    answer = measure_variants({"jax": lower_case("26_pure_callback_host_step").program()}, None)["jax"]
    assert answer.status == "refused"
    assert "make.<locals>.host" in (answer.error or "")
    assert "fresh process" in (answer.error or "")


def test_a_program_that_does_not_fit_is_not_run() -> None:
    huge = program(lambda a: a + 1, (2**40,))
    answer = measure_variants({"huge": huge}, None, runs=1)["huge"]
    assert (answer.status, answer.peak, answer.runs) == ("out of memory", None, 0)
    assert answer.predicted == 2 * 4 * 2**40
    assert (answer.error or "").startswith("Not run: it needs 8.8 TB, this machine has ")


def test_a_run_that_never_ends_times_out() -> None:
    answer = measure_variants({"endless": program(endless, (8,))}, None, timeout=10.0)["endless"]
    assert (answer.status, answer.error) == ("timed out", "Timed out after 10 s, in its first call.")
    assert answer.predicted is not None
    assert (answer.peak, answer.seconds, answer.output_hashes) == (None, None, None)


def test_runs_that_finished_before_the_time_out_count() -> None:
    ended: list[float] = []
    good = program(add, (8,), (8,))
    answer = measure_variants({"a": good}, None, runs=10_000, timeout=8.0, progress=lambda *_: ended.append(1.0))["a"]
    assert answer.status == "timed out"
    assert answer.runs >= 1
    assert answer.peak is not None
    assert answer.seconds is not None
    assert f"after {answer.runs} of 10000 runs" in (answer.error or "")


def test_a_killed_child_is_reported_with_the_signal() -> None:
    before = children()

    def kill(_step: int, _steps: int, label: str) -> None:
        if label == "a: compiled":
            (victim,) = children() - before
            os.kill(victim, signal.SIGKILL)

    answers = measure_variants(
        {"a": program(endless, (8,)), "b": program(add, (8,), (8,))}, None, runs=1, progress=kill
    )
    assert answers["a"].status == "crashed"
    assert "killed by SIGKILL" in (answers["a"].error or "")
    assert answers["b"].status == "ok"


def test_cancel_ends_a_run_at_once() -> None:
    cancel, times, leaders, before = threading.Event(), list[float](), list[int](), children()

    def on_step(_step: int, _steps: int, label: str) -> None:
        if label == "endless: compiled":
            leaders.extend(children() - before)

            def later() -> None:
                time.sleep(0.3)
                times.append(time.monotonic())
                cancel.set()

            threading.Thread(target=later).start()

    good = program(add, (8,), (8,))
    variants = {"good": good, "endless": program(endless, (8,)), "never": good}
    answers = measure_variants(variants, None, runs=1, cancel=cancel, progress=on_step)
    assert time.monotonic() - times[0] < 1.0
    assert [answers[name].status for name in variants] == ["ok", "cancelled", "cancelled"]
    assert answers["good"].peak is not None
    assert not group_exists(leaders[0])


def test_interrupt_keeps_what_was_finished() -> None:
    def interrupt(_step: int, _steps: int, label: str) -> None:
        if label == "endless: compiled":
            # as Ctrl-C does, while the parent waits
            threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)).start()

    variants = {"good": program(add, (8,), (8,)), "endless": program(endless, (8,))}
    answers = measure_variants(variants, None, runs=1, progress=interrupt)
    assert [answers[name].status for name in variants] == ["ok", "cancelled"]
    assert answers["endless"].error == "Interrupted."


def test_the_child_dies_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        "import os\n"
        "from small_programs import endless, program\n"
        "from donation_inspector.xla.measure import measure_variants\n"
        "from processes import children\n"
        "measure_variants({'a': program(endless, (8,))}, None, progress=lambda *_: print(*children(), flush=True))\n"
    )
    env = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1]))
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=env, text=True) as parent:
        assert parent.stdout is not None
        leader = int(parent.stdout.readline())
        assert group_exists(leader)
        parent.kill()
    deadline = time.monotonic() + 5
    while group_exists(leader) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not group_exists(leader)
    script.unlink()


def test_nothing_is_printed_and_the_user_main_is_not_imported(capfd: pytest.CaptureFixture[str]) -> None:
    def loud(a: Any) -> Any:
        return jnp.sort(a)

    assert measure_variants({"a": program(loud, (8,))}, None, runs=1)["a"].status == "ok"
    assert capfd.readouterr() == ("", "")
