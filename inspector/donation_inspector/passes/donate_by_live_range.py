"""`donate-by-live-range`: each donated argument's buffer goes to the result that can take it over without a copy.

`jax-use-donated-arguments` matches by type, in order. This pass asks where live ranges interfere, and says what it
decided in the same way: a `bufferization.materialize_in_destination` before the return, and no flag at the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ModuleOp, TensorType, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from donation_inspector.analysis.buffers.model import find_overwritten
from donation_inspector.analysis.buffers.run import Overwritten
from donation_inspector.analysis.pairing import pair_by_live_range
from donation_inspector.common.signature import Donation
from donation_inspector.ir.dialect import to_text
from donation_inspector.ir.entry import DONOR, alias_problems, read_donation
from donation_inspector.passes.flags import set_donation, uncalled_functions
from donation_inspector.passes.notes import tell

NAME = "donate-by-live-range"


def donate_by_live_range(func: FuncOp, *, cross_type: bool = False) -> None:
    """Materializes results of `func` into its donated arguments, as `analysis.pairing` pairs them.

    An argument that is used loses its flag. One for which no result is left that could take it over without a certain
    copy is left to XLA, as `jax.buffer_donor`; so is one that no tensor can be written into, which is told. The
    destination of a pair of different types is a `builtin.unrealized_conversion_cast` of the argument.

    What is made is one that `check-donated-buffers` accepts: a pair that it would reject is not made, and told. What
    contradicts itself (`entry.alias_problems`) is told, and every flag of the function taken as `jax.buffer_donor`.
    Told and left as it is, is a function of several blocks, one that does not end in `func.return`, and one in which
    something is overwritten already.
    """
    donation, problems = read_donation(func), alias_problems(func)
    if not donation.positions and not problems:
        return
    terminator = func.body.block.last_op if len(func.body.blocks) == 1 else None
    if not isinstance(terminator, ReturnOp):
        blocks = len(func.body.blocks)
        told = f"has {blocks} blocks, only one is understood" if blocks > 1 else "does not end in func.return"
        tell(NAME, "not-understood", func, f"{told}: its donated arguments are left")
        return
    for problem in problems:
        tell(NAME, "contradiction", func, f"contradicts itself, so its flags are taken as {DONOR}: {problem}")
    if problems:
        set_donation(func, Donation(donors=donation.positions))
    for position in sorted(donation.positions):
        type_ = func.args[position].type
        if not isinstance(type_, TensorType):
            tell(
                NAME,
                "no-tensor",
                func,
                f"is {to_text(type_)}, which no tensor can be written into: left to XLA",
                position,
            )
    excluded: set[tuple[int, int]] = set()
    wrong = find_overwritten(func)
    if wrong is not None:
        tell(NAME, "overwritten", func, f"is left as it is, because {wrong.what}")
    pairs = {} if wrong else pair_by_live_range(func, cross_type=cross_type)
    written = _write(func, terminator, pairs)
    while (wrong := find_overwritten(func) if written else None) is not None:
        pair = _at_fault(wrong, pairs)
        tell(NAME, "overwritten", func, f"is not given to result {pair[1]}, because {wrong.what}", pair[0])
        excluded.add(pair)
        _undo(terminator, written)
        pairs = pair_by_live_range(func, cross_type=cross_type, excluded=excluded)
        written = _write(func, terminator, pairs)
    set_donation(func, Donation(donors=donation.positions - pairs.keys()))


def _write(
    func: FuncOp, terminator: ReturnOp, pairs: Mapping[int, int]
) -> list[tuple[MaterializeInDestinationOp, Sequence[Operation]]]:
    """Each pair as a materialization before the return, with what makes its destination."""
    written: list[tuple[MaterializeInDestinationOp, Sequence[Operation]]] = []
    returned = list(terminator.operands)
    for argument, result in sorted(pairs.items(), key=lambda pair: pair[1]):
        value = returned[result]
        added, destination = _destination(func.args[argument], value)
        write = MaterializeInDestinationOp.create(operands=[value, destination], result_types=[value.type])
        func.body.block.insert_ops_before([*added, write], terminator)
        returned[result] = write.results[0]
        written.append((write, added))
    terminator.operands = returned
    return written


def _undo(terminator: ReturnOp, written: Iterable[tuple[MaterializeInDestinationOp, Sequence[Operation]]]) -> None:
    sources: dict[SSAValue, SSAValue] = {op.results[0]: op.source for op, _ in written}
    terminator.operands = [sources.get(value, value) for value in terminator.operands]
    for op, added in written:
        for one in (op, *added):
            one.detach()
            one.erase()


def _at_fault(wrong: Overwritten, pairs: Mapping[int, int]) -> tuple[int, int]:
    """The pair whose buffer is overwritten too early; the last one where it is none's."""
    value = None if wrong.buffer is None else wrong.buffer.value
    argument = value.index if isinstance(value, BlockArgument) and value.index in pairs else max(pairs)
    return argument, pairs[argument]


def _destination(argument: SSAValue, value: SSAValue) -> tuple[list[Operation], SSAValue]:
    """The argument as a destination for `value`, and the operation that makes it one."""
    if argument.type == value.type:
        return [], argument
    cast = UnrealizedConversionCastOp.get([argument], [value.type])
    return [cast], cast.results[0]


@dataclass(frozen=True)
class DonateByLiveRange(ModulePass):
    """Pairs donated arguments with results by live range, in every function that is called from outside alone.

    Whoever calls a function decides what dies there: a private one, where XLA reads no flag, and a public one that the
    module calls too, which is told.
    """

    name = NAME

    cross_type: bool = False
    """Pair equally large buffers of other shape or dtype too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        for func in uncalled_functions(op, self.name):
            donate_by_live_range(func, cross_type=self.cross_type)
