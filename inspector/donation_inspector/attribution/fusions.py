"""What is inside of fusions: who reads a parameter there, where a part of the result comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from donation_inspector.attribution.phase import Phase, phase
from donation_inspector.xla.hlo.module import Module, ShapeIndex
from donation_inspector.xla.hlo.proto import HloInstructionProto, OpMetadata

FUSED = frozenset({"fusion", "call"})
"""What runs its computation as one instruction of the schedule."""

_SHAPES_ALONE = frozenset({"bitcast", "copy", "transpose", "reshape", "convert", "get-tuple-element"})

_DEEPEST = 32
"""How far an unnamed value is followed."""


class Fusions:
    """The fused computations of a module, each looked into once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._readers: dict[int, Mapping[int, Sequence[HloInstructionProto]]] = {}
        self._phases: dict[int, frozenset[Phase]] = {}

    def operands_after_the_passes(self, fusion: HloInstructionProto, index: ShapeIndex) -> list[int]:
        """The operands that a part of the result is computed from, other than in the forward or backward pass."""
        root = self._module.instructions[self._module.computations[fusion.called_computation_ids[0]].root_id]
        todo = [root.operand_ids[index[0]] if index and root.opcode == "tuple" else root.id]
        seen = set(todo)
        operands: list[int] = []
        while todo:
            instruction = self._module.instructions[todo.pop()]
            if instruction.opcode == "parameter":
                operands.append(fusion.operand_ids[instruction.parameter_number])
            elif phase(instruction.metadata.op_name) is Phase.OUTSIDE:
                new = [operand for operand in instruction.operand_ids if operand not in seen]
                seen.update(new)
                todo += new
        return operands

    def readers(self, computation: int) -> Mapping[int, Sequence[HloInstructionProto]]:
        """For each parameter of a fusion's computation what reads it there."""
        known = self._readers.get(computation)
        if known is not None:
            return known
        names: dict[int, int] = {}
        readers: defaultdict[int, list[HloInstructionProto]] = defaultdict(list)
        for instruction in self._module.computations[computation].instructions:
            if instruction.opcode == "parameter":
                names[instruction.id] = instruction.parameter_number
            for number, operand in enumerate(instruction.operand_ids):
                parameter = names.get(operand)
                if parameter is None:
                    continue
                is_named_anew = instruction.opcode in ("bitcast", "get-tuple-element", "copy")
                if is_named_anew or (instruction.opcode in FUSED and self._hands_on(instruction) == number):
                    names[instruction.id] = parameter
                elif instruction.opcode in FUSED:
                    readers[parameter] += self.readers(instruction.called_computation_ids[0]).get(number, ())
                elif instruction.opcode != "tuple":
                    readers[parameter].append(instruction)
        self._readers[computation] = readers
        return readers

    def phases(self, instruction: HloInstructionProto) -> frozenset[Phase]:
        """The phases of all that an instruction computes, the inside of a fusion included."""
        known = self._phases.get(instruction.id)
        if known is None:
            found = {phase(instruction.metadata.op_name)} if instruction.metadata.op_name else set[Phase]()
            if instruction.opcode in FUSED:
                for inner in self._module.computations[instruction.called_computation_ids[0]].instructions:
                    found |= self.phases(inner)
            known = self._phases[instruction.id] = frozenset(found)
        return known

    def reorders(self, fusion: HloInstructionProto, operand: int) -> bool:
        """Whether an instruction reads an operand in another order of its elements than it lies in memory."""
        if fusion.opcode != "fusion":
            return False
        computation = self._module.computations[fusion.called_computation_ids[0]]
        parameters = {
            i.id for i in computation.instructions if i.opcode == "parameter" and i.parameter_number == operand
        }
        return any(
            i.opcode in ("copy", "transpose") and not parameters.isdisjoint(i.operand_ids)
            for i in computation.instructions
        )

    def copied(self, fusion: HloInstructionProto, index: ShapeIndex) -> int | None:
        """The operand that a part of a fusion's result is nothing but a copy of."""
        at = self._module.instructions[self._module.computations[fusion.called_computation_ids[0]].root_id]
        if index and at.opcode == "tuple":
            at = self._module.instructions[at.operand_ids[index[0]]]
        parameter, is_copy = self._seen_through(at)
        return fusion.operand_ids[parameter] if is_copy and parameter is not None else None

    def _hands_on(self, fusion: HloInstructionProto) -> int | None:
        """The parameter that a fusion inside of a fusion only names anew or copies."""
        root = self._module.computations[fusion.called_computation_ids[0]].root_id
        return self._seen_through(self._module.instructions[root])[0]

    def _seen_through(self, at: HloInstructionProto) -> tuple[int | None, bool]:
        """The parameter that a value is, seen through bitcasts and copies, and whether one was a copy."""
        is_copy = False
        while at.opcode in ("copy", "bitcast"):
            is_copy = is_copy or at.opcode == "copy"
            at = self._module.instructions[at.operand_ids[0]]
        return (at.parameter_number if at.opcode == "parameter" else None), is_copy

    def origin(self, instruction: HloInstructionProto, index: ShapeIndex, depth: int = 0) -> OpMetadata | None:
        """JAX's name and place of a part of an instruction's result; None where nothing there has a name."""
        if depth > _DEEPEST:
            return None
        inner = None
        if instruction.opcode in FUSED and instruction.called_computation_ids:
            root = self._module.instructions[self._module.computations[instruction.called_computation_ids[0]].root_id]
            inner = self.origin(root, index, depth + 1)
            if index and inner is not None:
                return inner
        elif instruction.opcode == "tuple" and index:
            return self.origin(self._module.instructions[instruction.operand_ids[index[0]]], index[1:], depth + 1)
        if instruction.metadata.op_name and instruction.opcode != "parameter":
            return instruction.metadata
        if inner is None and instruction.opcode in _SHAPES_ALONE:
            return self.origin(self._module.instructions[instruction.operand_ids[0]], (), depth + 1)
        return inner
