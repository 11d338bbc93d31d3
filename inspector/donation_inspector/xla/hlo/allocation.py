"""XLA's allocations: the pieces of memory that its buffers are laid into."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from donation_inspector.xla.hlo.module import ShapeIndex
from donation_inspector.xla.hlo.proto import BufferAllocationProto

Kind = Literal["parameter", "output", "constant", "temp", "thread-local"]
"""Of an allocation, and of a logical buffer.

A parameter is the entry computation's. "thread-local" is the stack of what runs inside one instruction.
"""


@dataclass(frozen=True, slots=True)
class Allocation:
    """One piece of memory, `nbytes` long, in memory space `color` (0 is the device's main memory).

    `parameter` is the entry parameter that brings it and `parameter_index` the part of it. `aliased` is a parameter's
    allocation that a result is written to: a donated argument whose donation holds.
    """

    index: int
    nbytes: int
    kind: Kind
    color: int
    parameter: int | None
    parameter_index: ShapeIndex
    aliased: bool


def allocations(protos: Iterable[BufferAllocationProto]) -> tuple[Allocation, ...]:
    """The allocations in XLA's order."""
    return tuple(
        Allocation(
            index=proto.index,
            nbytes=proto.size,
            kind=_kind(proto),
            color=proto.color,
            parameter=proto.parameter_number if proto.is_entry_computation_parameter else None,
            parameter_index=tuple(proto.parameter_shape_index),
            aliased=proto.is_entry_computation_parameter and proto.maybe_live_out,
        )
        for proto in protos
    )


def _kind(proto: BufferAllocationProto) -> Kind:
    if proto.is_thread_local:
        return "thread-local"
    if proto.is_constant:
        return "constant"
    if proto.is_entry_computation_parameter:
        return "parameter"
    return "output" if proto.maybe_live_out else "temp"
