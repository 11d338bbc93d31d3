"""Whether a result is an argument's own new value, as `x - f(x)` is, or something of its type, as `grad f(x)` is.

What JAX's differentiation made says so in its name stack (`jvp(…)`, `transpose(…)`): a tangent or cotangent is a value
of another kind at the same point, and whoever asked for it goes on with the point. A result is a successor where some
way leads to it from the argument that no such operation is on. The shorter the way, element by element, the more
plainly: `u + dt * (f(u) + g)` is the new `u`, and not the new `g`.
"""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Iterator
from functools import cached_property

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from donation_inspector.analysis.dataflow import Dataflow, Step, Value
from donation_inspector.analysis.naming import operation_name
from donation_inspector.ir.location import name

_DIFFERENTIATION = re.compile(r"(?:^|[/(])(?:jvp|transpose|vjp|linearize)\(")
_LOOPS = frozenset({"stablehlo.while", "scf.while", "scf.for"})
_KEEPS = re.compile(
    r"(?:stablehlo|arith|chlo|mhlo)\.(?:add|addf|addi|subtract|subf|subi|select|convert|clamp|maximum|minimum"
    r"|dynamic_update_slice|scatter|while|reshape|bitcast_convert|optimization_barrier)"
)
"""What leaves an operand as it is, but for something that is added, bounded or put into it."""


class Successors:
    """Which results of one function may be the new values of which arguments, both by position."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow
        self._ways: dict[int, dict[Value, int]] = {}
        self._derivatives: dict[int, bool] = {}

    def may_follow(self, argument: int, result: int) -> bool:
        """Whether the result is the argument, or made from it on a way that no differentiation is on."""
        return bool(self._reached[self._flow.returned[result]] >> argument & 1)

    def is_derivative(self, argument: int, result: int) -> bool:
        """Whether all that the result has of the argument has gone through differentiation."""
        value = self._flow.returned[result]
        return bool(self._depends[value] >> argument & 1) and not self.may_follow(argument, result)

    def followed_by(self, result: int, *, along: bool = False) -> int:
        """The arguments (a bit a position) that the result may follow; `along`: on some way element by element."""
        return (self._along if along else self._reached)[self._flow.returned[result]]

    def distance(self, argument: int, result: int) -> float:
        """How many operations that change more than they add are between them, element by element, on the shortest way.

        Infinite where no such way leads to the result.
        """
        if argument not in self._ways:
            self._ways[argument] = self._distances(self._flow.arguments[argument])
        return self._ways[argument].get(self._flow.returned[result], math.inf)

    @cached_property
    def _depends(self) -> dict[Value, int]:
        """The arguments (a bit a position) that each value is made from."""
        return self._spread(through_differentiation=True)

    @cached_property
    def _reached(self) -> dict[Value, int]:
        """The arguments (a bit a position) that each value is made from without differentiation."""
        return self._spread(through_differentiation=False)

    @cached_property
    def _along(self) -> dict[Value, int]:
        """The arguments (a bit a position) that each value is made from element by element."""
        found = {argument: 1 << position for position, argument in enumerate(self._flow.arguments)}
        for step in self._flow.steps:
            follows = step not in self._differentiated
            for result in step.results:
                bits = 0
                for number, operand in enumerate(step.operands):
                    if follows and step.goes_along(number, result.number):
                        bits |= found[operand]
                found[result] = bits
        return found

    def _spread(self, *, through_differentiation: bool) -> dict[Value, int]:
        found = {argument: 1 << position for position, argument in enumerate(self._flow.arguments)}
        for step in self._flow.steps:
            bits = 0
            if through_differentiation or step not in self._differentiated:
                for operand in step.operands:
                    bits |= found[operand]
            inner = not through_differentiation and step in self._differentiating_loops
            for result in step.results:
                # what a loop that differentiates gives is what it carried there, and not what its body reads
                found[result] = found[step.operands[result.number]] if inner else bits
        return found

    @cached_property
    def _differentiated(self) -> frozenset[Step]:
        return frozenset(step for step in self._flow.steps if any(map(self._is_derivative, step.around)))

    @cached_property
    def _differentiating_loops(self) -> frozenset[Step]:
        """The loops in whose bodies something is differentiated."""
        return frozenset(
            step
            for step in self._flow.steps
            if step.op is not None
            and operation_name(step.op) in _LOOPS
            and len(step.operands) >= len(step.results)
            and any(map(self._is_derivative, self._inside(step.op)))
        )

    def _inside(self, op: Operation) -> Iterator[Operation]:
        """The operations that run in it, those of the functions that it calls among them."""
        seen: set[FuncOp] = set()
        pending = [op]
        while pending:
            for nested in (one for region in pending.pop().regions for one in region.walk()):
                yield nested
                callee = self._flow.callee(nested)
                if callee is not None and callee not in seen:
                    seen.add(callee)
                    pending.append(callee)

    def _is_derivative(self, op: Operation) -> bool:
        # by identity: a few hundred locations stand for all operations, which live as long as the dataflow
        known = self._derivatives.get(id(op.location))
        if known is None:
            known = _DIFFERENTIATION.search(name(op.location) or "") is not None
            self._derivatives[id(op.location)] = known
        return known

    def _distances(self, start: Value) -> dict[Value, int]:
        found: dict[Value, int] = {}
        pending = [(0, 0, start)]
        pushed = 0
        while pending:
            far, _, value = heapq.heappop(pending)
            if value in found:
                continue
            found[value] = far
            for step, operand in value.uses:
                if step in self._differentiated:
                    continue
                keeps = step.op is None or _KEEPS.fullmatch(operation_name(step.op))
                for made in step.results:
                    if made not in found and step.goes_along(operand, made.number):
                        pushed += 1
                        heapq.heappush(pending, (far if keeps else far + 1, pushed, made))
        return found
