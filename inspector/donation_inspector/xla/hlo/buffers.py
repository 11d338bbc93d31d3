"""XLA's own buffers of one compiled program: what they are, where they lie, when they are live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from donation_inspector.xla.hlo.aliasing import position, shared_buffers
from donation_inspector.xla.hlo.allocation import Allocation, Kind, allocations
from donation_inspector.xla.hlo.curves import Bytes, Curves, curves
from donation_inspector.xla.hlo.dataflow import Dataflow
from donation_inspector.xla.hlo.lifetime import lifetimes
from donation_inspector.xla.hlo.module import Module, ShapeIndex, dtype, subshape
from donation_inspector.xla.hlo.proto import BufferAssignmentProto, parse
from donation_inspector.xla.hlo.schedule import Schedule, flatten
from donation_inspector.xla.hlo.source import Frame, Stacks


@dataclass(frozen=True, slots=True)
class BufferLiveRange:
    """One logical buffer: a part of an instruction's result, its place and its time.

    `value` is XLA's name of it: "fusion.3{1}" is the second part of a tuple. `nbytes` is what XLA keeps for it, padding
    included; `shape` and `dtype` (numpy's words, and "tuple" or "token") are those of the array. `offset` is inside the
    allocation, `color` the memory space, 0 the device's main memory.

    `start` and `end` are times of the schedule, both included; what stays to the end has the schedule's length as its
    `end`. Values that share their bytes follow each other: each ends where the next one starts. A "thread-local" buffer
    is live while the instruction that it works for runs.

    `op_name` is JAX's: the transformations and the primitive, or an argument's path. `stack` is innermost first.
    """

    id: int
    value: str
    instruction: str
    index: ShapeIndex
    opcode: str
    computation: str
    kind: Kind
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    allocation: int
    offset: int
    color: int
    start: int
    end: int
    op_name: str
    stack: tuple[Frame, ...] = field(repr=False)

    @property
    def source(self) -> Frame | None:
        """The innermost frame; None where XLA made the instruction itself."""
        return self.stack[0] if self.stack else None


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The compiled program that the buffers belong to.

    `schedule` orders the ids of its instructions, `dataflow` names the logical buffer whose value stands at each part
    of an instruction's result, and `stacks` has the Python stack of each.
    """

    module: Module
    schedule: Schedule
    dataflow: Dataflow
    stacks: Stacks


@dataclass(frozen=True, slots=True, eq=False)
class Buffers:
    """What XLA laid out for one device.

    `schedule` names the instructions of all computations in the order of time. `spaces` has the curves of each memory
    space by color; `needed`, `held`, `reserved`, `peak` and `peak_at` are those of the main memory. `program` is what
    computes them.
    """

    schedule: tuple[str, ...]
    live_ranges: tuple[BufferLiveRange, ...]
    allocations: tuple[Allocation, ...]
    spaces: Mapping[int, Curves]
    program: Program = field(repr=False)

    @property
    def needed(self) -> Bytes:
        """int64[schedule]: bytes that hold a value which is still needed."""
        return self.spaces[0].needed

    @property
    def held(self) -> Bytes:
        """int64[schedule]: parameters and outputs throughout, temporaries while they are needed."""
        return self.spaces[0].held

    @property
    def reserved(self) -> int:
        """What the runtime takes for the whole call, in bytes: argument + output − alias + temp."""
        return self.spaces[0].reserved

    @property
    def peak(self) -> int:
        """The most bytes held at once."""
        return self.spaces[0].peak

    @property
    def peak_at(self) -> int:
        """The earliest time at which `peak` is held."""
        return self.spaces[0].peak_at

    def live_at(self, time: int, color: int = 0) -> tuple[BufferLiveRange, ...]:
        """What is live at `time` in a memory space, constants included: most bytes first, then in XLA's order.

        Raises IndexError when there is no such time.
        """
        if not 0 <= time < len(self.schedule):
            raise IndexError(f"There is no time {time}: the schedule has {len(self.schedule)}, counted from 0.")
        live = [
            buffer
            for buffer in self.live_ranges
            if buffer.color == color and buffer.start <= time <= buffer.end and buffer.kind != "thread-local"
        ]
        return tuple(sorted(live, key=lambda buffer: (-buffer.nbytes, buffer.id)))


def read_buffers(data: bytes) -> Buffers:
    """The buffers in a serialized HloProto of a compiled module.

    Raises CompileError when `data` is no such HloProto.
    """
    hlo = parse(data)
    module, assignment = Module(hlo.hlo_module), hlo.buffer_assignment
    schedule = flatten(module)
    defined = {position(buffer.defined_at): buffer.id for buffer in assignment.logical_buffers}
    dataflow = Dataflow(module, defined)
    shared = shared_buffers(assignment.buffer_aliases, defined)
    times = lifetimes(module, schedule, dataflow, defined, shared)
    results = {dataflow.value((module.entry.root_id, index)) for index in module.parts(module.entry.root_id)}
    pieces = allocations(assignment.buffer_allocations)
    program = Program(module, schedule, dataflow, Stacks(module.proto.stack_frame_index))
    ranges = tuple(_ranges(program, assignment, pieces, times, results))
    spaces = {
        color: curves(
            [piece for piece in pieces if piece.color == color],
            [buffer for buffer in ranges if buffer.color == color],
            schedule.end,
        )
        for color in sorted({0, *(piece.color for piece in pieces)})
    }
    names = tuple(module.instructions[identifier].name for identifier in schedule.order)
    return Buffers(names, ranges, pieces, spaces, program)


def _ranges(
    program: Program,
    assignment: BufferAssignmentProto,
    pieces: Iterable[Allocation],
    times: Mapping[int, tuple[int, int]],
    results: set[int | None],
) -> Iterable[BufferLiveRange]:
    """Every logical buffer, in XLA's order."""
    module, schedule, stacks = program.module, program.schedule, program.stacks
    by_index = {piece.index: piece for piece in pieces}
    places = {
        assigned.logical_buffer_id: (by_index[proto.index], assigned.offset)
        for proto in assignment.buffer_allocations
        for assigned in proto.assigned
    }
    for logical in assignment.logical_buffers:
        defined_at = position(logical.defined_at)
        identifier, index = defined_at
        instruction = module.instructions[identifier]
        computation = module.computation_of[identifier]
        piece, offset = places[logical.id]
        shape = subshape(instruction.shape, index)
        is_argument = instruction.opcode == "parameter" and computation == module.entry.id
        start, end = times[logical.id] if logical.id in times else _during(module, schedule, computation)
        yield BufferLiveRange(
            id=logical.id,
            value=instruction.name + ("{" + ",".join(map(str, index)) + "}" if index or shape.tuple_shapes else ""),
            instruction=instruction.name,
            index=index,
            opcode=instruction.opcode,
            computation=module.computations[computation].name,
            kind=_kind(piece, is_argument, logical.id in results),
            shape=tuple(shape.dimensions),
            dtype=dtype(shape),
            nbytes=logical.size,
            allocation=piece.index,
            offset=offset,
            color=piece.color,
            start=start,
            end=end,
            op_name=instruction.metadata.op_name,
            stack=stacks.stack(instruction.metadata),
        )


def _kind(piece: Allocation, is_argument: bool, is_result: bool) -> Kind:
    """A buffer's own: a temporary may well lie in a parameter's or an output's memory."""
    if piece.kind in ("thread-local", "constant"):
        return piece.kind
    if is_argument:
        return "parameter"
    return "output" if is_result else "temp"


def _during(module: Module, schedule: Schedule, computation: int) -> tuple[int, int]:
    """The time of the instruction inside which a computation without times of its own runs."""
    while True:
        caller = module.callers[computation][0]
        if caller.id in schedule.times:
            return schedule.times[caller.id], schedule.times[caller.id]
        computation = module.computation_of[caller.id]
