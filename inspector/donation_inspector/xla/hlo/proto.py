"""HloProto as typed messages, parsed with a minimal descriptor set in a descriptor pool of its own.

The pool is private: TensorFlow and XProf register the full descriptors of the same protocol in the default one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Protocol, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from donation_inspector.errors import CompileError

_PACKAGE = "donation_inspector.hlo"


class ShapeProto(Protocol):
    element_type: int
    dimensions: Sequence[int]
    tuple_shapes: Sequence[ShapeProto]


class OpMetadata(Protocol):
    op_type: str
    op_name: str
    source_file: str
    source_line: int
    source_column: int
    stack_frame_id: int


class HloInstructionProto(Protocol):
    name: str
    opcode: str
    shape: ShapeProto
    metadata: OpMetadata
    parameter_number: int
    tuple_index: int
    id: int
    operand_ids: Sequence[int]
    called_computation_ids: Sequence[int]


class HloComputationProto(Protocol):
    name: str
    instructions: Sequence[HloInstructionProto]
    id: int
    root_id: int


class InstructionSequence(Protocol):
    instruction_ids: Sequence[int]


class HloScheduleProto(Protocol):
    sequences: Mapping[int, InstructionSequence]


class AliasEntryProto(Protocol):
    output_shape_index: Sequence[int]
    parameter_number: int
    parameter_shape_index: Sequence[int]


class HloInputOutputAliasProto(Protocol):
    entries: Sequence[AliasEntryProto]


class FileLocation(Protocol):
    file_name_id: int
    function_name_id: int
    line: int
    column: int


class StackFrame(Protocol):
    file_location_id: int
    parent_frame_id: int


class StackFrameIndexProto(Protocol):
    file_names: Sequence[str]
    function_names: Sequence[str]
    file_locations: Sequence[FileLocation]
    stack_frames: Sequence[StackFrame]


class HloModuleProto(Protocol):
    name: str
    computations: Sequence[HloComputationProto]
    entry_computation_id: int
    schedule: HloScheduleProto
    input_output_alias: HloInputOutputAliasProto
    stack_frame_index: StackFrameIndexProto


class Location(Protocol):
    instruction_name: str
    shape_index: Sequence[int]
    instruction_id: int


class LogicalBufferProto(Protocol):
    id: int
    size: int
    defined_at: Location
    color: int


class Assigned(Protocol):
    logical_buffer_id: int
    offset: int
    size: int


class BufferAllocationProto(Protocol):
    index: int
    size: int
    is_thread_local: bool
    is_entry_computation_parameter: bool
    parameter_number: int
    maybe_live_out: bool
    color: int
    assigned: Sequence[Assigned]
    parameter_shape_index: Sequence[int]
    is_tuple: bool
    is_constant: bool


class BufferAlias(Protocol):
    source_buffer_id: int
    location: Location


class BufferAssignmentProto(Protocol):
    logical_buffers: Sequence[LogicalBufferProto]
    buffer_aliases: Sequence[BufferAlias]
    buffer_allocations: Sequence[BufferAllocationProto]


class HloProto(Protocol):
    hlo_module: HloModuleProto
    buffer_assignment: BufferAssignmentProto


@cache
def _pool() -> Any:
    pool: Any = descriptor_pool.DescriptorPool()
    data = files(__package__ or "").joinpath("hlo.binpb").read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


@cache
def _hlo_proto() -> Any:
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.HloProto"))


@cache
def primitive_types() -> Mapping[int, str]:
    """XLA's names of element types by number: 11 is "F32"."""
    enum = _pool().FindEnumTypeByName(f"{_PACKAGE}.PrimitiveType")
    return {value.number: value.name for value in enum.values}


def parse(data: bytes) -> HloProto:
    """The HloProto of a compiled module: with a schedule and a buffer assignment.

    Raises CompileError when `data` is no HloProto, or one of a module that XLA has not scheduled yet.
    """
    try:
        hlo = cast(HloProto, _hlo_proto().FromString(data))
    except message.DecodeError as error:
        raise CompileError(f"These {len(data)} bytes are no HloProto of XLA's: {error}") from error
    if not hlo.hlo_module.schedule.sequences or not hlo.buffer_assignment.buffer_allocations:
        raise CompileError(
            f"The HloProto of module {hlo.hlo_module.name!r} has no schedule or no buffer assignment: "
            "it was written before XLA laid out its buffers. Take the one named 'after_optimizations'."
        )
    return hlo
