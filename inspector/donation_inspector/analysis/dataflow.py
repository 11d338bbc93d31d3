"""What depends on what in one function, with the functions that it calls and the branches that it takes laid open.

XLA inlines every call before it decides which buffers to share, so a call is its callee's body here, each call a copy
of its own. A branch (`case`, `if`) is the operations of all its regions and a choice between their results. A loop is
one step: what it carries unchanged passes by it, and what its regions capture counts as read by it. What nothing needs
is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from donation_inspector.analysis import in_place
from donation_inspector.analysis.naming import operation_name

_BRANCHES = frozenset({"stablehlo.case", "stablehlo.if", "scf.if"})
_BODIES = frozenset({"sdy.manual_computation", "sdy.named_computation"})


@dataclass(eq=False, slots=True)
class Value:
    """A value: what makes it (None for the function's arguments), and each use of it, as (step, number of operand)."""

    type: Attribute
    step: Step | None
    number: int
    uses: list[tuple[Step, int]] = field(default_factory=list[tuple["Step", int]])


@dataclass(eq=False, slots=True)
class Step:
    """One operation of the opened function. `index` is its place in program order; its captured values come last in
    `operands`. A choice between the results of branches has no `op`: the first operand is what it decides by. `around`
    are the calls, bodies and branches that it was in, the outermost first and its own operation last."""

    index: int
    op: Operation | None
    operands: list[Value]
    results: list[Value]
    has_effects: bool
    around: tuple[Operation, ...]

    def writes_over(self, operand: int, result: int) -> bool:
        """Whether a result may be written into the buffer of an operand while that is read; see `in_place`."""
        return operand > 0 if self.op is None else in_place.writes_over(self.op, operand, result)

    def goes_along(self, operand: int, result: int) -> bool:
        """Whether an element of the result needs one of the operand at the same index alone; see `in_place`."""
        return operand > 0 if self.op is None else in_place.goes_along(self.op, operand, result)


class Dataflow:
    """The opened body of `func`, which has one block that ends in `func.return`.

    `arguments` and `returned` are the function's, by position; `steps` are in program order.
    """

    def __init__(self, func: FuncOp) -> None:
        module = func.parent_op()
        functions = [op for op in module.ops if isinstance(op, FuncOp)] if isinstance(module, ModuleOp) else []
        self._functions: Mapping[str, FuncOp] = {function.sym_name.data: function for function in functions}
        self._opening = {func}
        self._around: tuple[Operation, ...] = ()
        self.steps: list[Step] = []
        block = func.body.block
        self.arguments: tuple[Value, ...] = tuple(
            Value(argument.type, None, position) for position, argument in enumerate(block.args)
        )
        self.returned: tuple[Value, ...] = tuple(self._open(block, dict(zip(block.args, self.arguments, strict=True))))
        self._drop_unused()

    @cached_property
    def first_positions(self) -> Mapping[Value, int]:
        """The result position of each returned value; the first, where it is returned at several."""
        return {value: position for position, value in reversed(tuple(enumerate(self.returned)))}

    @cached_property
    def made(self) -> list[int]:
        """For each step, the results (a bit a position) that it makes."""
        made = [0] * len(self.steps)
        for value, position in self.first_positions.items():
            if value.step is not None:
                made[value.step.index] |= 1 << position
        return made

    @cached_property
    def needs(self) -> list[int]:
        """For each step, the results (a bit a position) that must be there before it runs."""
        needs = [0] * len(self.steps)
        after_effects = 0
        for step in self.steps:
            bits = 0
            for operand in step.operands:
                if operand.step is not None:
                    bits |= needs[operand.step.index] | self.made[operand.step.index]
            if step.has_effects:
                bits |= after_effects
                after_effects = bits | self.made[step.index]
            needs[step.index] = bits
        return needs

    @cached_property
    def leads_to(self) -> list[int]:
        """For each step, the results (a bit a position) that cannot be made before it has run."""
        leads_to = [0] * len(self.steps)
        before_effects = 0
        for step in reversed(self.steps):
            bits = before_effects if step.has_effects else 0
            for result in step.results:
                for user, _ in result.uses:
                    bits |= leads_to[user.index] | self.made[user.index]
            leads_to[step.index] = bits
            if step.has_effects:
                before_effects = bits | self.made[step.index]
        return leads_to

    def _open(self, block: Block, known: dict[SSAValue, Value]) -> list[Value]:
        """Adds the block's operations; the operands of its terminator."""
        for op in block.ops:
            if op is block.last_op and (isinstance(op, ReturnOp) or not op.results):
                return [known[operand] for operand in op.operands]
            self._add(op, known)
        return []

    def _add(self, op: Operation, known: dict[SSAValue, Value]) -> None:
        operands = [known[operand] for operand in op.operands]
        name = operation_name(op)
        outside, self._around = self._around, (*self._around, op)
        self._lay_open(op, name, operands, known)
        self._around = outside

    def _lay_open(self, op: Operation, name: str, operands: list[Value], known: dict[SSAValue, Value]) -> None:
        if (callee := self._to_open(op)) is not None:
            self._opening.add(callee)
            self._results(op, self._body(callee.body.block, operands, {}), known)
            self._opening.remove(callee)
        elif name in _BODIES and _is_body(op):
            self._results(op, self._body(op.regions[0].block, operands, known), known)
        elif name in _BRANCHES and all(len(region.blocks) == 1 for region in op.regions):
            branches = [self._open(region.block, known) for region in op.regions]
            chosen = [
                self._step(None, [operands[0], *(branch[number] for branch in branches)], [result.type])[0]
                for number, result in enumerate(op.results)
            ]
            self._results(op, chosen, known)
        else:
            unchanged = _unchanged(op) if name == "stablehlo.while" else []
            if op.regions:
                operands += [*_captured(op.regions, known), *(operands[number] for number in unchanged)]
            results = self._step(op, operands, [result.type for result in op.results])
            for number in unchanged:
                results[number] = operands[number]
            self._results(op, results, known)

    def callee(self, op: Operation) -> FuncOp | None:
        """The function that an operation calls, as far as it is defined; None for what is no call."""
        # asked of every operation: a name is compared sooner than a class
        return self._functions.get(cast(CallOp, op).callee.string_value()) if op.name == CallOp.name else None

    def _to_open(self, op: Operation) -> FuncOp | None:
        """The function to open; None for one that is only declared, has several blocks, or is being opened."""
        callee = self.callee(op)
        return None if callee is None or callee in self._opening or len(callee.body.blocks) != 1 else callee

    def _body(self, block: Block, operands: Sequence[Value], known: dict[SSAValue, Value]) -> list[Value]:
        # a body is laid open once for each `known`, whose values are no one else's: there is nothing to keep apart
        known.update(zip(block.args, operands, strict=True))
        return self._open(block, known)

    def _results(self, op: Operation, values: Sequence[Value], known: dict[SSAValue, Value]) -> None:
        known.update(zip(op.results, values, strict=True))

    def _step(self, op: Operation | None, operands: list[Value], types: Sequence[Attribute]) -> list[Value]:
        step = Step(len(self.steps), op, operands, [], op is not None and in_place.has_effects(op), self._around)
        step.results += [Value(type_, step, number) for number, type_ in enumerate(types)]
        for number, operand in enumerate(operands):
            operand.uses.append((step, number))
        self.steps.append(step)
        return list(step.results)

    def _drop_unused(self) -> None:
        wanted = {value.step for value in self.returned} | {step for step in self.steps if step.has_effects}
        pending = list(wanted)
        while pending:
            step = pending.pop()
            for operand in () if step is None else step.operands:
                if operand.step not in wanted:
                    wanted.add(operand.step)
                    pending.append(operand.step)
        for operand in dict.fromkeys(operand for step in self.steps for operand in step.operands):
            operand.uses[:] = [use for use in operand.uses if use[0] in wanted]
        self.steps = [step for step in self.steps if step in wanted]
        for index, step in enumerate(self.steps):
            step.index = index


def _is_body(op: Operation) -> bool:
    (region,) = op.regions if len(op.regions) == 1 else (None,)
    return region is not None and len(region.blocks) == 1 and len(region.block.args) == len(op.operands)


def _unchanged(op: Operation) -> list[int]:
    """The numbers of the values that a loop carries and never changes."""
    if any(len(region.blocks) != 1 for region in op.regions):
        return []
    body = op.regions[-1].block
    if body.last_op is None:
        return []
    return [n for n, (mine, next_) in enumerate(zip(body.args, body.last_op.operands, strict=False)) if mine is next_]


def _captured(regions: Sequence[Region], known: Mapping[SSAValue, Value]) -> list[Value]:
    captured = {
        known[operand]: None
        for region in regions
        for op in region.walk()
        for operand in op.operands
        if operand in known
    }
    return list(captured)
