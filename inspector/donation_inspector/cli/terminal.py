"""What a person sees: the plain text for a pipe; on a terminal the same words, laid out and coloured, and a live bar.

Rich does what terminals do: the width, `NO_COLOR`, `TERM=dumb`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from donation_inspector.analysis.donation import Verdict
from donation_inspector.common.progress import Progress, reported
from donation_inspector.common.tables import Table
from donation_inspector.common.visible import shown, shown_in_line
from donation_inspector.present import report
from donation_inspector.present.report import Block

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_STYLES = {
    Verdict.SAVES_NOTHING: "yellow",
    Verdict.ALIASED: "green",
    Verdict.DONOR: "cyan",
    Verdict.UNUSABLE: "bold red",
    Verdict.UNUSED: "yellow",
    Verdict.NOT_DONATED: "dim",
    "yes": "green",
    "ok": "green",
    "no": "bold red",
    "over by": "bold red",
}
_STYLED = re.compile("|".join(rf"\b{re.escape(words)}\b" for words in _STYLES))
_OUTCOMES = frozenset({"outcome", "verdict", "fits", "before", "after"})
_SIZES = frozenset(
    {"bytes", "share", "argument", "output", "alias", "temp", "total", "saved", "peak", "predicted"}
    | {"before", "after", "change"}
)
_SIZE = re.compile(r"|[-+]?[\d.]+ ([kKMGTPE]?B|%)|under 1 %|unknown")
_GAP = 2
_PROSE = 36
"""Characters below which a column of sentences is no longer read."""
_SEVERITIES = {"error:": "bold red", "warning:": "yellow", "note:": "dim"}


def show(blocks: Sequence[Block]) -> None:
    """Print them on stdout."""
    if not sys.stdout.isatty():
        print(report.plain(blocks), flush=True)
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    for block in blocks:
        for part in _drawn(block, console.width):
            console.print(part)


@contextmanager
def progress(title: str) -> Generator[Progress]:
    """A callback that shows how far work is behind `title`: a live bar where stderr is a terminal."""
    if not sys.stderr.isatty():
        with reported(None, title) as quiet:
            yield quiet
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(title, total=None)

        def told(step: int, steps: int, label: str) -> None:
            bar.update(task, completed=step, total=steps, description=f"{title} · {label}, {step} of {steps}")

        yield told


# ---- blocks as Rich draws them


def _drawn(block: Block, width: int) -> list[RenderableType]:
    from rich.text import Text

    if isinstance(block, Table):
        return _table(Table(block.header, [[shown_in_line(cell) for cell in row] for row in block.rows]), width)
    if not isinstance(block, str):
        return [Text.assemble(*((shown(part.text), "bold" if part.strong else "") for part in block))]
    line, severity = Text(shown(block)), block.split(" ", 1)[0]
    if severity in _SEVERITIES:
        line.stylize(_SEVERITIES[severity], 0, len(severity))
    return [line]


def _table(table: Table, width: int) -> list[RenderableType]:
    """The table, and below it the rows whose last cell runs free of the columns."""
    from rich import table as rich_tables
    from rich.text import Text

    whole = [row for row in table.rows if len(row) == len(table.header)]
    before_last = sum(max(map(len, column)) + _GAP for column in list(zip(table.header, *whole, strict=True))[:-1])
    longest = max((len(row[-1]) for row in whole), default=0)
    if before_last + min(longest, _PROSE) > width:
        return _stacked(table)
    drawn = rich_tables.Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for number, name in enumerate(table.header):
        sizes = name in _SIZES and all(_SIZE.fullmatch(row[number]) for row in whole)
        drawn.add_column(name, justify="right" if sizes else "left", overflow="fold")
    for row in whole:
        drawn.add_row(*(_cell(name, cell) for name, cell in zip(table.header, row, strict=True)))
    return [drawn, *(Text("  ".join(row)) for row in table.rows if len(row) != len(table.header))]


def _stacked(table: Table) -> list[RenderableType]:
    """For a terminal that is too narrow for the columns: a row is its first cell, with the others named below it."""
    from rich.padding import Padding
    from rich.text import Text

    drawn: list[RenderableType] = []
    for first, *others in table.rows:
        drawn.append(Text.assemble((f"{table.header[0]} ", "dim"), first or "…"))
        for name, cell in zip(table.header[1:], others, strict=False):
            if cell:
                drawn.append(
                    Padding(Text.assemble((f"{name} ", "dim"), _cell(name, cell)), (0, 0, 0, _GAP), expand=False)
                )
    return drawn


def _cell(column: str, cell: str) -> Text:
    from rich.text import Text

    text = Text(cell)
    if column in _OUTCOMES:
        for found in _STYLED.finditer(cell):
            text.stylize(_STYLES[found.group()], *found.span())
    return text
