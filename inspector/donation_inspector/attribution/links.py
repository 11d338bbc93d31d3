"""HLO instruction ↔ StableHLO operation ↔ line of Python ↔ argument: what stems from what, in either direction.

XLA keeps JAX's name stack and Python stack of each operation, in fusions too, so that the two sides join on (name,
line, column): many to many. The operations of a function that XLA has inlined are named from that function on, and what
only its call is known by is named like the beginning of what XLA made of it. What XLA has folded into something else of
the same expression leads there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from donation_inspector.attribution.flow import Flow
from donation_inspector.attribution.place import user_frame
from donation_inspector.common.user_code import is_user_code
from donation_inspector.xla.hlo.proto import HloInstructionProto
from donation_inspector.xla.hlo.source import Frame

_Origin = tuple[str, int]
"""JAX's name of an operation and the id of its Python stack."""

_NOTHING: dict[str, list[int]] = {}


class Links:
    """One compiled program, joined with the operations of the StableHLO that it was compiled from.

    `names`, `lines` and `columns` describe the operations, a row each: name stack and place, as `ir.location.source`
    gives them ("" and 0 where it gives none). HLO instructions are those of the schedule; a fusion counts for all that
    is inside of it.
    """

    def __init__(self, flow: Flow, names: Sequence[str], lines: Sequence[int], columns: Sequence[int]) -> None:
        self._flow = flow
        self._names, self._lines, self._columns = names, lines, columns
        self._at: dict[tuple[int, int], dict[str, list[int]]] = {}
        for op, (name, line, column) in enumerate(zip(names, lines, columns, strict=True)):
            if name:
                self._at.setdefault((line, column), {}).setdefault(name, []).append(op)
        self._origins_inside: dict[int, frozenset[_Origin]] = {}
        self._stacks: dict[int, tuple[Frame, ...]] = {0: ()}

    def ops_of_hlo(self, instruction: str) -> tuple[int, ...]:
        """The rows of the operations that an instruction of the schedule computes. Raises KeyError for another name."""
        origins = self._origins_of(self._instructions[instruction])
        return tuple(sorted({op for origin in origins for op in self._ops_by_origin[origin]}))

    def hlo_of_op(self, op: int) -> tuple[str, ...]:
        """The instructions that compute an operation, in the order of the schedule."""
        found = {name for origin in self._origins_by_op.get(op, ()) for name in self._hlo_by_origin[origin]}
        return tuple(sorted(found, key=self._time.__getitem__))

    def lines_of_hlo(self, instruction: str) -> tuple[tuple[str, int], ...]:
        """(file, line) of the user's code that an instruction computes, the innermost one of each stack."""
        frames = {user_frame(self._stack(stack)) for _, stack in self._origins_of(self._instructions[instruction])}
        return tuple(sorted({(frame.file, frame.line) for frame in frames if frame is not None}))

    def hlo_of_line(self, line: int, file: str | None = None) -> tuple[str, ...]:
        """The instructions that compute a line of the user's, or what it calls, in the order of the schedule.

        `file` is a path or the end of one; None looks into all files.
        """
        found = {
            name
            for (path, at), names in self._hlo_by_line.items()
            if at == line and (file is None or path == file or path.endswith("/" + file.lstrip("/")))
            for name in names
        }
        return tuple(sorted(found, key=self._time.__getitem__))

    def arguments_of_hlo(self, instruction: str) -> tuple[int, ...]:
        """The positions of the arguments whose values an instruction reads, be it from a copy."""
        positions = {buffer.id: position for position, buffer in self._flow.arguments.items()}
        read = (self._flow.uncopied(value).id for value in self._flow.operands(self._instructions[instruction]))
        return tuple(sorted({positions[value] for value in read if value in positions}))

    def hlo_of_argument(self, position: int) -> tuple[str, ...]:
        """The instructions that read an argument's value, from a copy or a loop's carry too; by time."""
        buffer = self._flow.arguments.get(position)
        uses = () if buffer is None else self._flow.far_uses(buffer)
        return tuple(dict.fromkeys(use.instruction.name for use in uses))

    @cached_property
    def _time(self) -> dict[str, int]:
        return {name: time for time, name in enumerate(self._flow.buffers.schedule)}

    @cached_property
    def _instructions(self) -> dict[str, HloInstructionProto]:
        module, schedule = self._flow.module, self._flow.schedule
        return {module.instructions[i].name: module.instructions[i] for i in schedule.order}

    @cached_property
    def _hlo_by_origin(self) -> dict[_Origin, list[str]]:
        # by origin and not by operation: the same line of a loop's body makes thousands of either
        found: defaultdict[_Origin, list[str]] = defaultdict(list)
        for name, instruction in self._instructions.items():
            for origin in self._origins_of(instruction):
                found[origin].append(name)
        return found

    @cached_property
    def _ops_by_origin(self) -> dict[_Origin, list[int]]:
        found = {origin: list(self._find_ops(*origin)) for origin in self._hlo_by_origin}
        scopes: defaultdict[tuple[str, int, int], list[_Origin]] = defaultdict(list)
        for name, stack in found:
            frame = self._frame(stack)
            if frame is not None:
                scopes[_scope(name), frame.line, frame.column].append((name, stack))
        known = {op for ops in found.values() for op in ops}
        for op, (name, line, column) in enumerate(zip(self._names, self._lines, self._columns, strict=True)):
            if op not in known and line:
                for origin in scopes.get((_scope(name), line, column), ()):
                    found[origin].append(op)
        return found

    @cached_property
    def _origins_by_op(self) -> dict[int, list[_Origin]]:
        found: defaultdict[int, list[_Origin]] = defaultdict(list)
        for origin, ops in self._ops_by_origin.items():
            for op in ops:
                found[op].append(origin)
        return found

    @cached_property
    def _hlo_by_line(self) -> dict[tuple[str, int], list[str]]:
        found: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
        for (_, stack), names in self._hlo_by_origin.items():
            for place in {(frame.file, frame.line) for frame in self._stack(stack) if is_user_code(frame.file)}:
                found[place] += names
        return found

    def _stack(self, identifier: int) -> tuple[Frame, ...]:
        return self._stacks[identifier]

    def _origins_of(self, instruction: HloInstructionProto) -> Iterable[_Origin]:
        """Where an instruction and all that runs inside of it come from; an argument's name is no operation's."""
        metadata = instruction.metadata
        own: set[_Origin] = set()
        if metadata.op_name and instruction.opcode != "parameter":
            identifier = metadata.stack_frame_id
            if identifier not in self._stacks:
                self._stacks[identifier] = self._flow.buffers.program.stacks.stack(metadata)
            own = {(name, identifier) for name in metadata.op_name.split(";")}
        for called in instruction.called_computation_ids:
            if called not in self._flow.schedule.spans:
                own |= self._origins_of_computation(called)
        return own

    def _origins_of_computation(self, computation: int) -> frozenset[_Origin]:
        known = self._origins_inside.get(computation)
        if known is None:
            inside = self._flow.module.computations[computation].instructions
            known = frozenset(origin for instruction in inside for origin in self._origins_of(instruction))
            self._origins_inside[computation] = known
        return known

    def _frame(self, stack: int) -> Frame | None:
        """The frame that `ir.location.source` takes: the user's innermost, the innermost where there is none."""
        frames = self._stack(stack)
        return user_frame(frames) or (frames[0] if frames else None)

    def _find_ops(self, name: str, stack: int) -> tuple[int, ...]:
        frame = self._frame(stack)
        if frame is not None:
            here = self._at.get((frame.line, frame.column), _NOTHING)
            parts = name.split("/")
            for start in range(len(parts)):
                # an inlined function's operations are named from that function on
                found = here.get("/".join(parts[start:]))
                if found:
                    return tuple(found)
        return self._find_call(name, self._stack(stack))

    def _find_call(self, name: str, frames: Sequence[Frame]) -> tuple[int, ...]:
        """The call, loop or branch that the operation runs in: named like its beginning, at one of its frames."""
        parts = name.split("/")
        places = {(frame.line, frame.column) for frame in frames}
        for end in range(len(parts) - 1, 1, -1):
            begin = "/".join(parts[:end])
            found = [op for place in places for op in self._at.get(place, _NOTHING).get(begin, ())]
            if found:
                return tuple(sorted(found))
        return ()


def _scope(name: str) -> str:
    """What an operation's name is in: `jit(f)/jvp()` for `jit(f)/jvp()/tanh`."""
    return name.rpartition("/")[0]
