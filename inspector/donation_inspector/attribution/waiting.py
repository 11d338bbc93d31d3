"""Donated buffers that lie empty at the peak, while a value computed from them in place has memory of its own.

A donated argument's buffer is its result's in the end. What is computed from it in between, element by element, could
lie there too. Where something else reads that value before the result is written, XLA gives it memory of its own: a
whole copy more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from donation_inspector.attribution.copies import aliased_pairs
from donation_inspector.attribution.describe import at, primitive
from donation_inspector.attribution.flow import Flow
from donation_inspector.attribution.fusions import FUSED
from donation_inspector.attribution.peak import Contributor, Peak
from donation_inspector.common.signature import Signature
from donation_inspector.common.units import format_bytes
from donation_inspector.xla.hlo.buffers import BufferLiveRange
from donation_inspector.xla.hlo.proto import HloInstructionProto

_WORTH = 0.1
"""The share of the peak from which on it is told."""

# fmt: off
_ELEMENTWISE = frozenset(
    {
        "abs", "add", "and", "atan2", "bitcast", "broadcast", "cbrt", "ceil", "clamp", "compare", "constant",
        "convert", "cosine", "divide", "erf", "exponential", "exponential-minus-one", "floor", "is-finite", "iota",
        "log", "log-plus-one", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "parameter",
        "power", "reduce-precision", "remainder", "round-nearest-afz", "round-nearest-even", "rsqrt", "select",
        "shift-left", "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sqrt", "subtract", "tan",
        "tanh", "xor",
    }
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Waiting:
    """An argument, by its path, whose buffer waits at the peak for its result; `beside` is what could lie there."""

    path: str
    beside: Contributor


def find_waiting(flow: Flow, peak: Peak, signature: Signature) -> tuple[Waiting, ...]:
    """Each aliased argument whose buffer waits, in order of the arguments."""
    paths = {leaf.position: leaf.path for leaf in signature.arguments if leaf.position is not None}
    contributors = {one.buffer.id: one for one in peak.contributors if one.buffer is not None}
    return tuple(
        Waiting(paths[argument], contributors[between.id])
        for argument, result in aliased_pairs(flow)
        if argument in paths
        for between in _in_between(flow, flow.arguments[argument], flow.results[result])
        if between.id in contributors and between.nbytes >= _WORTH * peak.nbytes
    )


def sentence(waiting: Waiting) -> str:
    """Which buffer waits and what lies beside it, with what avoids it."""
    beside = waiting.beside
    what = " at ".join(word for word in (primitive(beside.op_name), at(beside.source)) if word) or "a temporary"
    return (
        f"{waiting.path}'s buffer is empty then and waits for its result, while {what} takes "
        f"{format_bytes(beside.nbytes)} of its own: XLA does not compute it in place, because more than the result "
        "reads it. Two jitted functions, split behind that value and donating each, do without."
    )


def _in_between(flow: Flow, argument: BufferLiveRange, result: BufferLiveRange) -> Iterator[BufferLiveRange]:
    """What is computed from the argument at its last use, element by element, and the result from that in turn."""
    last = max((use.time for use in flow.uses[argument.id]), default=None)
    maker = flow.instruction(result)
    if not _is_elementwise(flow, maker):
        return
    for value in flow.operands(maker):
        if value.kind == "temp" and value.nbytes == argument.nbytes == result.nbytes and value.start == last:
            source = flow.instruction(value)
            if _is_elementwise(flow, source) and any(one.id == argument.id for one in flow.operands(source)):
                yield value


def _is_elementwise(flow: Flow, instruction: HloInstructionProto) -> bool:
    if instruction.opcode not in FUSED:
        return instruction.opcode in _ELEMENTWISE
    inside = flow.module.computations[instruction.called_computation_ids[0]].instructions
    return all(_is_elementwise(flow, one) for one in inside)
