"""What each buffer of a compiled program is used for, in the user's words."""

from __future__ import annotations

from donation_inspector.attribution.arguments import Arguments
from donation_inspector.attribution.flow import Flow
from donation_inspector.attribution.phase import Phase, phase
from donation_inspector.attribution.role import Role
from donation_inspector.common.signature import Signature
from donation_inspector.xla.hlo.buffers import BufferLiveRange

_SUMMED_UP = frozenset(
    {
        "add",
        "convert",
        "transpose",
        "reshape",
        "scatter",
        "dynamic-update-slice",
        "all-reduce",
        "all-reduce-start",
        "reduce-scatter",
    }
)
"""What is done to a gradient before it is whole."""


class Roles:
    """The class of every buffer, from where its value comes, who reads it and what it is returned as."""

    def __init__(self, flow: Flow, signature: Signature) -> None:
        self.flow = flow
        self.entry = Arguments(flow, signature)
        self._argument_at = {buffer.id: position for position, buffer in flow.arguments.items()}
        self._result_at: dict[int, int] = {}
        for position, buffer in flow.results.items():
            self._result_at.setdefault(buffer.id, position)
        self._allocations = {allocation.index: allocation for allocation in flow.buffers.allocations}
        self._known: dict[int, Role] = {}
        self._gradient: dict[int, bool] = {}

    def argument(self, buffer: BufferLiveRange) -> int | None:
        """The position of the argument whose value a buffer holds, unchanged."""
        return self._argument_at.get(self.flow.uncopied(buffer).id)

    def result(self, buffer: BufferLiveRange) -> int | None:
        """The position of the result that a buffer is returned as; the first one where it is returned twice."""
        return self._result_at.get(buffer.id)

    def carried_argument(self, buffer: BufferLiveRange) -> int | None:
        """The position of the argument that a loop started with, where a buffer is what the loop carries."""
        if buffer.opcode not in ("while", "parameter"):
            return None
        found = {self.argument(source) for source in self.flow.sources(buffer)} - {None}
        return found.pop() if len(found) == 1 else None

    def role(self, buffer: BufferLiveRange) -> Role:
        """The class of a buffer."""
        known = self._known.get(buffer.id)
        if known is None:
            known = self._known[buffer.id] = self._role(buffer)
        return known

    def _role(self, buffer: BufferLiveRange) -> Role:
        argument, result = self.argument(buffer), self._result_at.get(buffer.id)
        if buffer.kind == "constant":
            return Role.CONSTANTS
        if result is not None:
            return self.entry.results.get(result, Role.RESULTS)
        if argument is not None:
            original = self.flow.arguments[argument]
            is_copy = buffer.kind != "parameter" and buffer.color == original.color
            extra = is_copy and self._allocations[buffer.allocation].kind == "temp"
            donated = self._allocations[original.allocation].aliased
            return Role.COPIES if extra and donated else self.entry.arguments.get(argument, Role.ARGUMENTS)
        if self._is_copied_into_an_argument(buffer):
            return Role.COPIES
        carried = self.carried_argument(buffer)
        if carried is not None:
            return self.entry.arguments.get(carried, Role.ARGUMENTS)
        origin = self.flow.origin(buffer)
        if origin is None:
            return Role.OTHER
        match phase(origin.op_name):
            case Phase.BACKWARD:
                return Role.GRADIENTS if self._is_gradient(buffer) else Role.TEMPORARIES
            case Phase.FORWARD if self._is_read_backward(buffer):
                return Role.ACTIVATIONS
            case _:
                return Role.TEMPORARIES

    def _is_copied_into_an_argument(self, buffer: BufferLiveRange) -> bool:
        """Whether this is a result in the making that has to wait until its place, a donated argument's, is free."""
        return self._allocations[buffer.allocation].kind == "temp" and any(
            taken.id in self._result_at and taken.color == buffer.color and self._allocations[taken.allocation].aliased
            for taken in self.flow.copies(buffer)
        )

    def _is_gradient(self, buffer: BufferLiveRange) -> bool:
        """Whether a value of the backward pass is a parameter's: of its shape, and read by what comes after."""
        if tuple(sorted(buffer.shape)) not in self.entry.parameter_shapes:
            return False
        known = self._gradient.get(buffer.id)
        if known is None:
            self._gradient[buffer.id] = False
            known = self._gradient[buffer.id] = self._leaves_the_pass(buffer)
        return known

    def _leaves_the_pass(self, buffer: BufferLiveRange) -> bool:
        for taken in self.flow.carried(buffer):
            if taken.id in self._result_at or self._is_gradient(taken):
                return True
        for use in self.flow.uses[buffer.id]:
            readers = self.flow.inner(use)
            if any(phase(op_name) is Phase.OUTSIDE for op_name in self.flow.op_names(use)):
                return True
            if any(reader.opcode in _SUMMED_UP for reader in readers) and any(
                self._takes_gradient(made, buffer) for made in self.flow.made_by(use.instruction)
            ):
                return True
        return False

    def _takes_gradient(self, made: BufferLiveRange, gradient: BufferLiveRange) -> bool:
        """Whether `made`, computed from a value of the backward pass, is a gradient too or already an update."""
        if self._is_gradient(made):
            return True
        origin = self.flow.origin(made)
        is_update = origin is not None and phase(origin.op_name) is Phase.OUTSIDE
        return is_update and sorted(made.shape) == sorted(gradient.shape)

    def _is_read_backward(self, buffer: BufferLiveRange) -> bool:
        # a fusion of the backward pass may do a little of the forward pass again: what it reads counts all the same
        return any(Phase.BACKWARD in self.flow.fusions.phases(use.instruction) for use in self.flow.far_uses(buffer))
