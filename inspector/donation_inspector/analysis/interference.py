"""How much it costs that a result takes over an argument's buffer: do their live ranges interfere?

The buffer is free once everything that reads the argument has run. In which order things run is for the compiler to
say, as far as dataflow leaves it free; what it cannot bring into order it copies. `Level` ranks what can be said of a
pair without compiling it.

A reader is what stands in the program (for what is certain), and what XLA is likely to make of it: elementwise and data
movement vanish into the operation that uses them, which then is what reads the argument, later than the program says.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property

from donation_inspector.analysis.dataflow import Dataflow, Step, Value
from donation_inspector.analysis.naming import operation_name


class Level(IntEnum):
    """From free of charge to a certain copy.

    IN_PLACE: the argument itself, one that nothing reads, or written by its only reader while that reads it.
    ORDERED: each other reader runs before the result is made, because that depends on it.
    LAST: nothing orders them, but the result can be made at the very end: it depends on no argument, or is a copy.
    UPDATED: the result is the argument changed in place by a loop or an update, which copies it first for anyone else.
    TOGETHER: the readers and what makes the result go along one index, and may run in one kernel.
    BEFORE: nothing orders them; in the program the last reader comes first.
    AFTER: nothing orders them; in the program a reader comes after the result.
    MIXED: what makes the result reads the argument at another index, unless in a step of its own before.
    FUSED: another reader needs the result, unless it reads the argument in a step of its own before.
    COPIED: a reader needs the result, or reads the argument while the result is written: both are live at once.
    """

    IN_PLACE = 0
    ORDERED = 1
    LAST = 2
    UPDATED = 3
    TOGETHER = 4
    BEFORE = 5
    AFTER = 6
    MIXED = 7
    FUSED = 8
    COPIED = 9


class Interference:
    """The `Level` of every pair of an argument and a result of one function, both by position."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._readers: dict[int, _Readers] = {}
        self._levels: dict[tuple[int, int], Level] = {}
        self._fusible = [step.fusible for step in flow.steps]

    def level(self, argument: int, result: int) -> Level:
        """What it costs at most that the result takes over the argument's buffer."""
        known = self._levels.get((argument, result))
        if known is None:
            known = self._levels[argument, result] = self._level(argument, result)
        return known

    def _level(self, argument: int, result: int) -> Level:
        flow = self._flow
        value, taken = flow.returned[result], flow.arguments[argument]
        if value is taken:
            return Level.IN_PLACE
        if taken in flow.first_positions:
            return Level.COPIED
        if not taken.uses:
            return Level.IN_PLACE
        if value.step is None or flow.first_positions[value] != result:
            return Level.LAST
        readers = self._readers.get(argument)
        if readers is None:
            readers = self._readers[argument] = self._read(taken)
        return self._written(readers, value, 1 << result)

    def blocked_by(self, argument: int, result: int) -> int:
        """The results (a bit a position) that must be made before `result` can take over the argument's buffer, beyond
        what `result` itself depends on: a reader of the argument that nothing orders waits for them."""
        flow = self._flow
        value = flow.returned[result]
        if value.step is None or flow.first_positions[value] != result:
            return 0
        blocked_by = 0
        for step in {step.index: step for step, _ in flow.arguments[argument].uses}.values():
            if step is not value.step and not flow.leads_to[step.index] >> result & 1:
                blocked_by |= flow.needs[step.index] | flow.made[step.index]
        return blocked_by

    def _written(self, readers: _Readers, value: Value, bit: int) -> Level:
        if readers.copied & bit:
            return Level.COPIED
        if readers.fused & bit:
            return Level.FUSED
        if readers.values.get(value) is False:
            return Level.MIXED
        assert value.step is not None
        unordered = [m for m in readers.values if m is not value and not readers.leads_to[m] & bit]
        if not unordered:
            others = any(m is not value for m in readers.values)
            return Level.ORDERED if others else Level.IN_PLACE
        if not self._depends_on_arguments[value.step.index]:
            return Level.LAST
        if readers.values.get(value):
            if not self._fusible[value.step.index]:
                return Level.UPDATED
            if all(readers.values[m] and self._fusible[_step(m).index] for m in unordered):
                return Level.TOGETHER
        last = max(_step(m).index for m in unordered)
        return Level.AFTER if last > value.step.index else Level.BEFORE

    @cached_property
    def _depends_on_arguments(self) -> list[bool]:
        depends = [False] * len(self._flow.steps)
        for step in self._flow.steps:
            depends[step.index] = any(operand.step is None or depends[operand.step.index] for operand in step.operands)
        return depends

    def _read(self, argument: Value) -> _Readers:
        flow = self._flow
        copied = fused = 0
        for step, operand in argument.uses:
            copied |= flow.needs[step.index]
            for result in step.results:
                if not step.writes_over(operand, result.number):
                    copied |= self._bit(result)
        values = self._kernels(argument)
        for value in values:
            step = _step(value)
            fused |= flow.needs[step.index]
            for result in step.results:
                if result is not value:
                    fused |= self._bit(result)
        leads_to = {value: flow.leads_to[_step(value).index] for value in values}
        return _Readers(copied, fused, values, leads_to)

    def _bit(self, value: Value) -> int:
        position = self._flow.first_positions.get(value)
        return 0 if position is None else 1 << position

    def _kernels(self, argument: Value) -> dict[Value, bool]:
        """The values written to memory by what reads `argument`, and whether each goes along the argument's index."""
        found: dict[Value, bool] = {}
        seen: set[tuple[Value, bool]] = set()
        pending = [(argument, True)]
        while pending:
            value, aligned = pending.pop()
            for step, operand in value.uses:
                carried = operation_name(step.op) == "stablehlo.while" if step.op is not None else False
                for result in step.results or [Value(value.type, step, 0)]:
                    if carried and operand < len(step.results) and operand != result.number:
                        continue
                    along = aligned and step.goes_along(operand, result.number)
                    if self._is_written(result):
                        found[result] = along and found.get(result, True)
                    elif (result, along) not in seen:
                        seen.add((result, along))
                        pending.append((result, along))
        return found

    def _is_written(self, value: Value) -> bool:
        """Whether XLA is likely to write the value to memory: it vanishes into users that can all compute it."""
        if value in self._flow.first_positions or not self._fusible[_step(value).index]:
            return True
        return any(
            not self._fusible[user.index]
            and not (user.op is not None and operation_name(user.op) == "stablehlo.reduce")
            for user, _ in value.uses
        )


class _Readers:
    """Of one argument: the results (a bit a position) that meet it for certain and as XLA fuses, and its readers."""

    __slots__ = ("copied", "fused", "leads_to", "values")

    def __init__(self, copied: int, fused: int, values: dict[Value, bool], leads_to: dict[Value, int]) -> None:
        self.copied, self.fused, self.values, self.leads_to = copied, fused, values, leads_to


def _step(value: Value) -> Step:
    assert value.step is not None
    return value.step
