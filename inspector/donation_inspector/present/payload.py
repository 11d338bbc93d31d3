"""An Inspection as plain data for the front end: JSON for what is small, little-endian columns for what is long.

`widgets/src/model.ts` mirrors this file. Unknown numbers are null in JSON and NaN in float columns, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import numpy.typing as npt

from donation_inspector.analysis.live_range import KINDS, UNKNOWN
from donation_inspector.analysis.paths import noun
from donation_inspector.common.garbage import collector_paused
from donation_inspector.common.labels import type_label
from donation_inspector.present import headline, payload_buffers
from donation_inspector.present.payload_buffers import NOTHING_READ, Layouts
from donation_inspector.questions.compare.answer import VARIANTS, Comparison, Variant
from donation_inspector.questions.measure.answer import Measurement
from donation_inspector.questions.verify import answer as verification
from donation_inspector.xla.targets import listed

if TYPE_CHECKING:
    from donation_inspector.inspection import Inspection


class Job(TypedDict):
    """What runs in the background, or how the last one ended: `kind` is "", "compare" or "measure"."""

    kind: str
    running: bool
    step: int
    steps: int
    label: str
    error: str | None


IDLE: Job = {"kind": "", "running": False, "step": 0, "steps": 0, "label": "", "error": None}


def job(kind: str, *, step: int, steps: int, label: str) -> Job:
    """A running job at `step` of `steps`."""
    return {"kind": kind, "running": True, "step": step, "steps": steps, "label": label, "error": None}


def failed(kind: str, error: str) -> Job:
    """A job that ended without its answer, and why."""
    return {"kind": kind, "running": False, "step": 0, "steps": 0, "label": "", "error": error}


@collector_paused()
def once(inspection: Inspection) -> dict[str, Any]:
    """What donation does not change: the program, its text, its live ranges, the curve with nothing donated."""
    ranges = inspection.baseline_ranges
    text = inspection.text
    arguments, results = inspection.arguments, inspection.results
    whole_of = {leaf: number for number, whole in enumerate(inspection.wholes) for leaf in whole.leaves}
    sizes = np.where(ranges.nbytes == UNKNOWN, np.nan, ranges.nbytes).astype("<f8")
    leaves, lines = np.full(len(ranges), -1), text.line_of_op[ranges.start]
    lines[ranges.kind == KINDS.index("argument")] = text.line_of_entry
    for argument in arguments:
        if argument.position is not None:
            leaves[argument.position] = argument.index
    program = {
        "name": inspection.name,
        "versions": {name: version(name) for name in ("jax", "xdsl", "donation-inspector")},
        "platform": inspection.platform,
        "operations": ranges.operations,
        "lines": len(text.lines),
        "arguments": {
            "path": [argument.path for argument in arguments],
            "label": [type_label(argument.dtype, argument.shape) for argument in arguments],
            "nbytes": [argument.nbytes for argument in arguments],
            "perDevice": [argument.nbytes_per_device for argument in arguments],
            "whole": [whole_of[argument.index] for argument in arguments],
            "dropped": [argument.position is None for argument in arguments],
        },
        "wholes": [
            {
                "name": whole.name,
                "togglable": whole.togglable,
                "hint": "" if whole.togglable else "dropped by JAX: nothing reads it",
            }
            for whole in inspection.wholes
        ],
        "results": {
            "path": [noun(result.title) for result in results],
            "label": [type_label(result.dtype, result.shape) for result in results],
            "nbytes": [result.nbytes for result in results],
        },
        "rangeNames": _joined(ranges.names),
        "rangeSources": _joined(source or "" for source in ranges.sources),
        "kinds": list(KINDS),
        "multiDevice": any(argument.nbytes != argument.nbytes_per_device for argument in arguments),
        "notes": [{"severity": "note", "text": note} for note in inspection.notes],
        "available": [
            {
                "name": target.name,
                "device": target.device,
                "capacity": target.capacity,
                "available": target.available,
                "whyNot": target.why_not or "",
                "here": target.here,
            }
            for target in listed(inspection.platform)
        ],
        "classes": list(payload_buffers.CLASSES),
    }
    return {
        "program": program,
        "ir": "\n".join(text.lines),
        "ranges": _columns("<i4", ranges.start, ranges.kind, lines, leaves, ranges.end),
        "range_bytes": sizes.tobytes(),
        "baseline_curve": inspection.baseline_memory.bytes.astype("<f8").tobytes(),
    }


@collector_paused()
def current(inspection: Inspection, revision: int, layouts: Layouts = NOTHING_READ) -> dict[str, Any]:
    """What a toggle changes: sentences, verdicts, pairs, diff, curve, and the answers known for this donation.

    `layouts` are XLA's buffers as far as they are read: a toggle reads none.
    """
    applied = inspection.apply()
    memory = inspection.program_memory
    compiled, runs = inspection.comparison, inspection.measurement
    arguments = payload_buffers.decided(inspection, compiled, layouts)
    state = {
        "revision": revision,
        "headline": [{"text": part.text, "strong": part.strong} for part in headline.headline(inspection)],
        "sub": headline.details(inspection),
        "fix": headline.fix(inspection),
        "donated": [argument.index for argument in arguments if argument.donated],
        "verdicts": [str(argument.verdict) for argument in arguments],
        "results": [argument.result for argument in arguments],
        "reasons": [argument.reason for argument in arguments],
        "candidates": [argument.index for argument in inspection.candidates],
        "pairs": [list(pair) for pair in applied.pairs.items()],
        "diagnostics": [{"severity": one.severity, "text": one.message} for one in applied.diagnostics],
        "peak": {"bytes": memory.peak, "at": memory.peak_at},
        "unknown": memory.unknown,
        "changes": [
            {
                "kind": change.kind,
                "before": change.before_line,
                "after": change.after_line,
                "beforeText": change.before,
                "afterText": change.after,
            }
            for change in applied.diff
        ],
        "pipeline": applied.pipeline,
        "verified": verified(inspection),
        "error": None,
    }
    return {
        "state": state,
        "freed": _freed(inspection.baseline_memory.bytes, memory.bytes),
        "ends": _columns("<i4", inspection.range_columns.end[inspection.range_columns.kind == KINDS.index("argument")]),
        **comparison(inspection, compiled, revision, layouts),
        "measurement": None if runs is None else measurement(runs, revision),
    }


def verified(inspection: Inspection) -> dict[str, Any] | None:
    """What the user's own call made of each leaf, null where it is not donated; None where none was verified."""
    rows = inspection.verified
    if rows is None:
        return None
    of_leaf = {row.index: row for row in rows}
    leaves = [of_leaf.get(argument.index) for argument in inspection.arguments]
    return {
        "outcomes": [None if row is None else row.outcome for row in leaves],
        "reasons": ["" if row is None else row.reason for row in leaves],
        "sentence": verification.sentence(rows),
    }


def comparison(inspection: Inspection, answer: Comparison | None, revision: int, layouts: Layouts) -> dict[str, Any]:
    """The compiled variants, bytes per device, with XLA's buffers as far as they are read."""
    if answer is None:
        return {"comparison": None, "xla_curves": b""}
    buffers, curves, places = payload_buffers.placed(answer.variants.values(), layouts)
    rows: list[dict[str, Any]] = []
    for name in VARIANTS:
        variant = answer.variants[name]
        memory = variant.memory
        row: dict[str, Any] = {
            "name": name,
            "seconds": variant.seconds,
            "status": variant.status,
            "error": variant.error,
            "fits": variant.fits,
            "over": variant.over,
            "buffers": places.get(name),
            "buffersError": _why_no_buffers(variant, layouts),
        }
        for field in ("argument", "output", "alias", "temp", "total"):
            row[field] = None if memory is None else getattr(memory, field)
        rows.append(row)
    found = {
        "revision": revision,
        "target": answer.target,
        "here": answer.here,
        "capacity": next((one.capacity for one in answer.variants.values() if one.capacity is not None), None),
        "note": f"compiled with XLA for {answer.target}{'' if answer.here else ', not run'}, bytes per device",
        "variants": rows,
        "buffers": buffers,
        "targets": [row for one in reversed([*inspection.comparisons.values()]) for row in _target_rows(one)],
        "sentence": headline.details(inspection),
    }
    return {"comparison": found, "xla_curves": curves}


def _target_rows(answer: Comparison) -> Iterable[dict[str, Any]]:
    for name, variant in answer.variants.items():
        yield {
            "target": answer.target,
            "here": answer.here,
            "capacity": variant.capacity,
            "variant": name,
            "total": None if variant.memory is None else variant.memory.total,
            "saved": answer.saved(name),
            "fits": variant.fits,
            "over": variant.over,
            "status": variant.status,
        }


def _why_no_buffers(variant: Variant, layouts: Layouts) -> str | None:
    if variant.hlo is None:
        return variant.error
    if variant.hlo not in layouts:
        return "Compare reads them"
    return layouts[variant.hlo].error


def measurement(answer: Measurement, revision: int) -> dict[str, Any]:
    """The measured variants."""
    return {
        "revision": revision,
        "variants": [
            {
                "name": name,
                "peak": (variant := answer.variants[name]).peak,
                "spread": None if variant.spread is None else variant.spread[1] - variant.spread[0],
                "predicted": variant.predicted,
                "seconds": variant.seconds,
                "status": variant.status,
                "error": variant.error,
            }
            for name in VARIANTS
        ],
        "outputsEqual": answer.outputs_equal,
        "sentence": headline.measured_sentence(answer),
    }


def _freed(baseline: npt.NDArray[np.int64], curve: npt.NDArray[np.int64]) -> bytes:
    """What donation takes off the curve, as steps: a click sends as much as there are arguments, not operations."""
    less = baseline - curve
    (at,) = np.nonzero(np.diff(less, prepend=0))
    return _columns("<f8", at, less[at])


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(line.replace("\n", " ") for line in lines)


def _columns(dtype: str, *columns: Any) -> bytes:
    return np.concatenate([np.asarray(column).astype(dtype) for column in columns]).tobytes()
