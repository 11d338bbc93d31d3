"""Whether a saved Inspection's tables agree with each other and with its module: what types and ranges cannot say."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from donation_inspector.common.labels import type_label
from donation_inspector.files.saved_format import Pairs, SavedLeaf, SavedWay, State
from donation_inspector.ir.native import entry_operation
from donation_inspector.ir.size import of_text

_STATIC = ("static_argnames", "static_argnums", "keep_unused")
_TREE = (ast.Tuple, ast.Constant, ast.Load)
_SPEC = (ast.Expression, ast.Call, ast.Tuple, ast.Constant, ast.Name, ast.Attribute, ast.Load)
_LONGEST = 10_000
"""Characters of a line of code: Python's own parser takes a hundred times as many bytes."""
_EACH = 300
"""Characters of a tree's text for each of its leaves."""


def problems(state: State, module: Any, hlos: int) -> Iterator[str]:
    """What cannot be true, the most basic first; `hlos` is how many HloProtos are in the file.

    Raises IRError where the module has no entry function.
    """
    inputs, outputs = _types(entry_operation(module))
    signature = state.signature
    counted = module.operation.attributes
    if "mhlo.num_partitions" in counted:
        partitions = str(counted["mhlo.num_partitions"]).partition(" ")[0]
        if partitions != str(signature.devices):
            yield f"the program is for {partitions} devices, not for {signature.devices}"
    yield from _leaves("argument", signature.arguments, signature.implicit_arguments, inputs)
    yield from _leaves("result", signature.results, signature.implicit_results, outputs)
    leaves = len(signature.arguments)
    tables = [
        ("donated", state.donated),
        *(("decisions", (*one.leaves, *one.warned)) for one in state.decisions),
        *(("verified", (*one.donated, *(row.index for row in one.arguments))) for one in state.verified),
    ]
    yield from (f"{name} names argument {max(those)} of {leaves}" for name, those in tables if _beyond(those, leaves))
    donations = [
        *(("decisions", one.donation) for one in state.decisions),
        *(("compiled", one.donation) for one in state.compiled),
        *(("measurements", one.donation) for one in state.measurements),
        *(("measurements", one.made) for one in state.measurements if one.made is not None),
    ]
    for name, pairs in donations:
        yield from _donation(name, pairs, len(inputs), len(outputs))
    for one in state.compiled:
        yield from _donation("compiled", (one.fields.input_output_alias, ()), len(inputs), len(outputs))
        if one.hlo is not None and one.hlo >= hlos:
            yield f"compiled names HloProto {one.hlo} of {hlos}"
    if state.way is not None:
        yield from _way(state.way)
    yield from _code(state)


def _types(function: Any) -> tuple[list[str], list[str]]:
    kind = function.attributes["function_type"].value
    return [str(one) for one in kind.inputs], [str(one) for one in kind.results]


def _leaves(what: str, leaves: Sequence[SavedLeaf], implicit: Sequence[Any], types: Sequence[str]) -> Iterator[str]:
    if [leaf.index for leaf in leaves] != list(range(len(leaves))):
        yield f"the {what}s are not counted from 0"
    places = [one.position for one in (*leaves, *implicit) if one.position is not None]
    if sorted(places) != list(range(len(types))):
        yield f"the {what}s are not those of the program, which has {len(types)}"
        return
    for leaf in leaves:
        if len(leaf.shard_shape) != len(leaf.shape):
            yield f"{what} {leaf.index} has parts of another rank"
        elif leaf.position is not None and not _is_of_type(leaf, types[leaf.position]):
            yield f"{what} {leaf.index} is {types[leaf.position]}, not {type_label(leaf.dtype, leaf.shape)}"


def _is_of_type(leaf: SavedLeaf, type: str) -> bool:
    """Whether the program's type is a leaf's: a typed key is the integers behind it there, a float0 is a bool."""
    found = of_text(type)
    if found is None:
        # what numpy has no word for is not compared
        return True
    shape, dtype, item = found
    if leaf.dtype.startswith("key<"):
        return shape[: len(leaf.shape)] == leaf.shape and dtype == "uint32"
    size: int | None = item
    for extent in leaf.shape:
        size = None if size is None or extent is None else size * extent
    of_size = leaf.nbytes is None or size is None or leaf.nbytes == size or leaf.dtype == "float0"
    return shape == leaf.shape and leaf.dtype in (dtype, "float0") and of_size


def _beyond(numbers: Iterable[int], count: int) -> bool:
    return any(number >= count for number in numbers)


def _donation(name: str, pairs: Pairs, arguments: int, results: int) -> Iterator[str]:
    aliases, donors = pairs
    given, taken = [argument for argument, _ in aliases], [result for _, result in aliases]
    if _beyond((*given, *donors), arguments) or _beyond(taken, results):
        yield f"{name} pairs an argument or a result that the program does not have"
    if len(set(given)) < len(given):
        yield f"{name} pairs an argument twice"


def _way(way: SavedWay) -> Iterator[str]:
    """That the words which are written into a line of code are names and plain values."""
    if not way.static:
        return
    tree = _parsed(f"f({way.static})")
    call = tree.body if tree is not None else None
    if not isinstance(call, ast.Call) or call.args or not all(_is_plain(keyword) for keyword in call.keywords):
        yield "way.static is no part of a jit call"


def _is_plain(keyword: ast.keyword) -> bool:
    return keyword.arg in _STATIC and _is_made_of(keyword.value, _TREE)


def _code(state: State) -> Iterator[str]:
    returned, results = state.signature.returned, len(state.signature.results)
    if returned is not None:
        try:
            numbers = tuple(
                _numbers(ast.literal_eval(returned) if len(returned) <= _LONGEST + _EACH * results else returned)
            )
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            yield "signature.returned is no tree of results"
        else:
            if not all(0 <= number < results for number in numbers):
                yield f"signature.returned names a result that is none of {results}"
    for leaf in (*state.signature.arguments, *state.signature.results):
        if leaf.spec is not None and not _is_spec(leaf.spec):
            yield f"{leaf.spec[:40]!r} is no PartitionSpec"


def _numbers(tree: Any) -> Iterator[int]:
    """The results in a tree. Raises ValueError where something else is."""
    if isinstance(tree, int):
        yield tree
    elif isinstance(tree, dict):
        for part in cast("dict[Any, Any]", tree).values():
            yield from _numbers(part)
    elif isinstance(tree, tuple | list | set):
        for part in cast("Iterable[Any]", tree):
            yield from _numbers(part)
    elif tree is not None:
        raise ValueError


def _is_spec(text: str) -> bool:
    tree = _parsed(text)
    names = {getattr(node, "id", None) or getattr(node, "attr", None) for node in ast.walk(tree)} if tree else {None}
    return tree is not None and _is_made_of(tree, _SPEC) and names <= {None, "P", "UNCONSTRAINED"}


def _parsed(text: str) -> ast.Expression | None:
    if len(text) > _LONGEST:
        return None
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_made_of(tree: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return all(isinstance(node, kinds) for node in ast.walk(tree))
