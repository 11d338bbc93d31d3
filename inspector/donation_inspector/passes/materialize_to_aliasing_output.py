"""`materialize-to-aliasing-output`: what bufferization shall write into an argument becomes `tf.aliasing_output`.

`jax-use-donated-arguments` writes its decisions as `bufferization.materialize_in_destination` before the return. XLA
does not know that operation; it reads `tf.aliasing_output` at the arguments. This pass turns the one into the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, UnrealizedConversionCastOp, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.analysis.destination import destination_argument, fits_destination, is_destination
from donation_inspector.ir.entry import ALIAS, DONOR
from donation_inspector.passes.flags import argument_attributes, defined_functions


def materialize_to_aliasing_output(func: FuncOp) -> None:
    """Turns the materializations into arguments before the return of `func` into `tf.aliasing_output`.

    Each operation vanishes, and the return gets its source back. A result returned at several positions aliases the
    first. Flags already there stay, those that `jax-use-donated-arguments` left unused too: whether they still hold is
    not for this pass to say, but one that claims the same result is refused.

    Raises DiagnosticException, and changes nothing, when
    - the function has several blocks;
    - a destination is no argument of the function, or is written twice, or already carries a donation flag;
    - source and destination differ in type, unless a cast of the argument to the source's type takes the same bytes;
    - a materialization does not feed the return alone, or other operations stand between it and the return;
    - an argument that is not written already claims the same result.
    """
    found = [op for op in func.walk() if isinstance(op, MaterializeInDestinationOp)]
    if not found:
        return
    block, terminator = _single_block(func, found[0])
    flags = argument_attributes(func)
    written: dict[int, MaterializeInDestinationOp] = {}
    for op in found:
        position = _written_argument(op, block)
        if position in written:
            raise _refusal(op, f"destination, argument {position}, is already written by another materialization")
        for flag in (ALIAS, DONOR):
            if flag in flags[position]:
                raise _refusal(op, f"destination, argument {position}, already has {flag}")
        written[position] = op
    aliases = {position: _returned_position(op, terminator) for position, op in written.items()}
    _refuse_second_claim(func, flags, aliases)

    for op in found:
        assert op.result is not None
        op.result.replace_all_uses_with(op.source)
        cast = op.dest.owner
        op.detach()
        op.erase()
        if isinstance(cast, UnrealizedConversionCastOp) and cast.results[0].first_use is None:
            cast.detach()
            cast.erase()
    for position, result in aliases.items():
        flags[position][ALIAS] = IntegerAttr(result, i32)
    func.arg_attrs = ArrayAttr([DictionaryAttr(attributes) for attributes in flags])


def _single_block(func: FuncOp, first: MaterializeInDestinationOp) -> tuple[Block, ReturnOp]:
    if len(func.body.blocks) > 1:
        blocks = len(func.body.blocks)
        raise _refusal(first, f"function @{func.sym_name.data} has {blocks} blocks; only one is understood")
    terminator = func.body.block.last_op
    if not isinstance(terminator, ReturnOp):
        raise _refusal(first, f"function @{func.sym_name.data} does not end in func.return")
    return func.body.block, terminator


def _written_argument(op: MaterializeInDestinationOp, block: Block) -> int:
    argument = destination_argument(op)
    if argument is None or argument.block is not block:
        raise _refusal(op, "destination is not an argument of the function")
    if not fits_destination(op, argument):
        raise _refusal(
            op, f"source is {op.source.type}, but destination, argument {argument.index}, is {argument.type}"
        )
    return argument.index


def _returned_position(op: MaterializeInDestinationOp, terminator: ReturnOp) -> int:
    if op.result is None or op.result.first_use is None:
        raise _refusal(op, "result is not returned")
    if any(use.operation is not terminator for use in op.result.uses):
        raise _refusal(op, "result is used by another operation than the return")
    follower: Operation | None = op.next_op
    while follower is not None and (isinstance(follower, MaterializeInDestinationOp) or is_destination(follower)):
        follower = follower.next_op
    if follower is not terminator:
        assert follower is not None
        raise _refusal(op, "it does not stand right before the return")
    return tuple(terminator.operands).index(op.result)


def _refuse_second_claim(func: FuncOp, flags: list[dict[str, Attribute]], aliases: dict[int, int]) -> None:
    written = {result: position for position, result in aliases.items()}
    for position, attributes in enumerate(flags):
        claim = attributes.get(ALIAS)
        if isinstance(claim, IntegerAttr) and claim.value.data in written:
            raise DiagnosticException(
                f"materialize-to-aliasing-output: in function @{func.sym_name.data}, argument {position} claims result "
                f"{claim.value.data} by {ALIAS}, and so does argument {written[claim.value.data]} by its "
                "materialization; strip the stale flag first"
            )


def _refusal(op: MaterializeInDestinationOp, why: str) -> DiagnosticException:
    return DiagnosticException(f"materialize-to-aliasing-output: cannot turn '{op.name}' into an alias: {why}")


@dataclass(frozen=True)
class MaterializeToAliasingOutput(ModulePass):
    """Turns materializations into function arguments before the return into `tf.aliasing_output`, in every function."""

    name = "materialize-to-aliasing-output"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        for func in defined_functions(op, self.name):
            materialize_to_aliasing_output(func)
