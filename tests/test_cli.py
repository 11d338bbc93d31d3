"""The command line: a report or one line of error, and the exit code."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from donation_inspector.cli import main
from donation_inspector.opening import inspect_ir

SWAP = """
module {
  func.func public @main(%arg0: tensor<8xf32> {tf.aliasing_output = 1 : i32}, %arg1: tensor<8xf32>)
      -> (tensor<8xf32>, tensor<8xf32>) {
    return %arg1, %arg0 : tensor<8xf32>, tensor<8xf32>
  }
}
"""

COMMAND = [sys.executable, "-c", "from donation_inspector.cli import main; raise SystemExit(main())"]


@pytest.fixture
def swap(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "swap.mlir"
    path.write_text(SWAP)
    return path


def test_it_prints_the_report_and_writes_the_page(
    swap: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "swap.html"
    assert main(["inspect", str(swap), "--donate", "arg1", "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "swap.mlir" in printed
    assert "jax-use-donated-arguments: 2 pairs" in printed
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.mlir"], "cannot be read"),
        (["{swap}", "-p", "no-such-pass"], "no pass 'no-such-pass'"),
        (["{swap}", "--donate", "arg7"], "no argument 'arg7'"),
        (["{swap}", "--html", "{swap}/page.html"], "cannot be written: Not a directory"),
        (["{swap}", "--target", "moon"], "There is no target 'moon'"),
        (["{swap}", "--compare", "--fits", "much"], "fits='much' is no amount of memory"),
    ],
)
def test_an_error_is_one_line_and_exit_code_one(
    swap: pathlib.Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", *(one.format(swap=swap) for one in arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.startswith("donation-inspector: ")
    assert "Traceback" not in captured.err


def test_a_reader_that_has_seen_enough_is_no_error(swap: pathlib.Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as closed:
        run = subprocess.run([*COMMAND, "inspect", str(swap)], stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_xlas_own_log_stays_as_quiet_as_jax_keeps_it(swap: pathlib.Path) -> None:
    # as in a shell that JAX has not been imported in
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    run = subprocess.run([*COMMAND, "inspect", str(swap)], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_it_compares_for_a_target_and_says_what_fits(swap: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(swap), "--compare", "--fits", "1KB"]) == 0
    printed = capsys.readouterr().out
    assert "it fits the 1.0 KB of a device" in printed
    assert printed.count(" yes\n") == 3


def test_a_file_is_measured_in_processes_of_its_own(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "double.mlir"
    path.write_text(
        "func.func public @main(%arg0: tensor<1024x1024xf32> {tf.aliasing_output = 0 : i32}) -> tensor<1024x1024xf32> "
        "{ %0 = stablehlo.add %arg0, %arg0 : tensor<1024x1024xf32> return %0 : tensor<1024x1024xf32> }"
    )
    assert main(["measure", str(path), "--runs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "Donation saves 4.2 MB of 8.4 MB (50 %), compiled for cpu; measured 4." in printed
    assert "inputs: generated; 1 run each" in printed


def test_what_was_saved_is_read_as_any_file(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "step.di"
    inspect_ir(SWAP).donate("arg1").save(saved)
    assert main(["inspect", str(saved)]) == 0
    assert "jax-use-donated-arguments: 2 pairs" in capsys.readouterr().out
    broken = tmp_path / "broken.di"
    broken.write_bytes(saved.read_bytes()[:-200] + saved.read_bytes()[-100:])
    assert main(["inspect", str(broken)]) == 1
    assert "is no saved Inspection" in capsys.readouterr().err
