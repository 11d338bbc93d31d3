"""Why a copy, in sentences: which use keeps the old value alive, which result waits for its place, what would help."""

from __future__ import annotations

from collections.abc import Sequence

from donation_inspector.attribution.copies import Copy, Kind, Step
from donation_inspector.attribution.flow import Flow
from donation_inspector.common.signature import Leaf, Signature
from donation_inspector.common.units import format_bytes
from donation_inspector.common.user_code import place
from donation_inspector.xla.hlo.buffers import BufferLiveRange

_NEVER_IN_PLACE = frozenset(
    {
        *("dot_general", "conv_general_dilated", "fft", "sort", "transpose", "rev", "gather"),
        *("cumsum", "cumprod", "cummax", "cummin", "triangular_solve", "cholesky"),
    }
)
"""Primitives whose result needs all of what they read until it is whole."""

_LOOPS = frozenset({"while", "scan", "fori_loop", "cond"})


class Reasons:
    """The sentences about one compiled module, in the user's names."""

    def __init__(self, flow: Flow, signature: Signature, copies: Sequence[Copy]) -> None:
        self._flow = flow
        self._in_trouble = {copy.result for copy in copies}
        self._arguments = {leaf.position: leaf.path for leaf in signature.arguments if leaf.position is not None}
        self._results = {leaf.position: _named(leaf) for leaf in signature.results if leaf.position is not None}
        self._parameters = {buffer.instruction: position for position, buffer in flow.arguments.items()}
        self._makers = {flow.uncopied(buffer).instruction: position for position, buffer in flow.results.items()}

    def sentence(self, copies: Sequence[Copy], nbytes: int, saved: int | None, grown: int, unclear: int) -> str:
        """What aliasing this argument saves, and the copy that counts.

        `unclear` is by how many bytes temporaries grew for no copy's sake: what is saved is an upper bound then.
        """
        saves = "Saves" if not unclear else "Saves at most"
        doubt = f" (temporaries grew by {format_bytes(unclear)} for all together)" if unclear else ""
        if copies:
            why = self.why(self._main(copies))
        elif saved == nbytes:
            return f"{saves} {format_bytes(saved)}{doubt}."
        else:
            why = f"the program's temporaries grew by {format_bytes(grown)}, and no single argument explains it."
        if saved is None:
            return f"What it saves by itself is not known: {why}"
        if saved <= 0:
            return f"Aliased, saves nothing: {why}"
        if saved < nbytes:
            return f"{saves} {format_bytes(saved)} of {format_bytes(nbytes)}{doubt}: {why}"
        return f"{saves} {format_bytes(saved)}{doubt}; what it takes instead lies in memory that is there anyway: {why}"

    def why(self, copy: Copy) -> str:
        """The use that interferes, the result that needs the place, and what XLA does about it."""
        argument, result = self._argument(copy), self._results.get(copy.result, "the result")
        size = format_bytes(copy.nbytes)
        unchanged = self._unchanged(copy)
        if unchanged is not None:
            return (
                f"{unchanged} has to live in the buffer of {argument}, which is itself still needed then: a copy is "
                f"made ({size})."
            )
        if copy.kind is Kind.DISPLACED and copy.maker is not None:
            if copy.reader.instruction == copy.maker.instruction:
                return (
                    f"{_name(copy.maker)} reads {argument} while it makes a value that {result} is computed from, so "
                    f"that this value cannot use the argument's buffer: it is a temporary of {size}."
                )
            return (
                f"{_name(copy.reader)} still reads {argument} when {_name(copy.maker)} has made a value that {result} "
                f"is computed from, so that this value cannot use the argument's buffer: it is a temporary of {size}."
            )
        if copy.reader.instruction == copy.writer.instruction or copy.reader == copy.writer:
            done = f"{result} is made in a temporary of {size} and then copied into the argument's buffer"
            return f"{_name(copy.reader)} reads {argument} {self._how(copy)} {result}: {done}."
        needs = f"{result}, which {_name(copy.writer)} makes, has to live in its buffer"
        if copy.kind is Kind.KEPT:
            return f"{_name(copy.reader)} reads {argument}, and {needs}: the old value is copied first ({size})."
        return f"{_name(copy.reader)} reads {argument}, and {needs}: it is made elsewhere and copied in ({size})."

    def advice(self, copies: Sequence[Copy]) -> str:
        """What would avoid the copies, in one sentence; "" where there is nothing to avoid."""
        if not copies:
            return ""
        copy = self._main(copies)
        argument, result = self._argument(copy), self._results.get(copy.result, "the result")
        if self._unchanged(copy) is not None:
            return ""
        if copy.kind is Kind.DISPLACED:
            return (
                f"As the step stands, donating {argument} brings nothing more: "
                "it needs two buffers of that size either way."
            )
        read_for = self._makers.get(copy.reader.instruction)
        if copy.reader.instruction == copy.writer.instruction:
            return self._advice_in_place(copy)
        if read_for is not None and read_for != copy.result:
            other = self._results.get(read_for, "the other result")
            if self._type(self._flow.results[read_for]) == self._type(self._flow.arguments[copy.argument]):
                if read_for not in self._in_trouble or copy.reader.primitive in _NEVER_IN_PLACE:
                    # another order of results would take away what has its buffer for nothing, or put what is computed
                    # from the whole argument in its place
                    return ""
                return (
                    f"Worth a try: return {other} in the place of {result}, so that it takes over the buffer of "
                    f"{argument}; compare tells whether it helps."
                )
            return (
                f"Worth a try: return {other} from a call of its own, made before this one, so that only {result} "
                f"needs {argument}."
            )
        if copy.writer.primitive in _LOOPS:
            return ""
        if copy.reader.time <= copy.writer.time:
            return f"Nothing reads {argument} after {_name(copy.writer)} in this schedule, and XLA copies all the same."
        return f"Let {_name(copy.reader)} not need the old {argument} once {_name(copy.writer)} has made the new one."

    def _unchanged(self, copy: Copy) -> str | None:
        """What the result is, where it is an argument as it came in; None where something computes it."""
        step = copy.maker if copy.kind is Kind.DISPLACED else copy.writer
        position = None if step is None else self._parameters.get(step.instruction)
        if position is None:
            return None
        result = self._results.get(copy.result, "the result")
        return f"{result}, which is {self._arguments.get(position, f'argument {position}')} unchanged,"

    def _advice_in_place(self, copy: Copy) -> str:
        argument = self._argument(copy)
        old, new = self._flow.arguments[copy.argument], self._flow.results[copy.result]
        if self._type(old) != self._type(new):
            return f"Return it as {_label(old)}, the type of {argument}, and change its shape outside of the step."
        if self._reads_another_layout(copy):
            return f"Give the result the layout of {argument} (out_shardings=Format(…))."
        return f"As the step stands nothing avoids it: {_name(copy.writer)} cannot write over what it reads."

    def _how(self, copy: Copy) -> str:
        old, new = self._flow.arguments[copy.argument], self._flow.results[copy.result]
        if self._type(old) != self._type(new):
            return f"as {_label(old)} and makes, as {_label(new)},"
        if self._reads_another_layout(copy):
            return "in another layout than it makes"
        return "while it makes"

    def _reads_another_layout(self, copy: Copy) -> bool:
        return any(
            self._flow.fusions.reorders(use.instruction, use.operand)
            for use in self._flow.far_uses(self._flow.arguments[copy.argument])
            if use.instruction.name == copy.reader.instruction
        )

    def _argument(self, copy: Copy) -> str:
        return self._arguments.get(copy.argument, f"argument {copy.argument}")

    def _main(self, copies: Sequence[Copy]) -> Copy:
        """The copy that costs: one in the temporaries' memory, the largest."""
        return max(copies, key=lambda copy: (copy.is_temporary, copy.nbytes))

    def _type(self, buffer: BufferLiveRange) -> tuple[tuple[int, ...], str]:
        return buffer.shape, buffer.dtype


def _name(step: Step) -> str:
    return f"{step.primitive} ({place(step.source.file, step.source.line)})" if step.source else step.primitive


def _label(buffer: BufferLiveRange) -> str:
    return f"{buffer.dtype}[{','.join(map(str, buffer.shape))}]"


def _named(result: Leaf) -> str:
    if result.updates is not None:
        return f"the updated {result.updates}"
    return "the result" if result.path in ("", "result") else result.path
