"""`donate-by-live-range`: each donated argument's buffer goes to the result that can take it over without a copy.

`jax-use-donated-arguments` matches by type, in order. This pass asks where live ranges interfere, and says what it
decided in the same way: a `bufferization.materialize_in_destination` before the return, and no flag at the argument.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ModuleOp, TensorType, UnrealizedConversionCastOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.analysis.pairing import pair_by_live_range
from donation_inspector.common.signature import Donation
from donation_inspector.ir.entry import alias_problems, read_donation
from donation_inspector.passes.flags import defined_functions, set_donation


def donate_by_live_range(func: FuncOp, *, cross_type: bool = False) -> None:
    """Materializes results of `func` into its donated arguments, as `analysis.pairing` pairs them.

    An argument that is used loses its flag. One for which no result is left that could take it over without a certain
    copy is left to XLA, as `jax.buffer_donor`. The destination of a pair of different types is a
    `builtin.unrealized_conversion_cast` of the argument.

    Raises DiagnosticException, and changes nothing, when donated arguments stand at a function that
    - has several blocks, or does not end in `func.return`;
    - contradicts itself: see `entry.alias_problems`;
    - has one that is no tensor.
    """
    donation, problems = read_donation(func), alias_problems(func)
    if not donation.positions and not problems:
        return
    terminator = _terminator(func)
    for problem in problems:
        raise _refusal(func, problem)
    for position in sorted(donation.positions):
        if not isinstance(func.args[position].type, TensorType):
            raise _refusal(func, f"donated argument {position} is {func.args[position].type}, which is no tensor.")
    pairs = pair_by_live_range(func, cross_type=cross_type)
    returned = list(terminator.operands)
    for argument, result in sorted(pairs.items(), key=lambda pair: pair[1]):
        value = returned[result]
        added, destination = _destination(func.args[argument], value)
        write = MaterializeInDestinationOp.create(operands=[value, destination], result_types=[value.type])
        func.body.block.insert_ops_before([*added, write], terminator)
        returned[result] = write.results[0]
    terminator.operands = returned
    set_donation(func, Donation(donors=donation.positions - pairs.keys()))


def _terminator(func: FuncOp) -> ReturnOp:
    if len(func.body.blocks) > 1:
        raise _refusal(func, f"it has {len(func.body.blocks)} blocks; only one is understood.")
    terminator = func.body.block.last_op
    if not isinstance(terminator, ReturnOp):
        raise _refusal(func, "it does not end in func.return.")
    return terminator


def _destination(argument: SSAValue, value: SSAValue) -> tuple[list[Operation], SSAValue]:
    """The argument as a destination for `value`, and the operation that makes it one."""
    if argument.type == value.type:
        return [], argument
    cast = UnrealizedConversionCastOp.get([argument], [value.type])
    return [cast], cast.results[0]


def _refusal(func: FuncOp, why: str) -> DiagnosticException:
    return DiagnosticException(
        f"donate-by-live-range: cannot pair the donated arguments of @{func.sym_name.data}: {why}"
    )


@dataclass(frozen=True)
class DonateByLiveRange(ModulePass):
    """Pairs donated arguments with results by live range, in every function that is not private.

    Whoever calls a private function decides what dies there: XLA reads no flag at it.
    """

    name = "donate-by-live-range"

    cross_type: bool = False
    """Pair equally large buffers of other shape or dtype too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        for func in defined_functions(op, self.name):
            if not is_private(func):
                donate_by_live_range(func, cross_type=self.cross_type)


def is_private(func: FuncOp) -> bool:
    return func.sym_visibility is not None and func.sym_visibility.data == "private"
