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
from xdsl.ir import Attribute, Block, BlockArgument, Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.analysis.destination import destination_argument, fits_destination, is_destination
from donation_inspector.ir.entry import ALIAS, DONOR
from donation_inspector.passes.flags import argument_attributes, defined_functions
from donation_inspector.passes.notes import tell

NAME = "materialize-to-aliasing-output"


def materialize_to_aliasing_output(func: FuncOp) -> None:
    """Turns the materializations into arguments before the return of `func` into `tf.aliasing_output`.

    Each operation vanishes, and what reads it gets its source back. A result returned at several positions aliases the
    first. Flags already there stay, those that `jax-use-donated-arguments` left unused too: whether they still hold is
    not for this pass to say. One that claims a result which is materialized into another argument goes, and is told.

    One that cannot be an alias is dropped, which is told, because
    - its destination is no argument of the function, is written before, or carries a donation flag already;
    - source and destination differ in type, unless a cast of the argument to the source's type takes the same bytes;
    - it does not feed the return alone, or other operations stand between it and the return;
    - its result is materialized into another argument before.

    Raises DiagnosticException, and changes nothing, when the function has several blocks, or does not end in
    `func.return`.
    """
    found = [op for op in func.walk() if isinstance(op, MaterializeInDestinationOp)]
    if not found:
        return
    terminator = _terminator(func)
    flags = argument_attributes(func)
    aliases: dict[int, int] = {}
    for op in found:
        argument = destination_argument(op)
        why = _why_no_argument(op, func.body.block) or _why_not_returned(op, terminator)
        if argument is not None and why is None:
            result = tuple(terminator.operands).index(op.results[0])
            why = _why_taken(argument, result, flags, aliases)
            if why is None:
                aliases[argument.index] = result
        if why is not None:
            mine = argument.index if argument is not None and argument.block is func.body.block else None
            tell(NAME, "dropped", func, f"is not aliased, and a materialization dropped: {why}", mine)
    for position, attributes in enumerate(flags):
        claim = attributes.get(ALIAS)
        if isinstance(claim, IntegerAttr) and claim.value.data in aliases.values():
            told = f"loses {ALIAS} = {claim.value.data}: another argument is materialized into with that result"
            tell(NAME, "dropped", func, told, position)
            del attributes[ALIAS]
    for op in found:
        _remove(op)
    for position, result in aliases.items():
        flags[position][ALIAS] = IntegerAttr(result, i32)
    func.arg_attrs = ArrayAttr([DictionaryAttr(attributes) for attributes in flags])


def _terminator(func: FuncOp) -> ReturnOp:
    blocks = len(func.body.blocks)
    terminator = func.body.block.last_op if blocks == 1 else None
    if isinstance(terminator, ReturnOp):
        return terminator
    why = f"has {blocks} blocks; only one is understood" if blocks > 1 else "does not end in func.return"
    raise DiagnosticException(
        f"{NAME}: cannot turn '{MaterializeInDestinationOp.name}' into an alias: function @{func.sym_name.data} {why}"
    )


def _why_no_argument(op: MaterializeInDestinationOp, block: Block) -> str | None:
    argument = destination_argument(op)
    if argument is None or argument.block is not block:
        return "destination is not an argument of the function"
    if not fits_destination(op, argument):
        return f"source is {op.source.type}, but destination, argument {argument.index}, is {argument.type}"
    return None


def _why_not_returned(op: MaterializeInDestinationOp, terminator: ReturnOp) -> str | None:
    if op.result is None or op.result.first_use is None:
        return "result is not returned"
    if any(use.operation is not terminator for use in op.result.uses):
        return "result is used by another operation than the return"
    follower: Operation | None = op.next_op
    while follower is not None and (isinstance(follower, MaterializeInDestinationOp) or is_destination(follower)):
        follower = follower.next_op
    return None if follower is terminator else "it does not stand right before the return"


def _why_taken(
    argument: BlockArgument, result: int, flags: list[dict[str, Attribute]], aliases: dict[int, int]
) -> str | None:
    if argument.index in aliases:
        return f"destination, argument {argument.index}, is already written by another materialization"
    if result in aliases.values():
        return f"another argument is materialized into with result {result} already"
    flag = next((flag for flag in (ALIAS, DONOR) if flag in flags[argument.index]), None)
    return None if flag is None else f"destination, argument {argument.index}, already has {flag}"


def _remove(op: MaterializeInDestinationOp) -> None:
    if op.result is not None:
        op.result.replace_all_uses_with(op.source)
    cast = op.dest.owner
    op.detach()
    op.erase()
    if isinstance(cast, UnrealizedConversionCastOp) and cast.results[0].first_use is None:
        cast.detach()
        cast.erase()


@dataclass(frozen=True)
class MaterializeToAliasingOutput(ModulePass):
    """Turns materializations into function arguments before the return into `tf.aliasing_output`, in every function."""

    name = NAME

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        for func in defined_functions(op, self.name):
            materialize_to_aliasing_output(func)
