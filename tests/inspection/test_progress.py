"""Where progress goes when nobody gave a callback."""

from __future__ import annotations

import io
import sys

import pytest

from donation_inspector.common.progress import reported


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_given_callback_is_used_as_it_is() -> None:
    steps: list[tuple[int, int, str]] = []
    with reported(lambda *step: steps.append(step), "compiling") as progress:
        progress(1, 2, "none")
    assert steps == [(1, 2, "none")]


def test_a_terminal_shows_one_line_and_wipes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with reported(None, "compiling") as progress:
        progress(1, 2, "none")
    assert "\rcompiling · none, 1 of 2\x1b[K" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert "\n" not in terminal.getvalue()


def test_a_pipe_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with reported(None, "compiling") as progress:
        progress(1, 2, "none")
    assert pipe.getvalue() == ""
