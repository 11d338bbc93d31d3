"""Ctrl-C while something is set up, used and cleaned up: what was set up is always cleaned up, whole and once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

import pytest

from donation_inspector.common.interrupts import held


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def nothing() -> None:
    pass


@pytest.mark.parametrize(
    ("in_set_up", "inside", "in_clean_up", "interrupted"),
    [
        (nothing, nothing, nothing, False),
        (press, nothing, nothing, True),
        (nothing, press, nothing, True),
        (nothing, nothing, press, True),
        (nothing, press, press, True),
        (press, nothing, press, True),
    ],
)
def test_what_was_set_up_is_cleaned_up_whenever_ctrl_c_comes(
    in_set_up: Callable[[], None], inside: Callable[[], None], in_clean_up: Callable[[], None], interrupted: bool
) -> None:
    before = signal.getsignal(signal.SIGINT)
    done: list[str] = []

    def set_up() -> str:
        in_set_up()
        done.append("set up")
        return "thing"

    def clean_up(made: str) -> None:
        in_clean_up()
        done.append(f"{made} cleaned up")

    raised = False
    try:
        with held(set_up, clean_up) as made:
            assert made == "thing"
            inside()
    except KeyboardInterrupt:
        raised = True

    assert raised is interrupted
    assert done == ["set up", "thing cleaned up"]
    assert signal.getsignal(signal.SIGINT) is before


def test_nested_ones_are_all_cleaned_up_by_two_presses() -> None:
    done: list[str] = []

    def clean_up(name: str) -> None:
        press()
        done.append(name)

    with (
        pytest.raises(KeyboardInterrupt),
        held(lambda: "outer", clean_up),
        held(lambda: "inner", clean_up),
    ):
        press()

    assert done == ["inner", "outer"]


def test_a_handler_that_does_not_raise_hears_every_press() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with held(lambda: None, lambda _: None):
            press()
            press()
    finally:
        signal.signal(signal.SIGINT, before)

    assert len(heard) == 2


def test_a_thread_has_no_signals() -> None:
    done: list[str] = []

    def work() -> None:
        with held(lambda: "thing", done.append):
            done.append("inside")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == ["inside", "thing"]
