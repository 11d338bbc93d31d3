"""When each logical buffer's value is live, in logical time: XLA's HloLiveRange.

See xla/hlo/utils/hlo_live_range.cc, `CalculateBufferStartEndMap` and `NormalizeAliasedBuffers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from donation_inspector.xla.hlo.dataflow import Dataflow
from donation_inspector.xla.hlo.module import Module, Position
from donation_inspector.xla.hlo.proto import HloInstructionProto
from donation_inspector.xla.hlo.schedule import Schedule


def lifetimes(
    module: Module,
    schedule: Schedule,
    dataflow: Dataflow,
    defined: Mapping[Position, int],
    shared: Iterable[list[int]],
) -> dict[int, tuple[int, int]]:
    """(start, end) of each logical buffer that the schedule defines, both included; `schedule.end` is "to the end"."""
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    kept = _kept_parameters(module)
    for (identifier, index), buffer in defined.items():
        if identifier in schedule.times:
            starts[buffer], ends[buffer] = _definition(module, schedule, identifier)
            if module.instructions[identifier].opcode == "parameter" and (identifier, index) in kept:
                ends[buffer] = schedule.end
    for identifier, time in schedule.times.items():
        seen = _seen_until(module, schedule, identifier)
        for index in module.parts(identifier):
            _extend(ends, dataflow.value((identifier, index)), seen)
        instruction = module.instructions[identifier]
        used = _use_time(module, schedule, instruction, time)
        if used is not None:
            for position in _read_parts(module, instruction):
                _extend(ends, dataflow.value(position), used)
    _trim(starts, ends, shared)
    return {buffer: (start, ends[buffer]) for buffer, start in starts.items()}


def _extend(ends: dict[int, int], buffer: int | None, time: int) -> None:
    if buffer is not None and ends.get(buffer, time) < time:
        ends[buffer] = time


def _kept_parameters(module: Module) -> set[Position]:
    """The entry's parameters, part by part, that share no buffer with a result: their bytes stay as they are."""
    aliased = {
        (entry.parameter_number, tuple(entry.parameter_shape_index))
        for entry in module.proto.input_output_alias.entries
    }
    return {
        (instruction.id, index)
        for instruction in module.entry.instructions
        if instruction.opcode == "parameter"
        for index in module.parts(instruction.id)
        if (instruction.parameter_number, index) not in aliased
    }


def _seen_until(module: Module, schedule: Schedule, identifier: int) -> int:
    """Until when a value is seen at an instruction that holds it: a computation's result to the computation's end."""
    if identifier in module.roots:
        return schedule.spans[module.computation_of[identifier]][1]
    return schedule.times[identifier]


def _definition(module: Module, schedule: Schedule, identifier: int) -> tuple[int, int]:
    """(start, end) of a value that nothing uses."""
    computation = module.computation_of[identifier]
    start, end = schedule.times[identifier], _seen_until(module, schedule, identifier)
    if module.instructions[identifier].opcode == "parameter":
        # nothing that is scheduled before the parameter may take its bytes
        start = schedule.spans[computation][0]
    if computation in schedule.async_done:
        # it runs beside what comes between its start and its end
        end = max(end, schedule.times[schedule.async_done[computation]])
    return start, end


def _use_time(module: Module, schedule: Schedule, user: HloInstructionProto, time: int) -> int | None:
    """When an instruction is done with its operands; None where the computation it calls says it instead."""
    callees = user.called_computation_ids
    if user.opcode == "call" and callees[0] in schedule.spans:
        return None
    if user.opcode == "while" and callees[0] in schedule.spans:
        body = module.computations[callees[0]]
        return schedule.times[next(i.id for i in body.instructions if i.opcode == "parameter")]
    return time


def _read_parts(module: Module, user: HloInstructionProto) -> Iterable[Position]:
    """The parts of its operands that an instruction may read.

    What it merely hands on it holds at the same time: only get-tuple-element leaves parts behind, and takes its own
    from the table of pointers that its operand is.
    """
    for operand in user.operand_ids:
        parts = module.parts(operand)
        for index in parts[:1] if user.opcode == "get-tuple-element" else parts:
            yield operand, index


def _trim(starts: Mapping[int, int], ends: dict[int, int], shared: Iterable[list[int]]) -> None:
    """Values in the same bytes follow each other: each ends where the next one starts."""
    for group in shared:
        ordered = sorted((starts[buffer], ends[buffer], buffer) for buffer in group if buffer in starts)
        values = [buffer for _, _, buffer in ordered]
        for first, second in pairwise(values):
            ends[second] = max(ends[first], ends[second])
            ends[first] = min(ends[first], starts[second])
