"""Which logical buffers are one HloBuffer: their values follow each other in the same bytes.

XLA decides (a while's carry, a conditional's branches, an update in place, a custom call that writes into its operand,
a donated argument and its result; xla/hlo/analysis/hlo_alias_analysis.cc) and writes its decision down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from donation_inspector.xla.hlo.module import Position
from donation_inspector.xla.hlo.proto import BufferAlias, Location


def position(location: Location) -> Position:
    """The part of an instruction that a location means."""
    return location.instruction_id, tuple(location.shape_index)


def shared_buffers(aliases: Iterable[BufferAlias], defined: Mapping[Position, int]) -> list[list[int]]:
    """The logical buffers of each HloBuffer that has several.

    `aliases` names all others for every one of them, so that the first one's suffice.
    """
    first_of: dict[int, int] = {}
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for alias in aliases:
        source = alias.source_buffer_id
        if first_of.setdefault(source, source) != source:
            continue
        other = defined[position(alias.location)]
        first_of[other] = source
        groups[source].append(other)
    return [[first, *others] for first, others in groups.items()]
