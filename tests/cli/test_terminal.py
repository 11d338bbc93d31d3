"""The command line at a terminal: the words of the report laid out for its width, colours, a live bar."""

from __future__ import annotations

import fcntl
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest

from donation_inspector.cli import main
from processes import children
from shell_programs import COMMAND

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m")

# An argument that is aliased, one that is not: the file is inspected in every test, and compiled where a test says so.
DOUBLE = """
func.func public @main(%w: tensor<64x1024xf32> {tf.aliasing_output = 0 : i32}, %batch: tensor<3xf32>)
    -> tensor<64x1024xf32> {
  %0 = stablehlo.add %w, %w : tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}
"""

ENDLESS = """
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.while(%it = %x) : tensor<f32>
  cond {
    %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %n = stablehlo.add %it, %it : tensor<f32>
    stablehlo.return %n : tensor<f32>
  }
  return %0 : tensor<f32>
}
"""


class Terminal:
    """A pseudo-terminal of a width; `shown` is what was written on it."""

    def __init__(self, columns: int) -> None:
        self._ours, self.theirs = os.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self._written = bytearray()
        self._grown = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        # a terminal whose other side is closed is an error on Linux, not an end
        while data := _or_end(self._ours):
            with self._grown:
                self._written += data
                self._grown.notify()

    def wait_for(self, words: str, seconds: float) -> bool:
        with self._grown:
            return self._grown.wait_for(lambda: words.encode() in self._written, seconds)

    def close(self) -> str:
        os.close(self.theirs)
        self._reader.join()
        os.close(self._ours)
        return self._written.decode().replace("\r\n", "\n")


def _or_end(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        return b""


@pytest.fixture
def double(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "double.mlir"
    path.write_text(DOUBLE)
    return path


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A terminal with colours, whatever the tests run in."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return monkeypatch


def shown(arguments: list[str], columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `main` writes on a terminal; stderr is none."""
    terminal = Terminal(columns)
    # the width of a terminal that is not this process's own is what it says
    monkeypatch.setenv("COLUMNS", str(columns))
    with open(terminal.theirs, "w", closefd=False) as stdout, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        assert main(arguments) == 0
    return terminal.close()


def words(text: str) -> list[str]:
    return sorted(ESCAPES.sub("", text).split())


@pytest.mark.parametrize("columns", [160, 80])
def test_the_same_words_as_in_a_pipe_within_the_width(
    columns: int, double: pathlib.Path, colours: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["inspect", str(double)])
    piped = capsys.readouterr().out
    assert not ESCAPES.search(piped)
    text = shown(["inspect", str(double)], columns, colours)
    assert words(text) == words(piped)
    assert max(len(line) for line in ESCAPES.sub("", text).splitlines()) <= columns
    assert max(len(line) for line in piped.splitlines()) > 80


def test_a_terminal_too_narrow_for_columns_names_the_cells(double: pathlib.Path, colours: pytest.MonkeyPatch) -> None:
    text = ESCAPES.sub("", shown(["inspect", str(double)], 40, colours))
    assert "leaf arg1\n  type f32[3]\n  bytes 12 B\n  verdict not donated\n  why no result is float32[3]" in text
    assert max(map(len, text.splitlines())) <= 40


def test_verdicts_have_colours_unless_somebody_wants_none(double: pathlib.Path, colours: pytest.MonkeyPatch) -> None:
    arguments = ["inspect", str(double)]
    assert "1 \x1b[32maliased\x1b[0m" in shown(arguments, 100, colours)
    colours.setenv("NO_COLOR", "1")
    assert not COLOUR.search(shown(arguments, 100, colours))
    colours.delenv("NO_COLOR")
    colours.setenv("TERM", "dumb")
    assert not ESCAPES.search(shown(arguments, 100, colours))


@pytest.mark.usefixtures("colours")
def test_the_bar_is_on_stderr_and_a_pipe_gets_the_plain_report(
    double: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(double), "--compare"]) == 0
    plain = capsys.readouterr().out
    stderr = Terminal(100)
    command = [*COMMAND, "inspect", str(double), "--compare"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr.theirs, env=os.environ, text=True)
    bar = stderr.close()
    assert (run.returncode, run.stdout) == (0, plain)
    assert re.search(r"XLA compiles · .*━+", bar)
    # it wipes itself, and the cursor is there again
    assert bar.rindex("\x1b[?25h") > bar.rindex("\x1b[?25l")
    assert bar.rindex("\x1b[2K") > bar.rindex("XLA compiles")


@pytest.mark.usefixtures("colours")
def test_ctrl_c_leaves_the_report_of_what_was_finished(tmp_path: pathlib.Path) -> None:
    endless = tmp_path / "endless.mlir"
    endless.write_text(ENDLESS)
    stderr = Terminal(100)
    command = [*COMMAND, "measure", str(endless), "--runs", "1", "--timeout", "100"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr.theirs, text=True)
    assert stderr.wait_for("runs in fresh processes", 60)
    while not children(run.pid):
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    text = run.communicate(timeout=60)[0]
    assert (run.returncode, "Traceback" in stderr.close()) == (130, False)
    assert "compiled  argument  output" in text
