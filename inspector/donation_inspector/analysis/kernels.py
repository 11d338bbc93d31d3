"""What XLA is likely to compute together, and so what reads an argument from memory, and when.

After xla/service/instruction_fusion.cc: elementwise operations and data movement are computed inside those that use
them. What is written to memory is the rest, and what the function returns. A reader of an argument is then a value that
is written, later than the operation in the program that mentions the argument.
"""

from __future__ import annotations

from donation_inspector.analysis import in_place
from donation_inspector.analysis.dataflow import Dataflow, Step, Value
from donation_inspector.analysis.naming import operation_name


class Kernels:
    """A guess at the kernels of one function: each is known by the value that it writes."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self.fusible = [step.op is None or in_place.is_fusible(step.op) for step in flow.steps]
        self._takes_in = [
            fusible or (step.op is not None and operation_name(step.op) == "stablehlo.reduce")
            for step, fusible in zip(flow.steps, self.fusible, strict=True)
        ]

    def is_written(self, value: Value) -> bool:
        """Whether the value, which is no argument, is written to memory."""
        assert value.step is not None
        if value in self._flow.first_positions or not self.fusible[value.step.index]:
            return True
        return not all(self._takes_in[user.index] for user, _ in value.uses)

    def readers(self, argument: Value) -> dict[Value, bool]:
        """The values whose kernels read `argument`, and whether each goes along the argument's index alone."""
        found: dict[Value, bool] = {}
        seen: set[tuple[Value, bool]] = set()
        pending = [(argument, True)]
        while pending:
            value, along = pending.pop()
            for step, operand in value.uses:
                for result in step.results or [Value(value.type, step, 0)]:
                    if _carries_another(step, operand, result):
                        continue
                    goes_along = along and step.goes_along(operand, result.number)
                    if self.is_written(result):
                        found[result] = goes_along and found.get(result, True)
                    elif (result, goes_along) not in seen:
                        seen.add((result, goes_along))
                        pending.append((result, goes_along))
        return found


def _carries_another(step: Step, operand: int, result: Value) -> bool:
    """Whether a loop carries the operand as another one of its results than this."""
    is_loop = step.op is not None and operation_name(step.op) == "stablehlo.while"
    return is_loop and operand < len(step.results) and operand != result.number
