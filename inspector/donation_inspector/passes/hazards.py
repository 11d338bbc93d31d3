"""What a pipeline leaves undone or gets wrong on this program, said aloud.

`jax-use-donated-arguments` itself says nothing: it matches donated arguments and results by type, in order, and writes
materializations before the return. Its limits are xDSL's (PRs #3224 and #3679 name some); each diagnostic here names
one that this program really meets. What is wrong in itself is told of any pipeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue

from donation_inspector.analysis.liveness import Liveness
from donation_inspector.analysis.placement import result_text
from donation_inspector.common.signature import Donation, Leaf, Signature
from donation_inspector.common.units import format_bytes
from donation_inspector.passes.effect import Effect


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing to know about what the pass did. `argument` and `result` are positions of the entry function.

    error: what the pass made is wrong or XLA refuses it. warning: a donation is lost. note: worth knowing.
    """

    severity: Literal["error", "warning", "note"]
    code: str
    message: str
    argument: int | None = None
    result: int | None = None


UPSTREAM = "jax-use-donated-arguments"


def diagnose(
    func: FuncOp,
    donation: Donation,
    effect: Effect,
    *,
    signature: Signature,
    liveness: Liveness,
    pipeline: str = UPSTREAM,
) -> tuple[Diagnostic, ...]:
    """Everything to say about `effect`, which `pipeline` had on `func` donated as `donation` says; errors first.

    `signature` gives names and sizes on one device; `liveness` is that of `func`.
    """
    case = _Case(func, donation, effect, signature, liveness, UPSTREAM in pipeline)
    found = [diagnostic for check in _CHECKS for diagnostic in check(case)]
    return tuple(sorted(found, key=lambda diagnostic: _SEVERITIES.index(diagnostic.severity)))


_SEVERITIES = ("error", "warning", "note")


class _Case:
    """One run of the pass, with names for positions."""

    def __init__(
        self,
        func: FuncOp,
        donation: Donation,
        effect: Effect,
        signature: Signature,
        liveness: Liveness,
        upstream: bool,
    ) -> None:
        self.upstream = upstream
        """Whether xDSL's own pass is in the pipeline, so that its ways explain what is there."""
        self.func, self.donation, self.effect, self.liveness = func, donation, effect, liveness
        self.arguments = {leaf.position: leaf for leaf in signature.arguments}
        self.results = {leaf.position: leaf for leaf in signature.results}
        self.blocks = len(func.body.blocks)
        terminator = func.get_return_op()
        self.returned: tuple[SSAValue, ...] = () if terminator is None else tuple(terminator.operands)
        self.pairs = dict(effect.pairs)
        self.writes = effect.materializations.ops
        """(result position of the value, argument that it is written into), in the order of the operations."""

    @property
    def unwritten(self) -> list[int]:
        """The results that are returned as they were, written into no argument."""
        kept = [position for position in range(len(self.returned)) if position not in self.effect.removed_results]
        after = self.effect.materializations.returned
        return [position for position, written in zip(kept, after, strict=False) if written is None]

    def argument(self, position: int) -> str:
        leaf = self.arguments.get(position)
        return f"%arg{position}" if leaf is None else leaf.path

    def result(self, position: int) -> str:
        leaf = self.results.get(position)
        return f"result number {position}" if leaf is None else result_text(leaf)


def _several_blocks(case: _Case) -> Iterator[Diagnostic]:
    if case.upstream and case.blocks > 1 and case.donation.aliases:
        yield Diagnostic(
            "warning",
            "several-blocks",
            f"The function has {case.blocks} blocks. The pass skips such a function without a word, so it uses none of "
            f"the {len(case.donation.aliases)} donated arguments.",
        )


def _donors_ignored(case: _Case) -> Iterator[Diagnostic]:
    for position in sorted(case.donation.donors) if case.upstream else ():
        yield Diagnostic(
            "note",
            "donor-ignored",
            f"{case.argument(position)} is left to XLA (jax.buffer_donor). The pass looks at tf.aliasing_output alone "
            "and does not use it.",
            argument=position,
        )


def _differs_from_jax(case: _Case) -> Iterator[Diagnostic]:
    for position, result in sorted(case.pairs.items()):
        asked = case.donation.aliases.get(position)
        if asked is not None and asked != result:
            why = " ignores the number in tf.aliasing_output, matches types in order, and" if case.upstream else ""
            yield Diagnostic(
                "note",
                "differs-from-jax",
                f"JAX pairs {case.argument(position)} with {case.result(asked)}. The pass{why} "
                f"pairs it with {case.result(result)}.",
                argument=position,
                result=result,
            )


def _returned_twice(case: _Case) -> Iterator[Diagnostic]:
    times: defaultdict[tuple[int, int], int] = defaultdict(int)
    for write in case.writes:
        times[write] += 1
    for (result, argument), count in times.items():
        if count == 1:
            continue
        value = case.returned[result]
        positions = [position for position, other in enumerate(case.returned) if other is value]
        yield Diagnostic(
            "warning",
            "returned-twice",
            f"{' and '.join(case.result(position) for position in positions)} are one value. The pass writes it "
            f"{count} times into {case.argument(argument)} and returns that buffer for all of them, though each result "
            "needs its own.",
            argument=argument,
            result=result,
        )


def _overwritten_before_read(case: _Case) -> Iterator[Diagnostic]:
    overwritten: dict[int, int] = {}
    for result, argument in case.writes:
        source = case.returned[result]
        if isinstance(source, BlockArgument) and source.index in overwritten and source.index != argument:
            first = overwritten[source.index]
            yield Diagnostic(
                "error",
                "overwritten-before-read",
                f"{case.argument(source.index)} is overwritten with {case.result(first)} before it is read for "
                f"{case.result(result)}: carried out in place and in this order, {case.result(result)} gets the wrong "
                "value unless something copies first.",
                argument=source.index,
                result=result,
            )
        if source is not case.func.args[argument]:
            overwritten[argument] = result


def _overwritten_while_returned(case: _Case) -> Iterator[Diagnostic]:
    written = {id(case.returned[result]) for result, _ in case.writes}
    overwritten = {
        argument: result for result, argument in case.writes if case.returned[result] is not case.func.args[argument]
    }
    for position, value in enumerate(case.returned):
        if not isinstance(value, BlockArgument) or id(value) in written or value.index not in overwritten:
            continue
        yield Diagnostic(
            "error",
            "overwritten-while-returned",
            f"{case.argument(value.index)} is overwritten with {case.result(overwritten[value.index])}, but "
            f"{case.result(position)} still returns {case.argument(value.index)} itself: it needs a copy that the pass "
            "does not make.",
            argument=value.index,
            result=position,
        )


def _stale_result_attributes(case: _Case) -> Iterator[Diagnostic]:
    if case.effect.stale_result_attributes:
        removed = ", ".join(case.result(position) for position in case.effect.removed_results)
        yield Diagnostic(
            "error",
            "stale-result-attributes",
            f"remove_matched_outputs drops {removed} but not its attributes: {case.effect.stale_result_attributes} too "
            "many stand at the function, and MLIR refuses such a module.",
        )


def _left_unused(case: _Case) -> Iterator[Diagnostic]:
    if case.blocks > 1:
        return
    if not case.upstream:
        # a program that is changed further may use the buffer in its body
        yield from _left_to_xla(case) if case.effect.compilable else ()
        return
    unwritten = case.unwritten
    for argument in sorted(set(case.donation.aliases) - set(case.pairs)):
        type_ = case.func.args[argument].type
        alike = [value.type == type_ for value in case.returned]
        if not any(alike):
            why = "no result has its type"
        elif any(alike[position] for position in unwritten):
            why = "it leaves results of its type without a buffer"
        else:
            why = "every result of its type went to other donated arguments"
        yield Diagnostic(
            "warning",
            "left-unused",
            f"{case.argument(argument)} is donated, but the pass does not use it and does not say so: {why}.",
            argument=argument,
        )


def _left_to_xla(case: _Case) -> Iterator[Diagnostic]:
    for argument in sorted(case.donation.positions - set(case.pairs)):
        left = "leaves it to XLA (jax.buffer_donor)" if argument in case.effect.donation.donors else "does not use it"
        yield Diagnostic(
            "note",
            "left-unused",
            f"{case.argument(argument)} is donated; the pass pairs it with no result and {left}.",
            argument=argument,
        )


def _sizes_differ(case: _Case) -> Iterator[Diagnostic]:
    for position, result in sorted(case.pairs.items()):
        given, taken = _per_device(case.arguments.get(position)), _per_device(case.results.get(result))
        if given is not None and taken is not None and given != taken:
            yield Diagnostic(
                "error",
                "per-device-size",
                f"{case.argument(position)} and {case.result(result)} have one type, so the pass pairs them, but on "
                f"each device they take {format_bytes(given)} and {format_bytes(taken)}: XLA refuses this pair.",
                argument=position,
                result=result,
            )


def _per_device(leaf: Leaf | None) -> int | None:
    return None if leaf is None else leaf.nbytes_per_device


def _read_after(case: _Case) -> Iterator[Diagnostic]:
    for position, result in sorted(case.pairs.items()):
        argument, value = case.func.args[position], case.returned[result]
        if isinstance(value, BlockArgument):
            continue
        last_use = case.liveness.last_use(argument)
        made = case.liveness.definition(value)
        if last_use is None or not made < last_use < len(case.liveness.operations) - 1:
            continue
        yield Diagnostic(
            "note",
            "read-after",
            f"{case.argument(position)} is still read by operation {last_use} after {case.result(result)} was computed "
            f"by operation {made}. In this order both are live at once, so taking over the buffer needs a copy.",
            argument=position,
            result=result,
        )


def _other_functions(case: _Case) -> Iterator[Diagnostic]:
    if case.effect.other_functions:
        yield Diagnostic(
            "warning",
            "other-functions",
            f"The pass does not stop at the entry function: it rewrites {', '.join(case.effect.other_functions)} too.",
        )


_CHECKS = (
    _overwritten_before_read,
    _overwritten_while_returned,
    _stale_result_attributes,
    _sizes_differ,
    _several_blocks,
    _returned_twice,
    _left_unused,
    _other_functions,
    _differs_from_jax,
    _donors_ignored,
    _read_after,
)
