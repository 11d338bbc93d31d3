"""Where the values of a compiled program go: what reads them, looking into fusions and through copies and loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from donation_inspector.attribution.fusions import FUSED, Fusions
from donation_inspector.xla.hlo.buffers import BufferLiveRange, Buffers
from donation_inspector.xla.hlo.module import Position, ShapeIndex
from donation_inspector.xla.hlo.proto import HloInstructionProto, OpMetadata

COPIES = frozenset({"copy", "copy-start", "copy-done"})
_NO_READERS = frozenset(
    {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "opt-barrier",
        "domain",
        "add-dependency",
        "copy-done",
        "async-start",
        "async-update",
        "async-done",
        "while",
        "conditional",
    }
)
"""They hand a value on, or name it: what is done with it is done elsewhere."""


@dataclass(frozen=True, slots=True)
class Use:
    """An instruction of the schedule that reads a value, as its operand number `operand`, at `time`."""

    instruction: HloInstructionProto
    operand: int
    index: ShapeIndex
    time: int


class Flow:
    """The values of `buffers` by logical buffer, and their uses."""

    def __init__(self, buffers: Buffers) -> None:
        self.buffers = buffers
        self.module, self.schedule = buffers.program.module, buffers.program.schedule
        self.fusions = Fusions(self.module)
        self._dataflow = buffers.program.dataflow
        self.by_id: dict[int, BufferLiveRange] = {buffer.id: buffer for buffer in buffers.live_ranges}
        self.uses: defaultdict[int, list[Use]] = defaultdict(list)
        self._carried: defaultdict[int, list[int]] = defaultdict(list)
        self._sources: defaultdict[int, list[int]] = defaultdict(list)
        self._ids = {instruction.name: instruction.id for instruction in self.module.instructions.values()}
        self._copied: dict[int, int] = {}
        self._far: dict[int, tuple[Use, ...]] = {}
        for identifier, time in self.schedule.times.items():
            self._enter(self.module.instructions[identifier], time)
        for uses in self.uses.values():
            uses.sort(key=lambda use: use.time)

    def value(self, position: Position) -> BufferLiveRange | None:
        """The buffer whose value stands at a part of an instruction's result."""
        found = self._dataflow.value(position)
        return None if found is None else self.by_id.get(found)

    def instruction(self, buffer: BufferLiveRange) -> HloInstructionProto:
        """The instruction that defines a buffer's value."""
        return self.module.instructions[self._ids[buffer.instruction]]

    def operands(self, instruction: HloInstructionProto) -> Iterator[BufferLiveRange]:
        """The arrays that an instruction reads, those inside of tuples among them."""
        for operand in instruction.operand_ids:
            for index in self.module.parts(operand):
                found = self.value((operand, index))
                if found is not None:
                    yield found

    @cached_property
    def arguments(self) -> dict[int, BufferLiveRange]:
        """The buffer of each argument of the entry computation by its position."""
        found: dict[int, BufferLiveRange] = {}
        for instruction in self.module.entry.instructions:
            value = self.value((instruction.id, ())) if instruction.opcode == "parameter" else None
            if value is not None:
                found[instruction.parameter_number] = value
        return found

    @cached_property
    def results(self) -> dict[int, BufferLiveRange]:
        """The buffer that each result of the entry computation is returned in, by its position."""
        root = self.module.entry.root_id
        parts = len(self.module.instructions[root].shape.tuple_shapes)
        places: list[ShapeIndex] = [(part,) for part in range(parts)] or [()]
        found = {position: self.value((root, place)) for position, place in enumerate(places)}
        return {position: buffer for position, buffer in found.items() if buffer is not None}

    def uncopied(self, buffer: BufferLiveRange) -> BufferLiveRange:
        """The buffer whose value this one's is a plain copy of; itself where it is none."""
        seen = {buffer.id}
        while (source := self.copied(buffer)) is not None and source.id not in seen:
            seen.add(source.id)
            buffer = source
        return buffer

    def copied(self, buffer: BufferLiveRange) -> BufferLiveRange | None:
        """The buffer that this one's value is a plain copy of, by a copy of its own or inside of a fusion."""
        source = self._copied.get(buffer.id)
        return None if source is None else self.by_id[source]

    def updated_from(self, buffer: BufferLiveRange) -> list[BufferLiveRange]:
        """The values that one is computed from after the forward and backward pass, copies of them seen through."""
        buffer = self.uncopied(buffer)
        maker = self.instruction(buffer)
        if maker.opcode == "while":
            return [self.uncopied(source) for source in self.sources(buffer)]
        if maker.opcode == "fusion":
            operands = self.fusions.operands_after_the_passes(maker, buffer.index)
        else:
            operands = list(maker.operand_ids)
        values = (self.value((operand, ())) for operand in operands)
        return [self.uncopied(value) for value in values if value is not None]

    def carried(self, buffer: BufferLiveRange) -> list[BufferLiveRange]:
        """The buffers that take the value over unchanged: a loop's carry, a branch's result, a copy."""
        return [self.by_id[other] for other in self._carried[buffer.id]]

    def sources(self, buffer: BufferLiveRange) -> list[BufferLiveRange]:
        """The buffers that this one takes its value over from."""
        return [self.by_id[other] for other in self._sources[buffer.id]]

    def copies(self, buffer: BufferLiveRange) -> list[BufferLiveRange]:
        """The plain copies of a value."""
        return [taken for taken in self.carried(buffer) if self._copied.get(taken.id) == buffer.id]

    def made_by(self, instruction: HloInstructionProto) -> list[BufferLiveRange]:
        """The values that an instruction defines."""
        found = (self.value((instruction.id, index)) for index in self.module.parts(instruction.id))
        return [buffer for buffer in found if buffer is not None and buffer.instruction == instruction.name]

    def far_uses(self, buffer: BufferLiveRange) -> tuple[Use, ...]:
        """What reads the value or what takes it over, copies and loop carries left out; by time."""
        known = self._far.get(buffer.id)
        if known is None:
            seen, todo = {buffer.id}, [buffer.id]
            found: list[Use] = []
            while todo:
                at = todo.pop()
                found += [use for use in self.uses[at] if use.instruction.opcode not in COPIES and self.inner(use)]
                new = [other for other in self._carried[at] if other not in seen]
                seen.update(new)
                todo += new
            known = self._far[buffer.id] = tuple(sorted(found, key=lambda use: use.time))
        return known

    def inner(self, use: Use) -> Sequence[HloInstructionProto]:
        """The instructions that really read the value: those inside of a fusion, the use's own otherwise."""
        if use.instruction.opcode not in FUSED:
            return (use.instruction,)
        return self.fusions.readers(use.instruction.called_computation_ids[0]).get(use.operand, ())

    def op_names(self, use: Use) -> list[str]:
        """JAX's names of what really reads the value, the use's own where XLA has dropped those."""
        inner = [reader.metadata.op_name for reader in self.inner(use) if reader.metadata.op_name]
        return inner or [name for name in [use.instruction.metadata.op_name] if name]

    def origin(self, buffer: BufferLiveRange) -> OpMetadata | None:
        """JAX's name and place of a value: of the part of a fusion that makes it, where the fusion has several.

        What a loop carries is named in the loop or before it; what XLA made up takes the name of what it is read for.
        None where neither has one.
        """
        found = self.fusions.origin(self.instruction(buffer), buffer.index)
        seen, todo = {buffer.id}, [buffer.id]
        while found is None and todo:
            for other in self._sources[todo.pop()]:
                if found is None and other not in seen:
                    source = self.by_id[other]
                    found = self.fusions.origin(self.instruction(source), source.index)
                    seen.add(other)
                    todo.append(other)
        return found or self._read_for(buffer)

    def running(self, time: int) -> OpMetadata | None:
        """JAX's name and place of the instruction that runs at a time."""
        instruction = self.module.instructions[self.schedule.order[time]]
        found = self.fusions.origin(instruction, ())
        made = self.made_by(instruction) if found is None else []
        return next((origin for buffer in made if (origin := self.origin(buffer)) is not None), found)

    def _read_for(self, buffer: BufferLiveRange) -> OpMetadata | None:
        seen, todo = {buffer.id}, [buffer]
        for value in todo:
            for use in self.uses[value.id]:
                found = self.fusions.origin(use.instruction, ())
                if found is not None:
                    return found
                new = [made for made in self.made_by(use.instruction) if made.id not in seen]
                seen.update(made.id for made in new)
                todo += new
        return None

    def _enter(self, instruction: HloInstructionProto, time: int) -> None:
        opcode = instruction.opcode
        match opcode:
            case "while":
                self._carry_loop(instruction)
            case "conditional":
                for called in instruction.called_computation_ids:
                    self._carry(self.module.computations[called].root_id, instruction.id)
            case "copy" | "copy-start":
                part = () if opcode == "copy" else (0,)
                self._copy(instruction.operand_ids[0], (instruction.id, part))
            case "fusion":
                for index in self.module.parts(instruction.id):
                    source = self.fusions.copied(instruction, index)
                    if source is not None:
                        self._copy(source, (instruction.id, index))
            case _:
                pass
        runs_inside = opcode == "call" and instruction.called_computation_ids[0] not in self.schedule.spans
        if opcode in _NO_READERS or (opcode == "call" and not runs_inside):
            return
        for number, operand in enumerate(instruction.operand_ids):
            for index in self.module.parts(operand):
                found = self._dataflow.value((operand, index))
                if found is not None:
                    self.uses[found].append(Use(instruction, number, index, time))

    def _carry_loop(self, loop: HloInstructionProto) -> None:
        body, condition = (self.module.computations[called] for called in loop.called_computation_ids)
        inside = [
            next(i.id for i in computation.instructions if i.opcode == "parameter") for computation in (body, condition)
        ]
        for source in (loop.operand_ids[0], body.root_id):
            for target in (*inside, loop.id):
                self._carry(source, target)

    def _carry(self, source: int, target: int) -> None:
        for index in self.module.parts(source):
            self._hand_on((source, index), (target, index))

    def _hand_on(self, source: Position, target: Position) -> tuple[int, int] | None:
        value, taken = self._dataflow.value(source), self._dataflow.value(target)
        if value is None or taken is None or value == taken:
            return None
        self._carried[value].append(taken)
        self._sources[taken].append(value)
        return value, taken

    def _copy(self, source: int, target: Position) -> None:
        handed = self._hand_on((source, ()), target)
        if handed is not None:
            value, taken = handed
            self._copied[taken] = value
