"""Whether a HloProto from a file holds together: every name leads somewhere, and no way of names leads back to itself.

XLA writes operands before what reads them, and a computation before what calls it: a file that does not is damaged, and
following its names would come to no end.
"""

from __future__ import annotations

from collections.abc import Iterator

from donation_inspector.errors import CompileError
from donation_inspector.xla.hlo.proto import (
    BufferAssignmentProto,
    HloComputationProto,
    HloModuleProto,
    StackFrameIndexProto,
    parse,
)

_CALLS = {"call": 1, "while": 2, "async-start": 1, "fusion": 1}
_MOST_BYTES = 1 << 53
_MOST_SPACES = 64


def why_unreadable(data: bytes) -> str | None:
    """What is wrong with a serialized HloProto, None where nothing is."""
    try:
        hlo = parse(data)
    except CompileError as error:
        return str(error)
    problems = (*_module(hlo.hlo_module), *_frames(hlo.hlo_module.stack_frame_index, len(data)))
    return next(iter(problems), None) or next(_buffers(hlo.hlo_module, hlo.buffer_assignment), None)


def _module(module: HloModuleProto) -> Iterator[str]:
    computations: set[int] = set()
    instructions: set[int] = set()
    inside: dict[int, set[int]] = {}
    for computation in module.computations:
        own: set[int] = set()
        yield from _computation(computation, own, instructions, computations)
        if computation.id in computations or computation.root_id not in own:
            yield f"computation {computation.id} has no root of its own, or is there twice"
        computations.add(computation.id)
        instructions |= own
        inside[computation.id] = own
    if module.entry_computation_id not in computations:
        yield f"there is no entry computation {module.entry_computation_id}"
    for number, sequence in module.schedule.sequences.items():
        scheduled = list(sequence.instruction_ids)
        if not inside.get(number, set()).issuperset(scheduled) or len(set(scheduled)) < len(scheduled):
            yield f"the schedule of computation {number} is not one of its instructions"


def _computation(
    computation: HloComputationProto, own: set[int], instructions: set[int], computations: set[int]
) -> Iterator[str]:
    """Fills `own` with the ids of the computation's instructions."""
    for instruction in computation.instructions:
        called = instruction.called_computation_ids
        if instruction.id in own or instruction.id in instructions:
            yield f"instruction {instruction.id} is there twice"
        if not own.issuperset(instruction.operand_ids):
            yield f"{instruction.name} reads what is not there before it"
        if not computations.issuperset(called) or len(called) < _CALLS.get(instruction.opcode, 0):
            yield f"{instruction.name} calls a computation that is not there before it"
        own.add(instruction.id)


def _frames(index: StackFrameIndexProto, nbytes: int) -> Iterator[str]:
    depths = [0]
    for number, frame in enumerate(index.stack_frames, start=1):
        parent, place = frame.parent_frame_id, frame.file_location_id
        if not 0 <= parent < number or not 1 <= place <= len(index.file_locations):
            yield f"stack frame {number} is called from {parent}, at place {place}"
            return
        depths.append(depths[parent] + 1)
    # each stack is a tuple of its own
    if sum(depths) > 2 * nbytes + 100_000:
        yield "the stack frames are longer than those of a program"
    for at in index.file_locations:
        if not 1 <= at.file_name_id <= len(index.file_names) or not 1 <= at.function_name_id <= len(
            index.function_names
        ):
            yield f"a stack frame is in file {at.file_name_id} and function {at.function_name_id}"
            return


def _buffers(module: HloModuleProto, assignment: BufferAssignmentProto) -> Iterator[str]:
    instructions = {one.id for computation in module.computations for one in computation.instructions}
    buffers = {buffer.id for buffer in assignment.logical_buffers}
    places = [
        *(buffer.defined_at for buffer in assignment.logical_buffers),
        *(alias.location for alias in assignment.buffer_aliases),
    ]
    if any(place.instruction_id not in instructions for place in places):
        yield "a buffer is defined by an instruction that is not there"
    if any(not 0 <= buffer.size < _MOST_BYTES for buffer in assignment.logical_buffers):
        yield "a buffer has a size that no device has"
    for allocation in assignment.buffer_allocations:
        if not 0 <= allocation.size < _MOST_BYTES:
            yield f"allocation {allocation.index} has {allocation.size} bytes"
        for one in allocation.assigned:
            if one.logical_buffer_id not in buffers or not 0 <= one.offset <= allocation.size:
                yield f"allocation {allocation.index} holds buffer {one.logical_buffer_id} at {one.offset}"
    if len({allocation.color for allocation in assignment.buffer_allocations}) > _MOST_SPACES:
        yield "there are more memory spaces than a device has"
