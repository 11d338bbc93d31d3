"""What a pipeline did to the entry function, read off the function before and after.

The decision of `jax-use-donated-arguments` stands in the IR as `bufferization.materialize_in_destination` before the
return; another pass may set `tf.aliasing_output` itself. An effect is those decisions as pairs of positions, and
whether they are all that changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeVar

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, IRNode, Operation, Region, SSAValue

from donation_inspector.analysis.destination import destination_argument, fits_destination, is_destination
from donation_inspector.analysis.naming import operation_name
from donation_inspector.common.signature import Donation
from donation_inspector.ir.dialect import to_text
from donation_inspector.ir.entry import ALIAS, DONOR, read_donation
from donation_inspector.ir.exporter import Materializations
from donation_inspector.ir.size import nbytes
from donation_inspector.passes.flags import argument_attributes

_T = TypeVar("_T", bound=Hashable)
_Same = dict[IRNode | SSAValue, IRNode | SSAValue]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a pipeline decided, by position of the entry function before it ran.

    pairs: (argument, result) one-to-one, in the order of the results: the result is written into the argument, before
        the return or, in a changed program, where it is computed. Of a value returned at several positions, the first
        counts; of several writes into one argument, too. So is a flag that the pipeline set or changed, and where it
        changed flags and materialized nothing, each one there.
    materializations: the operations added before the return, as they stand there.
    donation_left: the flags still at the arguments.
    removed_results: results that the function no longer returns.
    stale_result_attributes: how many result attributes the function has beyond its results.
    other_functions: other functions that got materializations before their return, as "@name". Those say where values
        go, not what they are, and StableHLO has no place for them: the program with aliases means the same.
    why_not: why this effect cannot be compiled as aliases of the unchanged program; None when it can.
    """

    pairs: tuple[tuple[int, int], ...]
    materializations: Materializations
    donation_left: Donation
    removed_results: tuple[int, ...]
    stale_result_attributes: int
    other_functions: tuple[str, ...]
    why_not: str | None

    @property
    def compilable(self) -> bool:
        """Only materializations before the return were added: the program with aliases means the same."""
        return self.why_not is None

    @property
    def donation(self) -> Donation:
        """What the pipeline made, for XLA: its pairs and the donors it left. An alias flag that it left as it was,
        beside materializations, is not its decision, and may claim a result twice: it goes."""
        aliases = dict(self.pairs)
        return Donation(aliases=aliases, donors=self.donation_left.donors.difference(aliases))


def read_effect(before: FuncOp, after: FuncOp, *, rewritten: Sequence[str] = (), changed: Sequence[str] = ()) -> Effect:
    """The effect on one function, of which `before` and `after` are two separate copies.

    Every operation is compared, so that a change besides materializations is told in `why_not`. `rewritten` names other
    functions of the module that got materializations too, `changed` what else of the module is not as it was.
    """
    same: _Same = {}
    why_not, added = _compare_bodies(before, after, same)
    returned = [_counterpart(value, same) for value in _returned(before)]
    returned_after = _returned(after)
    sources: dict[SSAValue, SSAValue] = {op.result: op.source for op in added if op.result is not None}
    kept = _kept(returned, [sources.get(value, value) for value in returned_after])
    written = _written(added, returned, returned_after)
    why_not = why_not or _why_unlike_aliases(added, written, after)
    if why_not is None and kept is None:
        why_not = "it returns other values"
    removed = () if kept is None else tuple(sorted(set(range(len(returned))) - set(kept)))
    if why_not is None and removed:
        numbers = ", ".join(str(position) for position in removed)
        why_not = f"it drops results from the function that the caller expects: {numbers}"
    why_not = why_not or _compare_signatures(before, after)
    if why_not is None and changed:
        why_not = f"it changes more than the entry function: {', '.join(changed)}"
    same_results = len(returned) == len(returned_after)
    in_the_body = _returned_buffers(returned_after) if why_not and same_results else ()
    materialized = [*(pair for pair in written if pair is not None), *in_the_body]
    flagged = _flagged(before, after, only_changed=bool(materialized))
    why_not = why_not or _why_no_flags(flagged, materialized, after)
    same_positions = same_results and before.function_type == after.function_type
    there = [pair for pair in flagged if same_positions and 0 <= pair[1] < len(returned)]
    pairs = _one_to_one([*materialized, *there])
    attributes = 0 if after.res_attrs is None else len(after.res_attrs)
    return Effect(
        pairs=pairs,
        materializations=_materializations(added, written, returned_after),
        donation_left=read_donation(after),
        removed_results=removed,
        stale_result_attributes=max(0, attributes - len(after.function_type.outputs)),
        other_functions=tuple(rewritten),
        why_not=why_not,
    )


def _returned(func: FuncOp) -> tuple[SSAValue, ...]:
    terminator = func.get_return_op()
    return () if terminator is None else tuple(terminator.operands)


def _counterpart(value: SSAValue, same: _Same) -> SSAValue:
    other = same.get(value)
    return other if isinstance(other, SSAValue) else value


def _compare_bodies(
    before: FuncOp, after: FuncOp, same: _Same
) -> tuple[str | None, tuple[MaterializeInDestinationOp, ...]]:
    """What changed besides materializations added before the return, and those; fills `same` with the equal values."""
    if len(before.body.blocks) > 1 or len(after.body.blocks) > 1:
        # known beforehand, because a block may use what a later one in the text defines
        same.update(zip(_values(before.body), _values(after.body), strict=False))
        if before.body.is_structurally_equivalent(after.body, same):
            return None, ()
        return "it changes a function of several blocks", ()
    block, other = before.body.block, after.body.block
    if block.arg_types != other.arg_types:
        return "it changes the arguments of the function", ()
    same[block] = other
    same.update(zip(block.args, other.args, strict=True))
    operations, others = tuple(block.ops), tuple(other.ops)
    body, rest = operations[:-1], others[len(operations) - 1 : -1]
    for index, op in enumerate(body):
        if index >= len(others) - 1 or not _is_same(op, others[index], same):
            return f"it changes the program at operation {index}, '{operation_name(op)}'", _trailing(others[:-1])
    unlike = next(
        (op for op in rest if not isinstance(op, MaterializeInDestinationOp) and not is_destination(op)), None
    )
    if unlike is not None:
        return f"it adds '{operation_name(unlike)}' to the program", _trailing(rest)
    return None, _trailing(rest)


def _values(region: Region) -> Iterator[SSAValue]:
    for block in region.blocks:
        yield from block.args
        for op in block.ops:
            yield from op.results


def _is_same(op: Operation, other: Operation, same: _Same) -> bool:
    return op.is_structurally_equivalent(other, same) and op.result_types == other.result_types


def _trailing(operations: Sequence[Operation]) -> tuple[MaterializeInDestinationOp, ...]:
    found = takewhile(lambda op: isinstance(op, MaterializeInDestinationOp) or is_destination(op), reversed(operations))
    return tuple(op for op in reversed(tuple(found)) if isinstance(op, MaterializeInDestinationOp))


def _kept(returned: Sequence[SSAValue], returned_after: Sequence[SSAValue]) -> tuple[int, ...] | None:
    """For each value still returned, its result position before; None when they are no part of those, in order."""
    kept: list[int] = []
    for value in returned_after:
        start = kept[-1] + 1 if kept else 0
        position = next((index for index in range(start, len(returned)) if returned[index] is value), None)
        if position is None:
            return None
        kept.append(position)
    return tuple(kept)


def _written(
    added: Sequence[MaterializeInDestinationOp], returned: Sequence[SSAValue], returned_after: Sequence[SSAValue]
) -> list[tuple[int, int] | None]:
    """(argument, result) of each operation: what it writes, and the first result position at which that is returned, or
    else the value written there; None where that is no argument or no result."""
    first_before, first_after = _first_positions(returned), _first_positions(returned_after)
    all_still_there = len(returned) == len(returned_after)
    # of one value that is returned at several positions, each write stands for the position that returns it
    own = _first_positions(list(zip(returned, returned_after, strict=True)) if all_still_there else [])
    written: list[tuple[int, int] | None] = []
    for op in added:
        result = None if op.result is None else own.get((op.source, op.result))
        if result is None:
            result = first_before.get(op.source)
        if result is None and all_still_there and op.result is not None:
            result = first_after.get(op.result)
        dest = destination_argument(op)
        written.append(None if result is None or dest is None else (dest.index, result))
    return written


def _returned_buffers(returned_after: Sequence[SSAValue]) -> Iterator[tuple[int, int]]:
    for position, value in enumerate(returned_after):
        dest = destination_argument(value.owner) if isinstance(value.owner, MaterializeInDestinationOp) else None
        if dest is not None:
            yield dest.index, position


def _flagged(before: FuncOp, after: FuncOp, *, only_changed: bool) -> list[tuple[int, int]]:
    """The alias flags that the pipeline decided, as (argument, result): none where it left all as they were."""
    was, now = read_donation(before).aliases, read_donation(after).aliases
    if was == now:
        return []
    return [pair for pair in sorted(now.items()) if not only_changed or was.get(pair[0]) != pair[1]]


def _why_no_flags(
    flagged: Sequence[tuple[int, int]], materialized: Sequence[tuple[int, int]], after: FuncOp
) -> str | None:
    inputs, outputs = after.function_type.inputs.data, after.function_type.outputs.data
    claimed = {result: argument for argument, result in materialized}
    for argument, result in flagged:
        if not 0 <= result < len(outputs):
            return f"it sets {ALIAS} = {result} at argument {argument}, but there is no result {result}"
        if claimed.setdefault(result, argument) != argument:
            return f"it gives result {result} the buffers of two arguments, {claimed[result]} and {argument}"
        sizes = nbytes(inputs[argument]), nbytes(outputs[result])
        if inputs[argument] != outputs[result] and (None in sizes or sizes[0] != sizes[1]):
            return (
                f"it gives result {result}, {to_text(outputs[result])}, the buffer of argument {argument}, "
                f"{to_text(inputs[argument])}"
            )
    return None


def _first_positions(values: Sequence[_T]) -> dict[_T, int]:
    return {value: position for position, value in reversed(tuple(enumerate(values)))}


def _why_unlike_aliases(
    added: Sequence[MaterializeInDestinationOp], written: Sequence[tuple[int, int] | None], after: FuncOp
) -> str | None:
    first_result: dict[int, int] = {}
    for op, pair in zip(added, written, strict=True):
        source, dest = op.source, destination_argument(op)
        if dest is None or dest.block is not after.body.block:
            return "it materializes into a value that is no argument of the function"
        if not fits_destination(op, dest):
            return f"it materializes {source.type} into argument {dest.index}, which is {dest.type}"
        if pair is None:
            return f"it writes a value into argument {dest.index} that the function does not return"
        if first_result.setdefault(pair[0], pair[1]) != pair[1]:
            return f"it writes two results, {first_result[pair[0]]} and {pair[1]}, into argument {pair[0]}"
    return None


def _compare_signatures(before: FuncOp, after: FuncOp) -> str | None:
    if before.function_type != after.function_type or before.sym_name != after.sym_name:
        return "it changes the signature of the function"
    if before.res_attrs != after.res_attrs or _other_attributes(before) != _other_attributes(after):
        return "it changes attributes of arguments or results besides donation"
    if _own_attributes(before) != _own_attributes(after):
        return "it changes attributes of the function"
    return None


def _own_attributes(func: FuncOp) -> dict[str, Attribute]:
    compared = {"function_type", "sym_name", "arg_attrs", "res_attrs"}
    return {name: value for name, value in {**func.attributes, **func.properties}.items() if name not in compared}


def _other_attributes(func: FuncOp) -> list[dict[str, Attribute]]:
    flags = {ALIAS, DONOR}
    return [
        {name: value for name, value in of_argument.items() if name not in flags}
        for of_argument in argument_attributes(func)
    ]


def _one_to_one(written: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    argument_of: dict[int, int] = {}
    used: set[int] = set()
    for argument, result in written:
        if argument not in used and result not in argument_of:
            argument_of[result] = argument
            used.add(argument)
    return tuple((argument, result) for result, argument in sorted(argument_of.items()))


def _materializations(
    added: Sequence[MaterializeInDestinationOp],
    written: Sequence[tuple[int, int] | None],
    returned_after: Sequence[SSAValue],
) -> Materializations:
    """The added operations that write a returned value into an argument; one of any other kind cannot be shown so."""
    shown = [(op, pair) for op, pair in zip(added, written, strict=True) if pair is not None]
    index_of: dict[SSAValue | None, int] = {op.result: index for index, (op, _) in enumerate(shown)}
    return Materializations(
        ops=tuple((result, argument) for _, (argument, result) in shown),
        returned=tuple(index_of.get(value) for value in returned_after),
    )
