"""What passes are worth on many programs: each pipeline on each file of a folder, as plain data and as a table."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from donation_inspector.bufferized import tools
from donation_inspector.capture.opening import open_file
from donation_inspector.common.progress import Progress
from donation_inspector.common.tables import aligned
from donation_inspector.common.units import format_bytes, total_bytes
from donation_inspector.errors import DonationInspectorError, IRError
from donation_inspector.inspection import Inspection
from donation_inspector.passes import pipeline as pipelines_of_xdsl
from donation_inspector.questions.apply.ask import Pipeline, pipeline_name
from donation_inspector.questions.compare.answer import VARIANTS, Comparison

SUFFIXES = (".mlir", ".mlirbc", ".di")
COUNTED = ("allocations", "copies")
_SHOWN = 100
"""Characters of a reason or diagnostic in the table; the data has all."""


@dataclass(frozen=True)
class Row:
    """What one pipeline made of one program.

    `refused` says why the pipeline did not run, and then the rest is unknown: the file cannot be read, or the pass
    failed. `diagnostics` are the messages, the most severe first. `why_not` says why there is no total of the pass:
    what it made is no alias, or XLA did not compile it. `totals` are XLA's, in bytes a device, by the names of
    `answers.VARIANTS`; None is unknown, and none at all where nothing was compiled. `allocations` and `copies` were
    counted when what the pipeline made was bufferized and run (target "mlir"); None is unknown, `not_run` says why.
    """

    program: str
    pipeline: str
    refused: str | None = None
    pairs: int | None = None
    diagnostics: tuple[str, ...] = ()
    why_not: str | None = None
    totals: Mapping[str, int | None] = field(default_factory=dict[str, int | None])
    allocations: int | None = None
    copies: int | None = None
    not_run: str | None = None


@dataclass(frozen=True)
class Corpus:
    """Every row, program by program. `compiled` is False where totals were left out, `finished` after Ctrl-C.

    `bufferized` is False where nothing was run by the target "mlir", with the reason in `no_mlir` where that is no
    wish of the caller's.
    """

    folder: str
    pipelines: tuple[str, ...]
    rows: tuple[Row, ...]
    compiled: bool
    finished: bool
    bufferized: bool = False
    no_mlir: str | None = None

    @property
    def complete(self) -> bool:
        """Whether every pipeline ran on every program."""
        return self.finished and not any(row.refused for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; what is unknown is null."""
        return {
            "folder": self.folder,
            "pipelines": list(self.pipelines),
            "finished": self.finished,
            "rows": [
                {
                    "program": row.program,
                    "pipeline": row.pipeline,
                    "refused": row.refused,
                    "pairs": row.pairs,
                    "diagnostics": {"count": len(row.diagnostics), "first": next(iter(row.diagnostics), None)}
                    if row.refused is None
                    else None,
                    "why_not": row.why_not,
                    "total": {name: row.totals.get(name) for name in VARIANTS} if self.compiled else None,
                    "mlir": {"allocations": row.allocations, "copies": row.copies, "not_run": row.not_run}
                    if self.bufferized
                    else None,
                }
                for row in self.rows
            ],
        }

    def __str__(self) -> str:
        """The table, and a line for each pipeline over all programs."""
        measured = [*(VARIANTS if self.compiled else ()), *(COUNTED if self.bufferized else ())]
        each = aligned(["program", "pipeline", "pairs", "diagnostics", *measured, ""], [*map(self._cells, self.rows)])
        sums = aligned(
            ["pipeline", "programs", "refused", "pairs", "diagnostics", *measured], [*map(self._sums, self.pipelines)]
        )
        parts = ["\n".join(each), "\n".join(sums)]
        if self.compiled:
            parts.append(
                "none, jax, pass: XLA's totals, compiled for this machine: without donation, with the program's own, "
                "with the pairs of\nthe pipeline. Summed up are the programs where all three are known for every "
                "pipeline."
            )
        if self.bufferized:
            parts.append(
                "allocations, copies: counted while what the pipeline made ran on this CPU, bufferized by MLIR, "
                "without XLA.\nSummed up are the programs where both are known for every pipeline."
            )
        if self.no_mlir:
            parts.append(f"No allocations and copies: {self.no_mlir}")
        if not self.finished:
            parts.append("Interrupted: the rest was not tried.")
        return "\n\n".join(parts)

    def _cells(self, row: Row) -> list[str]:
        if row.refused is not None:
            reason = _short(row.refused.removeprefix(f"The pass '{row.pipeline}' failed: "))
            return [row.program, row.pipeline, f"refused: {reason}"]
        said = row.why_not or next(iter(row.diagnostics), row.not_run or "")
        totals = [format_bytes(row.totals.get(name)) for name in VARIANTS] if self.compiled else []
        counts = [_count(row.allocations), _count(row.copies)] if self.bufferized else []
        return [row.program, row.pipeline, str(row.pairs), str(len(row.diagnostics)), *totals, *counts, _short(said)]

    @cached_property
    def _comparable(self) -> frozenset[str]:
        gaps = {row.program for row in self.rows if any(row.totals.get(name) is None for name in VARIANTS)}
        return frozenset(row.program for row in self.rows) - gaps

    @cached_property
    def _counted(self) -> frozenset[str]:
        gaps = {row.program for row in self.rows if row.allocations is None or row.copies is None}
        return frozenset(row.program for row in self.rows) - gaps

    def _sums(self, pipeline: str) -> list[str]:
        rows = [row for row in self.rows if row.pipeline == pipeline]
        ran = [row for row in rows if row.refused is None]
        known = [row for row in ran if row.program in self._comparable]
        totals = [format_bytes(total_bytes(row.totals[name] for row in known) if known else None) for name in VARIANTS]
        ran_by_mlir = [row for row in ran if row.program in self._counted]
        counts = [
            _count(sum(count or 0 for count in column) if ran_by_mlir else None)
            for column in ([row.allocations for row in ran_by_mlir], [row.copies for row in ran_by_mlir])
        ]
        return [
            pipeline,
            str(len(rows)),
            str(len(rows) - len(ran)),
            str(sum(row.pairs or 0 for row in ran)),
            str(sum(len(row.diagnostics) for row in ran)),
            *(totals if self.compiled else ()),
            *(counts if self.bufferized else ()),
        ]


def corpus(
    folder: str | pathlib.Path,
    pipelines: Sequence[Pipeline],
    *,
    compile: bool = False,
    bufferize: bool = False,
    progress: Progress | None = None,
) -> Corpus:
    """Every pipeline on every program of a folder, as the command `donation-inspector corpus` has it.

    A pipeline is text as for `xdsl-opt -p`, one `ModulePass` object, or several. `compile` is for XLA's totals,
    `bufferize` to run what each pipeline made without XLA; both take as long as the programs take to compile.

    Raises:
      IRError: no such folder, or no program in it.
      PassError: a pipeline that does not exist.
    """
    return run(pathlib.Path(folder), pipelines, compile=compile, bufferize=bufferize, progress=progress or _silent)


def run(
    folder: pathlib.Path, pipelines: Sequence[Pipeline], *, compile: bool, progress: Progress, bufferize: bool = False
) -> Corpus:
    """Every pipeline (as for `xdsl-opt -p`, or `ModulePass` objects) on every program of the folder and of those in it.

    `compile` is for XLA's totals, `bufferize` to run what each pipeline made where the target "mlir" is there.

    A program is MLIR text or bytecode, or what `Inspection.save` wrote, donated as it says. One that cannot be read, or
    that a pass fails on, is a row like the others. Ctrl-C ends it with the rows so far.

    Raises:
      IRError: no such folder, or no program in it.
      PassError: a pipeline that does not exist.
    """
    names = tuple(pipeline_name(pipeline) for pipeline in pipelines)
    for pipeline in pipelines:
        if isinstance(pipeline, str):
            pipelines_of_xdsl.parse(pipeline)
    programs = _programs(folder)
    no_mlir = tools.why_not() if bufferize else None
    bufferize = bufferize and no_mlir is None
    rows: list[Row] = []
    finished = False
    try:
        for row in _rows(folder, programs, pipelines, compile, bufferize):
            rows.append(row)
            progress(len(rows), len(programs) * len(pipelines), f"{row.program}, {row.pipeline}")
        finished = True
    except KeyboardInterrupt:
        pass
    return Corpus(str(folder), names, tuple(rows), compile, finished, bufferize, no_mlir)


def _programs(folder: pathlib.Path) -> list[pathlib.Path]:
    if not folder.is_dir():
        raise IRError(f"{folder} is no folder. Give one with {', '.join(SUFFIXES)} files.")
    found = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    if not found:
        raise IRError(f"There is no {', '.join(SUFFIXES)} file in {folder}.")
    return found


def _rows(
    folder: pathlib.Path,
    programs: Sequence[pathlib.Path],
    pipelines: Sequence[Pipeline],
    compile: bool,
    bufferize: bool,
) -> Iterator[Row]:
    for path in programs:
        name = str(path.relative_to(folder))
        try:
            inspection = open_file(path)
        except Exception as error:  # one program must not end the table of all
            yield from (Row(name, pipeline_name(pipeline), refused=_told(error)) for pipeline in pipelines)
            continue
        for pipeline in pipelines:
            row = _row(name, inspection, pipeline, compile)
            yield _counted(row, inspection, pipeline) if bufferize and row.refused is None else row


def _row(program: str, inspection: Inspection, pipeline: Pipeline, compile: bool) -> Row:
    name = pipeline_name(pipeline)
    try:
        applied = inspection.apply(pipeline)
        said = tuple(diagnostic.message for diagnostic in applied.diagnostics)
    except Exception as error:  # one program must not end the table of all
        return Row(program, name, refused=_told(error))
    why_not, totals = applied.why_not, dict[str, int | None]()
    if compile:
        try:
            comparison = inspection.compare(pipeline=pipeline, progress=_silent)
        except DonationInspectorError as error:
            why_not = why_not or _told(error)
        else:
            totals = {key: one.memory and one.memory.total for key, one in comparison.variants.items()}
            why_not = why_not or _failure(comparison)
    return Row(program, name, None, len(applied.pairs), said, why_not, totals)


def _counted(row: Row, inspection: Inspection, pipeline: Pipeline) -> Row:
    try:
        one = inspection.compare("mlir", pipeline, progress=_silent).variants["pass"]
    except DonationInspectorError as error:
        return dataclasses.replace(row, not_run=_told(error))
    if one.status == "cancelled":
        raise KeyboardInterrupt
    return dataclasses.replace(row, allocations=one.allocations, copies=one.copies, not_run=one.error)


def _failure(comparison: Comparison) -> str | None:
    variants = comparison.variants
    if any(one.status == "cancelled" for one in variants.values()):
        raise KeyboardInterrupt
    return next((f"{name}: {one.error}" for name, one in variants.items() if one.memory is None), None)


def _silent(_step: int, _steps: int, _label: str) -> None:
    return None


def _count(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, DonationInspectorError) else f"{type(error).__name__}: {error}"


def _short(words: str) -> str:
    line = words.split("\n", 1)[0].rstrip(":")
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1].rstrip()}…"
