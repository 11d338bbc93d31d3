"""The commands: each prints its answer and returns the exit code."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from donation_inspector import corpus as corpora
from donation_inspector import differences, report
from donation_inspector.applying import REAL_PASS
from donation_inspector.cli import gate, terminal
from donation_inspector.cli.program import Program, open_program
from donation_inspector.inspection import Inspection

FOUND, INTERRUPTED = 3, 130


def inspect(options: argparse.Namespace) -> int:
    """The report on one program."""
    inspection = _opened(options).inspection
    targets: list[str | None] = [*([None] if options.compare else []), *(options.target or [])]
    if options.fits and not targets:
        targets = [None]
    if targets:
        with terminal.progress("XLA compiles") as progress:
            inspection.compare(targets, fits=options.fits, progress=progress)
    return _report(inspection, options)


def measure(options: argparse.Namespace) -> int:
    """Compile, run, report."""
    # This process only asks; what it took of a GPU would be missing in the ones that run.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    program = _opened(options)
    inspection = program.inspection
    with terminal.progress("XLA compiles") as progress:
        inspection.compare(progress=progress)
    if not _interrupted(inspection):
        with terminal.progress(f"runs in fresh processes on {inspection.platform}") as progress:
            inspection.measure(runs=options.runs, timeout=options.timeout, progress=progress)
    return _report(inspection, options)


def corpus(options: argparse.Namespace) -> int:
    """Pipelines on every program of a folder."""
    pipelines = options.pipeline or [REAL_PASS]
    with terminal.progress(f"corpus {options.folder}") as progress:
        result = corpora.run(options.folder, pipelines, compile=not options.no_compile, progress=progress)
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
    opened = open_program(options.program, options.args)
    inspection = opened.inspection
    if options.pipeline is not None:
        inspection = inspection.with_pipeline(options.pipeline)
    if options.donate:
        inspection = inspection.donate(*options.donate)
    return Program(inspection, opened.arguments)


def _report(inspection: Inspection, options: argparse.Namespace) -> int:
    blocks = report.blocks(inspection)
    if options.html:
        inspection.to_html(options.html)
    _write_json(options.json, inspection.to_dict)
    terminal.show(blocks)
    if _interrupted(inspection):
        return INTERRUPTED
    found = gate.findings(inspection, options.fail_on or ())
    for line in found:
        print(f"donation-inspector: --fail-on {line}", file=sys.stderr)
    return FOUND if found else 0


def _interrupted(inspection: Inspection) -> bool:
    """Whether Ctrl-C ended what was compiled or run: what was finished before is in the answers."""
    answers = [*inspection.comparisons.values(), *filter(None, [inspection.measurement])]
    return any(variant.status == "cancelled" for answer in answers for variant in answer.variants.values())


def _write_json(path: pathlib.Path | None, value: Callable[[], dict[str, Any]]) -> None:
    if path is not None:
        path.write_text(json.dumps(value(), indent=2) + "\n", encoding="utf-8")
