"""How much it costs that a result takes over an argument's buffer: do their live ranges interfere?

The buffer is free once everything that reads the argument has run. In which order things run is for the compiler to
say, as far as dataflow leaves it free; what it cannot bring into order it copies. `Level` ranks what can be said of a
pair without compiling it.

What is certain is read off the program; the rest off the kernels that XLA is likely to make of it (`kernels`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from donation_inspector.analysis.dataflow import Dataflow, Step, Value
from donation_inspector.analysis.kernels import Kernels


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
        self._dependents: dict[tuple[int, bool], frozenset[Value]] = {}

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(self._flow)

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
        return self._written(self._readers_of(argument), value, 1 << result)

    def _readers_of(self, argument: int) -> _Readers:
        readers = self._readers.get(argument)
        if readers is None:
            readers = self._readers[argument] = self._read(self._flow.arguments[argument])
        return readers

    def depends(self, argument: int, result: int, *, along: bool = False) -> bool:
        """Whether the result is the argument or made from it, by however many kernels; `along`: on some way element by
        element."""
        if (argument, along) not in self._dependents:
            self._dependents[argument, along] = self._made_from(self._flow.arguments[argument], along)
        return self._flow.returned[result] in self._dependents[argument, along]

    def _made_from(self, value: Value, along: bool) -> frozenset[Value]:
        found, pending = {value}, [value]
        while pending:
            for step, operand in pending.pop().uses:
                for made in step.results:
                    if made not in found and (not along or step.goes_along(operand, made.number)):
                        found.add(made)
                        pending.append(made)
        return frozenset(found)

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
        along = readers.along.get(value)
        if along is False:
            return Level.MIXED
        last = next((kernel for kernel in readers.kernels if not kernel.before & bit), None)
        if last is None:
            others = len(readers.kernels) > (along is not None)
            return Level.ORDERED if others else Level.IN_PLACE
        made = _step(value).index
        if not self._depends_on_arguments[made]:
            return Level.LAST
        if along:
            if not self._kernels.fusible[made]:
                return Level.UPDATED
            if all(kernel.before & bit or kernel.joins for kernel in readers.kernels):
                return Level.TOGETHER
        return Level.AFTER if last.at > made else Level.BEFORE

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
        along = self._kernels.readers(argument)
        kernels: list[_Kernel] = []
        for value, goes_along in along.items():
            step = _step(value)
            fused |= flow.needs[step.index]
            for result in step.results:
                if result is not value:
                    fused |= self._bit(result)
            before = flow.leads_to[step.index] | self._bit(value)
            kernels.append(_Kernel(step.index, before, goes_along and self._kernels.fusible[step.index]))
        return _Readers(copied, fused, along, tuple(sorted(kernels, reverse=True)))

    def _bit(self, value: Value) -> int:
        position = self._flow.first_positions.get(value)
        return 0 if position is None else 1 << position


class _Kernel(NamedTuple):
    """One that reads an argument: its step's index, the results (a bit a position) that it makes or that come after it,
    and whether it may be one with another that goes along the same index."""

    at: int
    before: int
    joins: bool


@dataclass(frozen=True, slots=True)
class _Readers:
    """Of one argument: the results (a bit a position) that meet it for certain and as XLA fuses, the values that the
    kernels which read it write, and those kernels, the last in the program first."""

    copied: int
    fused: int
    along: Mapping[Value, bool]
    kernels: Sequence[_Kernel]


def _step(value: Value) -> Step:
    assert value.step is not None
    return value.step
