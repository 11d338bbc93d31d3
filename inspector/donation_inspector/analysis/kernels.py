"""What XLA is likely to compute together, and so what reads an argument from memory, and when.

After xla/service/instruction_fusion.cc: elementwise operations and data movement are computed inside those that use
them, anew in each if that is cheap. What is written to memory is the rest, and what the function returns. A reader of
an argument is then a value that is written, later than the operation in the program that mentions the argument, and it
may wait for less: a cheap result is computed anew, not read.
"""

from __future__ import annotations

from functools import cached_property

from donation_inspector.analysis import in_place
from donation_inspector.analysis.dataflow import Dataflow, Step, Value
from donation_inspector.analysis.naming import operation_name


class Kernels:
    """A guess at the kernels of one function: each is known by the value that it writes."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self.fusible = [step.op is None or in_place.is_fusible(step.op) for step in flow.steps]
        self._cheap = [
            fusible and not (step.op is not None and in_place.is_expensive(step.op))
            for step, fusible in zip(flow.steps, self.fusible, strict=True)
        ]
        self._takes_in = [
            fusible or (step.op is not None and operation_name(step.op) == "stablehlo.reduce")
            for step, fusible in zip(flow.steps, self.fusible, strict=True)
        ]

    def is_computed_in(self, value: Value, user: Step) -> bool:
        """Whether `user` computes the value itself instead of reading it from memory."""
        if value.step is None or not self.fusible[value.step.index] or not self._takes_in[user.index]:
            return False
        only_use = len(value.uses) == 1 and value not in self._flow.first_positions
        return only_use or self._cheap[value.step.index]

    def is_written(self, value: Value) -> bool:
        """Whether the value, which is no argument, is written to memory."""
        assert value.step is not None
        if value in self._flow.first_positions or not self.fusible[value.step.index]:
            return True
        return any(not self.is_computed_in(value, user) for user, _ in value.uses)

    def readers(self, argument: Value) -> dict[Value, bool]:
        """The values whose kernels read `argument`, and whether each goes along the argument's index alone."""
        found: dict[Value, bool] = {}
        seen: set[tuple[Value, bool]] = set()
        pending = [(argument, True)]
        while pending:
            value, along = pending.pop()
            for step, operand in value.uses:
                if value is not argument and not self.is_computed_in(value, step):
                    continue
                for result in step.results or [Value(value.type, step, 0)]:
                    if _carries_another(step, operand, result):
                        continue
                    goes_along = along and step.goes_along(operand, result.number)
                    if self.is_written(result):
                        found[result] = goes_along and found.get(result, True)
                    if (result, goes_along) not in seen:
                        seen.add((result, goes_along))
                        pending.append((result, goes_along))
        return found

    @cached_property
    def needs(self) -> list[int]:
        """For each step, the results (a bit a position) that are written before its kernel runs."""
        flow = self._flow
        needs = [0] * len(flow.steps)
        for step in flow.steps:
            bits = flow.needs[step.index] if step.has_effects else 0
            for operand in step.operands:
                if operand.step is not None:
                    bits |= needs[operand.step.index]
                    if not self.is_computed_in(operand, step):
                        bits |= flow.made[operand.step.index]
            needs[step.index] = bits
        return needs

    def leads_to(self, value: Value) -> int:
        """The results (a bit a position) whose kernels run after the one that writes `value`."""
        flow = self._flow
        assert value.step is not None
        bits = flow.leads_to[value.step.index] if value.step.has_effects else 0
        for user, _ in value.uses:
            if not self.is_computed_in(value, user):
                bits |= flow.leads_to[user.index] | flow.made[user.index]
        return bits


def _carries_another(step: Step, operand: int, result: Value) -> bool:
    """Whether a loop carries the operand as another one of its results than this."""
    is_loop = step.op is not None and operation_name(step.op) == "stablehlo.while"
    return is_loop and operand < len(step.results) and operand != result.number
