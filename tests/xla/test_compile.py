"""What compile_variants reports when things go wrong, and that it leaves nothing behind."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import pytest

from donation_inspector.xla import process
from donation_inspector.xla.compile import compile_variants
from processes import children, group_exists
from small_programs import TWO_INPUTS_ONE_RESULT, UNKNOWN_CUSTOM_CALL, add, program, with_text


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    before, descriptors = children(), set(os.listdir("/proc/self/fd"))
    yield
    assert children() == before
    assert len(os.listdir("/proc/self/fd")) <= len(descriptors)


def slow() -> Any:
    """A program that XLA compiles for several seconds."""

    def many(a: Any) -> Any:
        for i in range(1500):
            a = jnp.sin(a @ a) * (1.0 + i)
        return a

    return program(many, (8, 8), donate=(0,))


def test_a_module_that_xla_refuses_is_a_result_and_the_others_compile() -> None:
    good = program(add, (8,), (8,), donate=(0,))
    answers = compile_variants({"bad": with_text(good, TWO_INPUTS_ONE_RESULT), "good": good})
    assert list(answers) == ["bad", "good"]
    assert answers["bad"].status == "refused"
    assert answers["bad"].memory is None
    assert "already aliased with param 0" in (answers["bad"].error or "")
    assert answers["good"].status == "ok"
    assert answers["good"].input_output_alias == {0: 0}


def test_a_custom_call_that_only_the_parent_knows_is_named() -> None:
    original = program(add, (8,), (8,))
    strange = dataclasses.replace(with_text(original, UNKNOWN_CUSTOM_CALL), custom_calls=("only_there",))
    answer = compile_variants({"strange": strange})["strange"]
    assert answer.status == "refused"
    assert "'only_there', which only the process that traced it has registered" in (answer.error or "")


def test_progress_counts_the_variants() -> None:
    good = program(add, (8,), (8,))
    seen: list[tuple[int, int, str]] = []
    compile_variants({"a": good, "b": good}, progress=lambda *step: seen.append(step))
    assert seen == [(1, 2, "a"), (2, 2, "b")]


def test_no_programs_start_no_process() -> None:
    assert compile_variants({}) == {}


def test_a_killed_child_is_reported_and_the_next_variant_goes_on() -> None:
    good = program(add, (8,), (8,))
    victims: list[int] = []

    def kill(_step: int, _steps: int, label: str) -> None:
        if label == "a":
            (victim,) = children() - before
            victims.append(victim)
            os.kill(victim, signal.SIGKILL)

    before = children()
    answers = compile_variants({"a": good, "slow": slow(), "b": good}, progress=kill)
    assert {name: answer.status for name, answer in answers.items()} == {"a": "ok", "slow": "crashed", "b": "ok"}
    assert "killed by SIGKILL" in (answers["slow"].error or "")
    assert not group_exists(victims[0])


def test_a_child_that_aborts_leaves_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        process,
        "_BOOTSTRAP",
        "import os, sys; print('stray'); print('last words', file=sys.stderr, flush=True); os.abort()",
    )
    answer = compile_variants({"a": program(add, (8,), (8,))})["a"]
    assert answer.status == "crashed"
    assert "killed by SIGABRT" in (answer.error or "")
    assert "last words" in (answer.error or "")


def test_cancel_ends_the_compile_at_once_and_keeps_what_was_finished() -> None:
    cancel = threading.Event()
    times: list[float] = []
    leaders: list[int] = []
    before = children()

    def on_step(_step: int, _steps: int, _label: str) -> None:
        leaders.extend(children() - before)

        def later() -> None:
            time.sleep(0.5)
            times.append(time.monotonic())
            cancel.set()

        threading.Thread(target=later).start()

    good = program(add, (8,), (8,))
    answers = compile_variants({"good": good, "slow": slow(), "never": good}, progress=on_step, cancel=cancel)
    assert time.monotonic() - times[0] < 1.0
    assert [answers[name].status for name in ("good", "slow", "never")] == ["ok", "cancelled", "cancelled"]
    assert not group_exists(leaders[0])


def test_a_compile_that_takes_too_long_times_out() -> None:
    endless = slow()
    started = time.monotonic()
    answer = compile_variants({"slow": endless}, timeout=0.5)["slow"]
    assert time.monotonic() - started < 1.5
    assert (answer.status, answer.error) == ("timed out", "Timed out after 0.5 s.")


def test_interrupt_ends_the_child_and_keeps_what_was_finished() -> None:
    def interrupt(_step: int, _steps: int, _label: str) -> None:
        # as Ctrl-C does: at any moment while the parent waits
        threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)).start()

    good = program(add, (8,), (8,))
    answers = compile_variants({"good": good, "slow": slow()}, progress=interrupt)
    assert [answers[name].status for name in ("good", "slow")] == ["ok", "cancelled"]
    assert answers["slow"].error == "Interrupted."


def test_the_child_sees_neither_the_users_main_nor_the_users_environment(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    good = program(add, (8,), (8,))
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=1")
    monkeypatch.setenv("JAX_PLATFORMS", "tpu")
    monkeypatch.setenv("PYTHONSTARTUP", "/nonexistent")
    assert compile_variants({"good": good})["good"].status == "ok"
    assert capfd.readouterr() == ("", "")
