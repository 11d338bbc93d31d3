"""From the shell: `inspect FILE`, the report on a file; `measure FILE`, run it; `corpus FOLDER`, passes on many files.

A file is MLIR (text or bytecode) or what `Inspection.save` wrote.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import sys
import zipfile
from collections.abc import Sequence
from typing import Any, TextIO, cast

from donation_inspector import __version__, corpus
from donation_inspector.applying import REAL_PASS
from donation_inspector.errors import DonationInspectorError
from donation_inspector.inspection import Inspection
from donation_inspector.opening import inspect_ir, load
from donation_inspector.progress import reported


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when there is a report, 1 when there is only an error or a corpus has a gap."""
    options = _parser().parse_args(arguments)
    stdout: TextIO = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        # a terminal without UTF-8 still gets its report
        cast("io.TextIOWrapper[Any]", stdout).reconfigure(errors="replace")
    try:
        text, complete = options.run(options)
    except DonationInspectorError as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.filename} cannot be written: {error.strerror}.")
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # whoever reads has seen enough (`| head`); Python must not try again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0 if complete else 1


def _fail(message: str) -> int:
    print(f"donation-inspector: {message}", file=sys.stderr)
    return 1


def _corpus(options: argparse.Namespace) -> tuple[str, bool]:
    pipelines = options.pipeline or [REAL_PASS]
    with reported(None, f"corpus {options.folder}") as progress:
        result = corpus.run(options.folder, pipelines, compile=not options.no_compile, progress=progress)
    if options.json:
        options.json.write_text(json.dumps(result.to_dict(), indent=2) + "\n", encoding="utf-8")
    return str(result), result.complete


def _report(inspection: Inspection, options: argparse.Namespace) -> tuple[str, bool]:
    text = inspection.report()
    if options.html:
        inspection.to_html(options.html)
    return text, True


def _inspect(options: argparse.Namespace) -> tuple[str, bool]:
    inspection = _opened(options)
    targets: list[str | None] = [*([None] if options.compare else []), *(options.target or [])]
    if options.fits and not targets:
        targets = [None]
    if len(targets) == 1:
        inspection.compare(targets[0], fits=options.fits)
    elif targets:
        inspection.compare(targets, fits=options.fits)
    return _report(inspection, options)


def _measure(options: argparse.Namespace) -> tuple[str, bool]:
    # This process only asks; what it took of a GPU would be missing in the ones that run.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    inspection = _opened(options)
    inspection.compare()
    inspection.measure(inputs="generated", runs=options.runs, timeout=options.timeout)
    return _report(inspection, options)


def _opened(options: argparse.Namespace) -> Inspection:
    # a saved file that was cut short is no zip any more
    saved = options.file.suffix == ".di" or zipfile.is_zipfile(options.file)
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
    many = commands.add_parser("corpus", help="what pipelines make of every program in a folder, as a table")
    many.set_defaults(run=_corpus)
    many.add_argument(
        "folder", type=pathlib.Path, help=f"with {', '.join(corpus.SUFFIXES)} files, in folders of it too"
    )
    many.add_argument(
        "-p",
        "--pipeline",
        action="append",
        help=f"as for xdsl-opt; give it several times (default: {REAL_PASS})",
    )
    many.add_argument("--no-compile", action="store_true", help="leave out XLA's totals")
    many.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write everything as JSON too")
    return parser
