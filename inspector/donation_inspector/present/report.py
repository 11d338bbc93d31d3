"""What is known about an Inspection, as text and as HTML that needs no kernel, no script and no network.

`summary` and `static_html` stand in saved notebooks beside the widget: they hold nothing that changes from run to run,
so measured figures are left to `text` and `page`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING

from donation_inspector.analysis.donation import Argument, Verdict
from donation_inspector.attribution import describe
from donation_inspector.common.garbage import collector_paused
from donation_inspector.common.labels import type_label
from donation_inspector.common.tables import Table, aligned, html_table
from donation_inspector.common.units import format_bytes, total_bytes
from donation_inspector.common.visible import shown, shown_in_html
from donation_inspector.errors import CompileError
from donation_inspector.present import headline
from donation_inspector.present.verified_column import InYourCall
from donation_inspector.questions.compare.answer import VARIANTS, Comparisons
from donation_inspector.questions.verify import answer as verification

if TYPE_CHECKING:
    from donation_inspector.inspection import Inspection
    from donation_inspector.questions.compare.answer import Variant

_SHOWN_LEAVES = 40
_SHOWN_CONTRIBUTORS = 12
Rows = list[tuple[str, ...]]
Block = str | Table | tuple[headline.Segment, ...]
"""A line of text, a table, or a sentence with its numbers made strong."""


@collector_paused()
def blocks(inspection: Inspection) -> list[Block]:
    """The whole report, measured figures included, for whoever draws it; an empty line is an empty text."""
    return [*_head(inspection, measured=True), "", *_body(inspection), *_measured(inspection)]


def text(inspection: Inspection) -> str:
    """The whole report as plain text, measured figures included."""
    return plain(blocks(inspection))


def summary(inspection: Inspection) -> str:
    """The report without measured figures: the same every time for the same program and versions."""
    return plain([*_head(inspection, measured=False), "", *_body(inspection)])


def plain(drawn: Sequence[Block]) -> str:
    """Blocks as plain text, the columns of tables aligned."""
    return "\n".join(line for block in drawn for line in _lines(block))


def _lines(block: Block) -> list[str]:
    if isinstance(block, Table):
        return aligned(*block)
    return [shown(block if isinstance(block, str) else "".join(part.text for part in block))]


def static_html(inspection: Inspection) -> str:
    """A static table for a saved notebook, without measured figures."""
    return _html(inspection, measured=False)


def page(inspection: Inspection) -> str:
    """A whole HTML page with everything known, measured figures included."""
    title = shown_in_html(f"Donation report: {inspection.name}")
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<style>{_PAGE_STYLE}</style>\n<main>{_html(inspection, measured=True)}</main></html>\n"
    )


# ---- what all of them say


def _head(inspection: Inspection, *, measured: bool) -> list[Block]:
    sentence = headline.headline(inspection, measured=measured)
    lines: list[Block] = [f"{inspection.name} · {_where(inspection)}", "", sentence]
    if peak := headline.peak_sentence(inspection):
        lines.append(peak)
    lines.append(headline.details(inspection))
    if fix := headline.fix(inspection, measured=measured):
        lines.append(f"Change one line: {fix}")
    return [*lines, *headline.unsafe_sentences(inspection, measured=measured)]


def _where(inspection: Inspection) -> str:
    return f"{inspection.platform} · jax {version('jax')} · xdsl {version('xdsl')}"


def _arguments(inspection: Inspection) -> tuple[Argument, ...]:
    """As far as is known: what XLA made of them, or what JAX decided."""
    comparison = inspection.comparison
    return inspection.arguments if comparison is None else comparison.arguments


def _whole_table(inspection: Inspection) -> Table:
    rows: Rows = []
    arguments, call = _arguments(inspection), InYourCall(inspection)
    for whole in inspection.wholes:
        leaves = [arguments[leaf] for leaf in whole.leaves]
        counts = Counter(str(leaf.verdict) for leaf in leaves)
        outcome = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        donated = sum(leaf.donated for leaf in leaves)
        asked = "donated" if donated == len(leaves) else f"{donated} of {len(leaves)} donated" if donated else "kept"
        size = format_bytes(total_bytes(leaf.nbytes for leaf in leaves))
        count = _count(len(leaves), "leaf", "leaves")
        rows.append((whole.name, count, size, asked, *call.cell(whole.leaves), outcome))
    return Table(call.header(_WHOLE_HEADER), rows)


def _leaf_table(inspection: Inspection) -> tuple[Table, int]:
    """The leaves that need a word, and how many of them are not shown; reused ones speak for themselves."""
    call = InYourCall(inspection)
    telling = [leaf for leaf in _arguments(inspection) if leaf.verdict is not Verdict.ALIASED or call.lost(leaf.index)]
    telling.sort(key=lambda leaf: (not leaf.donated, -(leaf.nbytes or 0)))
    rows: Rows = [
        (
            *(leaf.path, type_label(leaf.dtype, leaf.shape), format_bytes(leaf.nbytes), str(leaf.verdict)),
            *(*call.cell((leaf.index,)), call.why(leaf)),
        )
        for leaf in telling[:_SHOWN_LEAVES]
    ]
    return Table(call.header(_LEAF_HEADER), rows), max(0, len(telling) - _SHOWN_LEAVES)


def _call_line(inspection: Inspection) -> list[str]:
    return [] if inspection.verified is None else [verification.sentence(inspection.verified)]


def _outside_line(inspection: Inspection) -> list[str]:
    """What else fills the device that it was compiled for, where that is more than a hundredth of what it takes.

    Nothing where the call's own arrays are not here to be told from the others. It differs from run to run.
    """
    comparison = inspection.comparison
    shown = comparison.shown if comparison is not None and comparison.here else None
    if shown is None or shown.memory is None:
        return []
    outside = inspection.outside
    most = max(outside.per_device.values(), default=0)
    return [outside.sentence()] if outside.arguments and 100 * most > shown.memory.total else []


def _pass_lines(inspection: Inspection) -> list[str]:
    applied = inspection.apply()
    compiled = "" if applied.compilable else f" Not compiled: {applied.why_not}."
    lines = [f"{applied.pipeline}: {_count(len(applied.pairs), 'pair', 'pairs')}.{compiled}"]
    return lines + [f"{one.severity}: {one.message}" for one in applied.diagnostics]


def _memory_line(inspection: Inspection) -> str:
    memory = inspection.program_memory
    unknown = f"; {_count(memory.unknown, 'value', 'values')} of unknown size left out" if memory.unknown else ""
    return (
        f"Predicted, in program order (StableHLO, not XLA's schedule): peak {format_bytes(memory.peak)} "
        f"at operation {memory.peak_at} of {len(memory.bytes)}{unknown}."
    )


def _compiled_rows(inspection: Inspection) -> Rows:
    comparison = inspection.comparison
    if comparison is None:
        return []
    rows: Rows = []
    for name in VARIANTS:
        variant = comparison.variants[name]
        if variant.memory is None:
            rows.append((name, f"{variant.status}: {_in_line(variant.error)}"))
        else:
            memory = variant.memory
            sizes = (memory.argument, memory.output, memory.alias, memory.temp, memory.total)
            rows.append((name, *map(format_bytes, sizes)))
    return rows


def _readable(inspection: Inspection) -> Variant | None:
    """The variant that is spoken of, where XLA's buffers can be read; the sentence of the peak says why not."""
    comparison = inspection.comparison
    variant = None if comparison is None else comparison.shown
    try:
        return None if variant is None or variant.peak is None else variant
    except CompileError:
        return None


def _peak_rows(inspection: Inspection) -> tuple[Rows, Rows]:
    """The classes at the peak of XLA's schedule, and the largest contributors."""
    variant = _readable(inspection)
    peak = None if variant is None else variant.peak
    if peak is None:
        return [], []
    classes = [(str(role), format_bytes(nbytes), _share(nbytes, peak.nbytes)) for role, nbytes in peak.classes]
    largest = [
        (str(one.role), format_bytes(one.nbytes), one.path or describe.primitive(one.op_name), describe.at(one.source))
        for one in peak.contributors[:_SHOWN_CONTRIBUTORS]
    ]
    return classes, largest


def _share(part: int, whole: int) -> str:
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 0.5 else "under 1 %"


def _curves_line(inspection: Inspection) -> str | None:
    """What the schedule of XLA needs, holds and reserves."""
    comparison, variant = inspection.comparison, _readable(inspection)
    buffers = None if variant is None else variant.buffers
    if comparison is None or variant is None or buffers is None:
        return None
    return (
        f"In XLA's schedule ({comparison.target}, {variant.name}, compiled{'' if comparison.here else ', not run'}): "
        f"at most {format_bytes(int(buffers.needed.max(initial=0)))} needed and {format_bytes(buffers.peak)} held at "
        f"once, {format_bytes(buffers.reserved)} reserved."
    )


def _target_rows(inspection: Inspection) -> Rows:
    """Target × variant where it was compiled for several, or for one whose memory is known."""
    comparisons = inspection.comparisons
    fits = [variant.fits for one in comparisons.values() for variant in one.variants.values()]
    return comparisons.rows() if len(comparisons) > 1 or any(known is not None for known in fits) else []


def _measured_rows(inspection: Inspection) -> Rows:
    measurement = inspection.measurement
    if measurement is None:
        return []
    rows: Rows = []
    for name in VARIANTS:
        variant = measurement.variants[name]
        spread = "" if variant.spread is None else " to ".join(map(format_bytes, variant.spread))
        seconds = "" if variant.seconds is None else f"{variant.seconds:.3g} s"
        outcome = "ok" if variant.status == "ok" else f"{variant.status}: {_in_line(variant.error)}"
        rows.append((name, format_bytes(variant.peak), spread, format_bytes(variant.predicted), seconds, outcome))
    return rows


def _in_line(error: str | None) -> str:
    return " ".join((error or "").split())


_WHOLE_HEADER = ("argument", "leaves", "bytes", "asked", "outcome")
_LEAF_HEADER = ("leaf", "type", "bytes", "verdict", "why")
_CLASS_HEADER = ("at the peak", "bytes", "share")
_LARGEST_HEADER = ("largest", "bytes", "what", "where")
_COMPILED_HEADER = ("compiled", "argument", "output", "alias", "temp", "total")
_MEASURED_HEADER = ("measured", "peak", "range", "predicted", "a call", "outcome")


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


# ---- text


def _body(inspection: Inspection) -> list[Block]:
    lines: list[Block] = []
    classes, largest = _peak_rows(inspection)
    if classes:
        lines += [Table(_CLASS_HEADER, classes), "", Table(_LARGEST_HEADER, largest), ""]
    lines += [*_call_line(inspection), _whole_table(inspection)]
    leaves, more = _leaf_table(inspection)
    if leaves.rows:
        lines += ["", leaves]
    if more:
        lines.append(f"and {more} more")
    lines += ["", _memory_line(inspection), *_pass_lines(inspection), *(f"note: {note}" for note in inspection.notes)]
    if compiled := _compiled_rows(inspection):
        lines += ["", Table(_COMPILED_HEADER, compiled)]
    if curves := _curves_line(inspection):
        lines += ["", curves]
    if targets := _target_rows(inspection):
        lines += ["", Table(Comparisons.COLUMNS, targets)]
    return lines


def _measured(inspection: Inspection) -> list[Block]:
    drawn: list[Block] = []
    # how much a search tries depends on the time that compiling takes
    if (found := inspection.recommendation) is not None:
        drawn += ["", repr(found)]
    if outside := _outside_line(inspection):
        drawn += ["", *outside]
    if inspection.measurement is not None:
        table = Table(_MEASURED_HEADER, _measured_rows(inspection))
        drawn += ["", table, headline.measured_sentence(inspection.measurement)]
    if (run := inspection.bufferization) is not None:
        drawn += ["", Table(run.COLUMNS, run.rows()), run.headline, *run.notes()]
    return drawn


# ---- HTML


def _html(inspection: Inspection, *, measured: bool) -> str:
    esc = shown_in_html
    parts = headline.headline(inspection, measured=measured)
    sentence = "".join(f"<b>{esc(part.text)}</b>" if part.strong else esc(part.text) for part in parts)
    fix = headline.fix(inspection, measured=measured)
    leaves, more = _leaf_table(inspection)
    classes, largest = _peak_rows(inspection)
    blocks = [
        f"<p><code>{esc(inspection.name)}</code> · {esc(_where(inspection))}</p>",
        f'<p style="font-size:1.25em;margin:.4em 0">{sentence}</p>',
        f"<p>{esc(peak)}</p>" if (peak := headline.peak_sentence(inspection)) else "",
        f"<p>{esc(headline.details(inspection))}</p>",
        f"<p>Change one line: <code>{esc(fix)}</code></p>" if fix else "",
        *(f"<p>{esc(line)}</p>" for line in headline.unsafe_sentences(inspection, measured=measured)),
        *([html_table(_CLASS_HEADER, classes), html_table(_LARGEST_HEADER, largest)] if classes else []),
        *(f"<p>{esc(line)}</p>" for line in _call_line(inspection)),
        html_table(*_whole_table(inspection)),
        html_table(*leaves) if leaves.rows else "",
        f"<p>and {more} more</p>" if more else "",
        f"<p>{esc(_memory_line(inspection))}</p>",
        *(f"<p>{esc(line)}</p>" for line in _pass_lines(inspection)),
        *(f"<p>note: {esc(note)}</p>" for note in inspection.notes),
        html_table(_COMPILED_HEADER, _compiled_rows(inspection)) if inspection.comparison else "",
        f"<p>{esc(curves)}</p>" if (curves := _curves_line(inspection)) else "",
        html_table(Comparisons.COLUMNS, targets) if (targets := _target_rows(inspection)) else "",
    ]
    if measured and (found := inspection.recommendation) is not None:
        blocks += [f"<p>{esc(line)}</p>" for line in found.lines()]
        blocks.append(f"<pre><code>{esc(found.code)}</code></pre>" if found.code else "")
    if measured:
        blocks += [f"<p>{esc(line)}</p>" for line in _outside_line(inspection)]
    if measured and inspection.measurement is not None:
        blocks.append(html_table(_MEASURED_HEADER, _measured_rows(inspection)))
        blocks.append(f"<p>{esc(headline.measured_sentence(inspection.measurement))}</p>")
    if measured and (run := inspection.bufferization) is not None:
        blocks += [
            html_table(run.COLUMNS, run.rows()),
            *(f"<p>{esc(line)}</p>" for line in (run.headline, *run.notes())),
        ]
    return f'<div class="donation-report">{"".join(blocks)}</div>'


_PAGE_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#ddd, #3a3a3a); --muted: light-dark(#5c5c5c, #a8a8a8) }
body { font: 14px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
       background: light-dark(#fff, #111); color: light-dark(#1c1c1c, #e4e4e4) }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; font-variant-numeric: tabular-nums }
th { font-weight: 500; color: var(--muted) } th, td { padding: .2rem .8rem .2rem 0; vertical-align: top }
tr { border-bottom: 1px solid var(--line) } code { font: 13px ui-monospace, Menlo, monospace }
"""
