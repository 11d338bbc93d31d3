"""XLA's buffers of a compiled module as plain data for the front end: what fills the peak, why a copy, the curves.

Reading them takes a part of the compile's time, so the thread that compares does it; a toggle shows what is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from donation_inspector.analysis.paths import noun
from donation_inspector.attribution import describe
from donation_inspector.attribution.outcomes import explain_aliases
from donation_inspector.attribution.role import Role
from donation_inspector.common.labels import type_label
from donation_inspector.common.units import format_bytes
from donation_inspector.common.user_code import is_user_code, place

if TYPE_CHECKING:
    from donation_inspector.analysis.donation import Argument
    from donation_inspector.attribution.outcomes import AliasOutcome
    from donation_inspector.attribution.peak import Contributor, Peak
    from donation_inspector.inspection import Inspection
    from donation_inspector.questions.compare.answer import Comparison, Variant
    from donation_inspector.xla.hlo.source import Frame

CLASSES = tuple(str(role) for role in Role)
MOST_CONTRIBUTORS = 50
MOST_COPIES = 20
MOST_POINTS = 4000
"""Points of a curve that the front end gets: more than any screen has columns."""

_TPU_SPACES = ("HBM", "VMEM", "SMEM")


@dataclass(frozen=True, slots=True)
class Layout:
    """The buffers of one module: JSON, and float64 columns [time][needed][held] of `data["points"]` each.

    `error` says why XLA's buffers could not be read; all else is then empty.
    """

    data: dict[str, Any]
    curves: bytes
    error: str | None = None


Layouts = Mapping[bytes, Layout]
"""What is read so far, by the serialized HloProto of the compiled module."""
NOTHING_READ: Layouts = MappingProxyType({})


def read(inspection: Inspection, comparison: Comparison, known: Layouts) -> dict[bytes, Layout]:
    """The layouts of a comparison that are not known yet, each module once."""
    fresh: dict[bytes, Layout] = {}
    for variant in comparison.variants.values():
        if variant.hlo is not None and variant.hlo not in known and variant.hlo not in fresh:
            try:
                fresh[variant.hlo] = _layout(inspection, comparison, variant)
            except Exception as error:  # one module that cannot be read must not take the rest of the screen with it
                fresh[variant.hlo] = Layout({}, b"", f"{type(error).__name__}: {error}")
    return fresh


def placed(variants: Iterable[Variant], known: Layouts) -> tuple[list[dict[str, Any]], bytes, dict[str, int]]:
    """Those that are known of these variants, each module once: their data, their curves, the place of each variant."""
    places: dict[bytes, int] = {}
    of_variant: dict[str, int] = {}
    for variant in variants:
        if variant.hlo is not None and variant.hlo in known and known[variant.hlo].error is None:
            of_variant[variant.name] = places.setdefault(variant.hlo, len(places))
    layouts = [known[hlo] for hlo in places]
    return [layout.data for layout in layouts], b"".join(layout.curves for layout in layouts), of_variant


def decided(inspection: Inspection, comparison: Comparison | None, known: Layouts) -> tuple[Argument, ...]:
    """The arguments with what XLA made of JAX's decision, as far as that is read; as JAX decided otherwise."""
    if comparison is None:
        return inspection.arguments
    modules = [comparison.variants[name].hlo for name in ("none", "jax")]
    is_read = all(hlo is not None and hlo in known and known[hlo].error is None for hlo in modules)
    return comparison.arguments if is_read and modules[0] is not modules[1] else inspection.arguments


def points(
    needed: npt.NDArray[np.int64], held: npt.NDArray[np.int64], most: int = MOST_POINTS
) -> npt.NDArray[np.int64]:
    """At most `most` times that stand for all: the highest of each stretch of either curve, so every peak stays."""
    if len(held) <= most:
        return np.arange(len(held))
    stretch = -(-len(held) // (most // 2))
    padding = -len(held) % stretch
    starts = np.arange(0, len(held), stretch)
    highest = [
        starts + np.pad(curve, (0, padding), constant_values=-1).reshape(-1, stretch).argmax(axis=1)
        for curve in (needed, held)
    ]
    return np.unique(np.concatenate(highest))


def _layout(inspection: Inspection, comparison: Comparison, variant: Variant) -> Layout:
    buffers, peak = variant.buffers, variant.peak
    if variant.module is None or buffers is None or peak is None:
        return Layout({}, b"", "the compiled program has no instructions")
    none = comparison.variants["none"].buffers
    found: Mapping[int, AliasOutcome] = {}
    if variant.module is comparison.variants["jax"].module:
        found = comparison.outcomes
    elif none is not None:
        found = explain_aliases(none, buffers, variant.module.signature).outcomes
    times = points(buffers.needed, buffers.held)
    columns = np.stack([times, buffers.needed[times], buffers.held[times]]).astype("<f8")
    data = {
        **_peak(peak),
        **_copies(inspection, found),
        "steps": len(buffers.schedule),
        "reserved": buffers.reserved,
        "spaces": [
            {"name": _space(comparison.target, color), "peak": one.peak, "reserved": one.reserved}
            for color, one in buffers.spaces.items()
        ],
        "points": len(times),
        "instructions": "\n".join(buffers.schedule[int(time)] for time in times),
    }
    return Layout(data, columns.tobytes())


def _space(target: str, color: int) -> str:
    """A memory space's name, as the target's makers call it."""
    names = _TPU_SPACES if target.startswith("tpu") else ("main memory",)
    return names[color] if color < len(names) else f"memory space {color}"


def _peak(peak: Peak) -> dict[str, Any]:
    shown, rest = peak.contributors[:MOST_CONTRIBUTORS], peak.contributors[MOST_CONTRIBUTORS:]
    sizes = dict(peak.classes)
    where_and_what = describe.sentence(peak).removeprefix("At the peak")
    return {
        "peak": peak.nbytes,
        "peakAt": peak.at,
        "peakInstruction": peak.instruction,
        "sentence": [
            {"text": "At the peak ", "strong": False},
            {"text": format_bytes(peak.nbytes), "strong": True},
            {"text": f" are held{where_and_what}", "strong": False},
        ],
        "constant": peak.constants,
        "padding": peak.padding,
        "fragmentation": peak.fragmentation,
        "classes": [{"name": str(role), "bytes": sizes[role]} for role in Role if role in sizes],
        "contributors": [_contributor(one) for one in shown],
        "more": {"count": len(rest), "bytes": sum(one.nbytes for one in rest)},
    }


def _contributor(one: Contributor) -> dict[str, Any]:
    buffer = one.buffer
    return {
        "class": str(one.role),
        "label": _label(one),
        "type": "" if buffer is None else type_label(buffer.dtype, buffer.shape),
        "bytes": one.nbytes,
        "source": describe.at(one.source),
        "stack": [f"{place(frame.file, frame.line)} in {frame.function}" for frame in _users(one.stack)],
        "opName": one.op_name,
        "instruction": "" if buffer is None else buffer.value,
        "start": None if buffer is None else buffer.start,
        "end": None if buffer is None else buffer.end,
    }


def _label(one: Contributor) -> str:
    """The user's path, else the operation, else XLA's name. A result's path has no name in front."""
    if one.path is not None:
        return noun(one.path) if one.path[:1] in ("", "[", ".") or one.path == "result" else one.path
    return describe.primitive(one.op_name) or (one.buffer.value if one.buffer else f"allocation {one.allocation}")


def _users(stack: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """The frames of the user's own code, all frames where there is none of it."""
    return tuple(frame for frame in stack if is_user_code(frame.file)) or stack


def _copies(inspection: Inspection, found: Mapping[int, AliasOutcome]) -> dict[str, Any]:
    """Aliased arguments that cost copies: first those that save nothing, then those that save less than their bytes."""
    rows = sorted(
        ((sum(copy.nbytes for copy in one.copies), one) for one in found.values() if one.copies),
        key=lambda row: (not row[1].saves_nothing, row[1].saved == row[1].nbytes, -row[0]),
    )
    rest = rows[MOST_COPIES:]
    return {
        "copies": [
            {
                "argument": inspection.arguments[one.argument].path,
                "result": noun(inspection.results[one.result].title),
                "bytes": nbytes,
                "sentence": one.sentence,
                "advice": one.advice,
            }
            for nbytes, one in rows[:MOST_COPIES]
        ],
        "moreCopies": {"count": len(rest), "bytes": sum(nbytes for nbytes, _ in rest)},
    }
