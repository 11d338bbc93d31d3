"""XLA's buffers of a compiled module as plain data for the front end. Reading them is work for the compare thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from donation_inspector.errors import DonationInspectorError
from donation_inspector.labels import type_label
from donation_inspector.units import format_bytes

if TYPE_CHECKING:
    from donation_inspector.answers import Comparison, Variant
    from donation_inspector.xla.hlo.buffers import BufferLiveRange, Buffers
    from donation_inspector.xla.hlo.source import Frame

MOST_CONTRIBUTORS = 50
MOST_POINTS = 4000
"""Points of a curve that the front end gets: more than any screen has columns."""
CLASSES = ("parameter", "output", "temp", "constant")


@dataclass(frozen=True, slots=True)
class Layout:
    """The buffers of one module: JSON, and float64 columns [time][needed][held] of `data["points"]` each.

    `error` says why XLA's buffers could not be read; `data` is then empty.
    """

    data: dict[str, Any]
    curves: bytes
    error: str | None = None


Layouts = Mapping[bytes, Layout]
"""What is read so far, by the serialized HloProto of the compiled module."""
NOTHING_READ: Layouts = MappingProxyType({})


def read(comparison: Comparison, known: Layouts) -> dict[bytes, Layout]:
    """The layouts of a comparison that are not known yet, each module once."""
    fresh: dict[bytes, Layout] = {}
    for variant in comparison.variants.values():
        if variant.hlo is not None and variant.hlo not in known and variant.hlo not in fresh:
            fresh[variant.hlo] = _layout(variant)
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


def _layout(variant: Variant) -> Layout:
    try:
        buffers = variant.buffers
    except DonationInspectorError as error:
        return Layout({}, b"", str(error))
    if buffers is None:
        return Layout({}, b"", "XLA made no module")
    times = points(buffers.needed, buffers.held)
    columns = np.stack([times, buffers.needed[times], buffers.held[times]]).astype("<f8")
    return Layout(_data(buffers, times), columns.tobytes())


def _data(buffers: Buffers, times: npt.NDArray[np.int64]) -> dict[str, Any]:
    live = buffers.live_at(buffers.peak_at) if buffers.schedule else ()
    sizes = {name: sum(one.nbytes for one in live if one.kind == name) for name in CLASSES}
    return {
        "steps": len(buffers.schedule),
        "peak": buffers.peak,
        "peakAt": buffers.peak_at,
        "peakInstruction": buffers.schedule[buffers.peak_at] if buffers.schedule else "",
        "sentence": [{"text": f"{format_bytes(buffers.peak)} are held at the peak.", "strong": False}],
        "reserved": buffers.reserved,
        "constant": buffers.spaces[0].constant,
        "padding": None,
        "fragmentation": None,
        "classes": [{"name": name, "bytes": size} for name, size in sizes.items()],
        "contributors": [_contributor(one) for one in live[:MOST_CONTRIBUTORS]],
        "more": {
            "count": len(live[MOST_CONTRIBUTORS:]),
            "bytes": sum(one.nbytes for one in live[MOST_CONTRIBUTORS:]),
        },
        "copies": [],
        "spaces": [
            {
                "name": "main memory" if not color else f"memory space {color}",
                "peak": one.peak,
                "reserved": one.reserved,
            }
            for color, one in buffers.spaces.items()
        ],
        "points": len(times),
        "instructions": "\n".join(buffers.schedule[int(time)] for time in times),
    }


def _contributor(one: BufferLiveRange) -> dict[str, Any]:
    return {
        "class": one.kind,
        "label": one.op_name or one.value,
        "type": type_label(one.dtype, one.shape),
        "bytes": one.nbytes,
        "source": _line(one.source) if one.source else "",
        "stack": [f"{_line(frame)} in {frame.function}" for frame in one.stack],
        "opName": one.op_name,
        "instruction": one.instruction,
        "start": one.start,
        "end": one.end,
    }


def _line(frame: Frame) -> str:
    return f"{frame.file}:{frame.line}"
