"""The command line: a report or one line of error, and the exit code."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import jax
import pytest

import donation_inspector as di
from donation_inspector.capture.opening import inspect_ir
from donation_inspector.cli import main
from shell_programs import COMMAND, SWAP


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
        (
            ["{swap}", "--json", "no/such/folder.json"],
            "no/such/folder.json cannot be written: No such file or directory",
        ),
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


def test_what_was_computed_is_told_where_a_file_cannot_be_written(
    swap: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(swap), "--json", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "jax-use-donated-arguments: 1 pair." in captured.out
    assert f"{tmp_path} cannot be written: Is a directory" in captured.err


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


def test_a_donation_is_recommended_with_the_lines_to_paste(
    train: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "step.json"
    arguments = ["inspect", f"{train}:either", "--args", "both", "--recommend", "5", "--json", str(written)]
    assert main(arguments) == 0
    found = json.loads(written.read_text())["recommendation"]
    either, one = sys.modules[train].either, sys.modules[train].one
    stats = jax.jit(either).lower(one, second=one).compile().memory_analysis()
    assert stats is not None
    total = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
    assert (found["target"], found["baselines"]["none"]) == ("cpu", total)
    printed = capsys.readouterr().out
    assert printed.count("\n\nRecommended on cpu (compiled; ") == 1
    assert printed.endswith(f"{found['code']}\n".lstrip("\n"))


def test_two_versions_are_compared_from_what_was_written(
    train: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after, found = (tmp_path / name for name in ("before.json", "after.json", "found.json"))
    for path, options in ((before, []), (after, ["--donate", "second"])):
        assert main(["inspect", f"{train}:either", "--args", "both", "--json", str(path), *options]) == 0
    capsys.readouterr()
    assert main(["diff", str(before), str(before)]) == 0
    assert capsys.readouterr().out == "either\n\nNothing is different.\n"
    assert main(["diff", str(before), str(after), "--json", str(found)]) == 1
    assert "second    not donated  aliased  16 B\n" in capsys.readouterr().out
    assert json.loads(found.read_text())["same"] is False
    assert main(["diff", str(before), str(tmp_path / "none.json")]) == 2
    assert "none.json cannot be read: No such file" in capsys.readouterr().err


def test_ctrl_c_in_the_users_code_is_no_traceback(tmp_path: pathlib.Path) -> None:
    (tmp_path / "slow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(60)")
    command = [*COMMAND, "inspect", "slow:f"]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "here\n"
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=60)[1] == "donation-inspector: interrupted.\n"
    assert run.returncode == 130


@pytest.mark.parametrize("ended", ["compare", "measure"])
def test_ctrl_c_at_any_time_leaves_what_was_finished(
    ended: str, train: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare = di.Inspection.compare

    def interrupted(self: di.Inspection, *args: Any, cancel: Any = None, **kwargs: Any) -> Any:
        if ended == "measure":
            raise KeyboardInterrupt
        answer = compare(self, *args, cancel=cancel, **kwargs)
        if cancel is None:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(di.Inspection, ended, interrupted)
    assert main(["measure", f"{train}:step", "--args", "make_args"]) == 130
    captured = capsys.readouterr()
    assert "compiled  argument  output" in captured.out
    assert captured.err == "donation-inspector: interrupted, the rest is left out.\n"
