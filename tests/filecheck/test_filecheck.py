"""Runs each `// RUN:` line of the .mlir files here: xdsl-opt, then filecheck on what it printed."""

from __future__ import annotations

import contextlib
import io
import logging
import shlex
import subprocess
import sysconfig
from collections.abc import Generator
from pathlib import Path

import pytest
from filecheck.matcher import Matcher
from filecheck.options import Options
from xdsl.xdsl_opt_main import xDSLOptMain

ERRORS_TOO = "2>&1"
HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("*.mlir"))


def run_lines(path: Path) -> list[list[str]]:
    """The arguments of xdsl-opt in each RUN line, which is `xdsl-opt %s … | filecheck %s`."""
    lines: list[list[str]] = []
    for line in path.read_text().splitlines():
        if line.startswith("// RUN:"):
            opt, _, check = line.removeprefix("// RUN:").partition("|")
            program, *arguments = shlex.split(opt.replace(ERRORS_TOO, ""))
            assert program == "xdsl-opt"
            assert shlex.split(check) == ["filecheck", "%s"]
            lines.append([str(path) if argument == "%s" else argument for argument in arguments])
    return lines


@contextlib.contextmanager
def notes_in(stream: io.StringIO) -> Generator[None]:
    """What the passes say beside what they do, which xdsl-opt has among its errors."""
    logger, handler = logging.getLogger("donation_inspector.passes"), logging.StreamHandler(stream)
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_filecheck(path: Path, tmp_path: Path) -> None:
    runs = run_lines(path)
    assert runs, "a file without a RUN line tests nothing"
    for arguments in runs:
        printed = io.StringIO()
        with (
            contextlib.redirect_stdout(printed),
            notes_in(printed if ERRORS_TOO in path.read_text() else io.StringIO()),
        ):
            xDSLOptMain(args=arguments).run()
        output = tmp_path / "output.mlir"
        output.write_text(printed.getvalue())
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            status = Matcher.from_opts(Options(match_filename=str(path), input_file=str(output))).run()
        assert status == 0, f"{told.getvalue()}\nxdsl-opt printed:\n{printed.getvalue()}"


def test_xdsl_opt_on_the_command_line_knows_our_passes() -> None:
    path = HERE / "materialize-to-aliasing-output" / "result_into_argument.mlir"
    result = subprocess.run(
        [f"{sysconfig.get_path('scripts')}/xdsl-opt", str(path), "-p", "materialize-to-aliasing-output"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "tf.aliasing_output = 0 : i32" in result.stdout
