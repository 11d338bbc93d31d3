"""`donation-inspector inspect FILE`: the report on a StableHLO file, from the shell."""

from __future__ import annotations

import argparse
import io
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, TextIO, cast

from donation_inspector import __version__
from donation_inspector.applying import REAL_PASS
from donation_inspector.errors import DonationInspectorError
from donation_inspector.inspection import inspect_ir


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when there is a report, 1 when there is only an error."""
    options = _parser().parse_args(arguments)
    stdout: TextIO = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        # a terminal without UTF-8 still gets its report
        cast("io.TextIOWrapper[Any]", stdout).reconfigure(errors="replace")
    try:
        inspection = inspect_ir(options.file).with_pipeline(options.pipeline)
        if options.donate:
            inspection = inspection.donate(*options.donate)
        if options.compare:
            inspection.compare()
        report = inspection.report()
        if options.html:
            inspection.to_html(options.html)
    except DonationInspectorError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{options.html} cannot be written: {error.strerror}.")
    try:
        print(report, flush=True)
    except BrokenPipeError:
        # whoever reads has seen enough (`| head`); Python must not try again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(message: str) -> int:
    print(f"donation-inspector: {message}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="donation-inspector",
        description="What buffer donation does to a StableHLO program: verdicts, live memory, the xDSL pass.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    inspect = commands.add_parser("inspect", help="the report on one file")
    inspect.add_argument("file", type=pathlib.Path, help="MLIR text or bytecode")
    inspect.add_argument("-p", "--pipeline", default=REAL_PASS, help="as for xdsl-opt (default: %(default)s)")
    inspect.add_argument("--donate", action="append", metavar="PATH", help="donate this argument too")
    inspect.add_argument("--compare", action="store_true", help="compile with XLA for this machine")
    inspect.add_argument("--html", type=pathlib.Path, metavar="FILE", help="write the report as HTML too")
    return parser
