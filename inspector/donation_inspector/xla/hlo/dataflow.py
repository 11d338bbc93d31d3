"""Which logical buffer's value stands at each part of each instruction's result.

XLA's HloDataflowAnalysis in SSA form (xla/hlo/analysis/hlo_dataflow_analysis.cc). The buffer assignment says where each
value is defined, phis included, so that a part that defines none takes the one value that flows into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from donation_inspector.xla.hlo.module import Module, Position, ShapeIndex
from donation_inspector.xla.hlo.proto import HloInstructionProto

_PASS_THROUGH = frozenset({"bitcast", "opt-barrier", "domain", "add-dependency", "all-reduce-done", "async-update"})


class Dataflow:
    """`defined` maps the part of an instruction that defines a value to the value's logical buffer."""

    def __init__(self, module: Module, defined: Mapping[Position, int]) -> None:
        self._module = module
        self._values: dict[Position, int | None] = dict(defined)

    def value(self, position: Position) -> int | None:
        """The logical buffer whose value stands there; None where XLA keeps no buffer."""
        # in order, each once: XLA's own dataflow never comes back to where it was
        way: dict[Position, None] = {}
        at: Position | None = position
        while at is not None and at not in self._values and at not in way:
            way[at] = None
            at = self._forwarded(*at)
        found = None if at is None else self._values.get(at)
        for passed in way:
            self._values[passed] = found
        return found

    def _forwarded(self, identifier: int, index: ShapeIndex) -> Position | None:
        """Where the value at a part that defines none comes from: one step back."""
        instruction = self._module.instructions[identifier]
        operands = instruction.operand_ids
        match instruction.opcode:
            case opcode if opcode in _PASS_THROUGH:
                return operands[0], index
            case "copy" | "recv-done" if index:
                return operands[0], index
            case "tuple" if index:
                return operands[index[0]], index[1:]
            case "get-tuple-element":
                return operands[0], (instruction.tuple_index, *index)
            case "copy-start" if index[:1] == (1,):
                return operands[0], index[1:]
            case "copy-done":
                return operands[0], (0, *index)
            case "send" if index[:1] == (0,):
                return operands[0], index[1:]
            case "all-gather-start" | "collective-permute-start" if index[:1] == (0,):
                # several operands come as a tuple of their own
                return (operands[0], index[1:]) if len(operands) == 1 else _element(operands, index[1:])
            case "all-gather-done" | "collective-permute-done" | "async-done":
                return operands[0], (1, *index)
            case "async-start" if index[:1] == (0,):
                return _element(operands, index[1:])
            case "async-start" if index[:1] == (1,):
                return self._root(instruction), index[1:]
            case "call" | "conditional":
                # where a conditional defines no phi all branches return the same value
                return self._root(instruction), index
            case "while":
                # where a while defines no phi its body hands on what it got
                return operands[0], index
            case "parameter":
                return self._argument(instruction, index)
            case _:
                return None

    def _root(self, caller: HloInstructionProto) -> int:
        return self._module.computations[caller.called_computation_ids[0]].root_id

    def _argument(self, parameter: HloInstructionProto, index: ShapeIndex) -> Position | None:
        """What the caller passes; XLA has flattened the call graph, so that there is one."""
        computation = self._module.computation_of[parameter.id]
        for caller in self._module.callers[computation]:
            operands = caller.operand_ids
            match caller.opcode:
                case "while":
                    return operands[0], index
                case "conditional":
                    return operands[1 + list(caller.called_computation_ids).index(computation)], index
                case "call" | "async-start":
                    return operands[parameter.parameter_number], index
                case _:
                    pass
        return None


def _element(operands: Sequence[int], index: ShapeIndex) -> Position | None:
    """The part of one of several operands that a tuple of them all holds at `index`."""
    return (operands[index[0]], index[1:]) if index else None
