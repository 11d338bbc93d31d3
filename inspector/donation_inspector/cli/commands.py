"""The commands: each prints its answer and returns the exit code."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from donation_inspector.bufferized.values import TARGET as MLIR
from donation_inspector.bufferized.values import Bufferization
from donation_inspector.checks import corpus as corpora
from donation_inspector.cli import gate, terminal
from donation_inspector.cli.program import Program, open_program, pass_class
from donation_inspector.inspection import Inspection
from donation_inspector.present import differences, report
from donation_inspector.questions.apply.ask import REAL_PASS
from donation_inspector.questions.compare.answer import Comparison
from donation_inspector.questions.measure.answer import Measurement

FOUND, INTERRUPTED = 3, 130

_CLASS = re.compile(r"[\w.]+:\w+")


def inspect(options: argparse.Namespace) -> int:
    """The report on one program."""
    inspection = _opened(options).inspection
    asked: list[str] = options.target or []
    devices: list[str | None] = [*([None] if options.compare else []), *(one for one in asked if one != MLIR)]
    if not devices and (options.fits or gate.needs_xla(inspection, options.fail_on)):
        devices = [None]
    finished = not devices or _compare(inspection, devices, options.fits)
    if finished and MLIR in asked:
        finished = _bufferize(inspection)
    if finished and options.recommend is not None:
        _recommend(inspection, devices[0] if devices else None, options.recommend, options.fits)
    return _report(inspection, options, finished)


def measure(options: argparse.Namespace) -> int:
    """Compile, run, report."""
    # This process only asks; what it took of a GPU would be missing in the ones that run.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    program = _opened(options)
    inspection = program.inspection
    what = inspection.will_run
    if what is not None:
        print(f"donation-inspector: runs {what}.", file=sys.stderr)
    finished = _compare(inspection, [None]) and _measure(inspection, options.runs, options.timeout)
    return _report(inspection, options, finished)


def corpus(options: argparse.Namespace) -> int:
    """Pipelines on every program of a folder."""
    pipelines = [pass_class(one) if _CLASS.fullmatch(one) else one for one in options.pipeline or [REAL_PASS]]
    with terminal.progress(f"corpus {options.folder}") as progress:
        result = corpora.run(
            options.folder,
            pipelines,
            compile=not options.no_compile,
            bufferize=not (options.no_compile or options.no_mlir),
            progress=progress,
        )
    _write_json(options.json, result.to_dict)
    terminal.show([str(result)])
    return 0 if result.complete else 1


def diff(options: argparse.Namespace) -> int:
    """What is different in the second of two summaries."""
    found = differences.between(differences.read(options.before), differences.read(options.after))
    _write_json(options.json, found.to_dict)
    terminal.show(found.blocks())
    return 0 if found.same else 1


def _opened(options: argparse.Namespace) -> Program:
    for path in filter(None, (options.html, options.json)):
        _check_folder(path)
    opened = open_program(options.program, options.args, options.entry)
    inspection = opened.inspection
    if options.pipeline is not None:
        inspection = inspection.with_pipeline(options.pipeline)
    if options.donate:
        inspection = inspection.donate(*options.donate)
    return Program(inspection, opened.arguments)


def _check_folder(path: pathlib.Path) -> None:
    """Raise OSError before anything is computed where there is no folder to write a file in."""
    try:
        os.stat(os.path.join(path.parent, ""))
    except OSError as error:
        error.filename = str(path)
        raise


def _compare(inspection: Inspection, targets: Sequence[str | None], fits: str | None = None) -> bool:
    """Compile for every target; False where Ctrl-C ended it, with what was finished by then."""
    try:
        with terminal.progress("XLA compiles") as progress:
            answers = inspection.compare(targets, fits=fits, progress=progress)
        return not any(_cancelled(answer) for answer in answers.values())
    except KeyboardInterrupt:
        # several targets are ended with nothing said: what they finished is kept, and the rest is not started again
        ended = threading.Event()
        ended.set()
        inspection.compare(targets, fits=fits, cancel=ended)
        return False


def _bufferize(inspection: Inspection) -> bool:
    """Run the pass's own IR; False where Ctrl-C ended it."""
    try:
        with terminal.progress("MLIR bufferizes and runs") as progress:
            return not _cancelled(inspection.compare(MLIR, progress=progress))
    except KeyboardInterrupt:
        return False


def _recommend(inspection: Inspection, target: str | None, budget: float, fits: str | None) -> None:
    """Search for so many seconds; Ctrl-C ends the search, and what was found by then is the answer."""
    with terminal.progress("XLA compiles other pairings") as progress:
        inspection.recommend(target, budget, fits=fits, progress=progress)


def _measure(inspection: Inspection, runs: int, timeout: float) -> bool:
    """Run the variants; False where Ctrl-C ended it."""
    try:
        with terminal.progress(f"runs in fresh processes on {inspection.platform}") as progress:
            return not _cancelled(inspection.measure(runs=runs, timeout=timeout, progress=progress))
    except KeyboardInterrupt:
        return False


def _cancelled(answer: Comparison | Measurement | Bufferization) -> bool:
    return any(variant.status == "cancelled" for variant in answer.variants.values())


def _report(inspection: Inspection, options: argparse.Namespace, finished: bool) -> int:
    blocks = report.blocks(inspection)
    try:
        if options.html:
            inspection.to_html(options.html)
        _write_json(options.json, inspection.to_dict)
    finally:
        # whatever a disk has against a file, what was computed is told
        terminal.show(blocks)
    if not finished:
        print("donation-inspector: interrupted, the rest is left out.", file=sys.stderr)
        return INTERRUPTED
    found = gate.findings(inspection, options.fail_on)
    for line in found:
        print(f"donation-inspector: --fail-on {line}", file=sys.stderr)
    return FOUND if found else 0


def _write_json(path: pathlib.Path | None, value: Callable[[], dict[str, Any]]) -> None:
    if path is not None:
        path.write_text(json.dumps(value(), indent=2) + "\n", encoding="utf-8")
