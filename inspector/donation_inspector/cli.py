"""From the shell: `donation-inspector inspect FILE`, the report on a file; `donation-inspector measure FILE`, run it.

A file is MLIR (text or bytecode) or what `Inspection.save` wrote.
"""

from __future__ import annotations

import argparse
import io
import os
import pathlib
import sys
import zipfile
from collections.abc import Sequence
from typing import Any, TextIO, cast

from donation_inspector import __version__
from donation_inspector.applying import REAL_PASS
from donation_inspector.errors import DonationInspectorError
from donation_inspector.inspection import Inspection, inspect_ir, load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when there is a report, 1 when there is only an error."""
    options = _parser().parse_args(arguments)
    stdout: TextIO = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        # a terminal without UTF-8 still gets its report
        cast("io.TextIOWrapper[Any]", stdout).reconfigure(errors="replace")
    try:
        inspection = options.run(options)
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


def _inspect(options: argparse.Namespace) -> Inspection:
    inspection = _opened(options)
    targets: list[str | None] = [*([None] if options.compare else []), *(options.target or [])]
    if len(targets) == 1:
        inspection.compare(targets[0], fits=options.fits)
    elif targets:
        inspection.compare(targets, fits=options.fits)
    return inspection


def _measure(options: argparse.Namespace) -> Inspection:
    # This process only asks; what it took of a GPU would be missing in the ones that run.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    inspection = _opened(options)
    inspection.compare()
    inspection.measure(inputs="generated", runs=options.runs, timeout=options.timeout)
    return inspection


def _opened(options: argparse.Namespace) -> Inspection:
    saved = zipfile.is_zipfile(options.file)
    inspection = load(options.file) if saved else inspect_ir(options.file)
    if options.pipeline is not None:
        inspection = inspection.with_pipeline(options.pipeline)
    return inspection.donate(*options.donate) if options.donate else inspection


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="donation-inspector",
        description="What buffer donation does to a program: verdicts, live memory, the xDSL pass, XLA's own buffers.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    inspect = commands.add_parser("inspect", help="the report on one file")
    inspect.set_defaults(run=_inspect)
    inspect.add_argument("--compare", action="store_true", help="compile with XLA for this machine")
    inspect.add_argument(
        "--target", action="append", metavar="TARGET", help="compile for it too, as tpu:v5e (give it several times)"
    )
    inspect.add_argument("--fits", metavar="SIZE", help="the memory of one device, as 24GB")
    measure = commands.add_parser("measure", help="compile a file, run it in fresh processes, and report")
    measure.set_defaults(run=_measure)
    measure.add_argument("--runs", type=int, default=5, help="measured calls of each variant (default: %(default)s)")
    measure.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="for each variant (default: %(default)s)"
    )
    for command in (inspect, measure):
        command.add_argument("file", type=pathlib.Path, help="MLIR text or bytecode, or what Inspection.save wrote")
        command.add_argument("-p", "--pipeline", help=f"as for xdsl-opt (default: {REAL_PASS}, or the saved one)")
        command.add_argument("--donate", action="append", metavar="PATH", help="donate this argument too")
        command.add_argument("--html", type=pathlib.Path, metavar="FILE", help="write the report as HTML too")
    return parser
