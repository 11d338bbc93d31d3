"""Rows of text in aligned columns, as every answer prints them, and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from donation_inspector.common.visible import shown, shown_in_html, shown_in_line

Rows = Sequence[Sequence[str]]


class Table(NamedTuple):
    """What `aligned` takes, for whoever draws it in another way."""

    header: Sequence[str]
    rows: Rows


def aligned(header: Sequence[str], rows: Rows) -> list[str]:
    """The lines of a table; a row may be short: its last cell runs free, as every last column does."""
    rows = [[shown_in_line(cell) for cell in row] for row in rows]
    columns = range(len(header) - 1)
    widths = [max(len(header[i]), *(len(row[i]) if i + 1 < len(row) else 0 for row in rows), 0) for i in columns]
    lines: list[str] = []
    for row in [header, *rows]:
        *fixed, last = row
        cells = [cell.ljust(width) for cell, width in zip(fixed, widths, strict=False)]
        lines.append("  ".join([*cells, last]).rstrip())
    return lines


def html_table(header: Sequence[str], rows: Rows) -> str:
    """The same as an HTML table, every cell as text."""

    def line(cells: Sequence[str], tag: str) -> str:
        span = len(header) - len(cells) + 1
        last = f' colspan="{span}"' if span > 1 else ""
        written = [f'<{tag} style="text-align:left">{shown_in_html(cell)}</{tag}>' for cell in cells[:-1]]
        return (
            "<tr>" + "".join(written) + f'<{tag}{last} style="text-align:left">{shown_in_html(cells[-1])}</{tag}></tr>'
        )

    body = "".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"


def told(sentence: str, header: Sequence[str], rows: Rows, more: str) -> str:
    """An answer as text: a sentence, the table where it has rows, and what was left out of it."""
    return "\n".join([shown(sentence), *(aligned(header, rows) if rows else []), *([more] if more else [])])


def told_html(sentence: str, header: Sequence[str], rows: Rows, more: str) -> str:
    """The same as HTML."""
    left = f"<p>{shown_in_html(more)}</p>" if more else ""
    return f"<p>{shown_in_html(sentence)}</p>{html_table(header, rows) if rows else ''}{left}"
