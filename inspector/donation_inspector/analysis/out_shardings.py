"""The `out_shardings` with which JAX would pair what it leaves to XLA now, or cannot use, on several devices.

JAX pairs an argument with a result only where that one's sharding is told (`_set_up_aliases` in
jax/_src/interpreters/mlir.py); `with_sharding_constraint` inside the function does not tell it. What is advised here is
paired again by that rule first, so that an advice which JAX's order would defeat is never given.
"""

from __future__ import annotations

import ast
import dataclasses
from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from donation_inspector.analysis.paths import argument_name, result_names
from donation_inspector.common.signature import Leaf, Signature


@dataclass(frozen=True, slots=True)
class Advice:
    """`given` maps a result index to the argument whose sharding it should have; `pairs` maps argument indices to
    result indices as JAX would pair them then, those that it pairs already among them."""

    given: Mapping[int, Leaf]
    pairs: Mapping[int, int]


def left_to_xla(leaf: Leaf) -> bool:
    """Whether XLA chooses this leaf's sharding, in some dimension at least. True of all where there is one device."""
    return leaf.sharding is None or "UNCONSTRAINED" in (leaf.spec or "")


def advise(signature: Signature, donated: frozenset[int]) -> Advice:
    """The shardings of results that pair most of the `donated` arguments, by leaf index; nothing where none helps."""
    arguments = [leaf for leaf in signature.arguments if leaf.position is not None]
    asked = [leaf for leaf in arguments if leaf.index in donated]
    now = _pair(arguments, asked, signature.results)
    nothing = Advice(MappingProxyType({}), MappingProxyType(now))
    if any(implicit.kind == "ref" for implicit in signature.implicit_results):
        return nothing
    given = _choose([leaf for leaf in asked if leaf.index not in now and _can_be_followed(leaf)], signature, now)
    while given:
        results = [_sharded_as(leaf, given.get(leaf.index)) for leaf in signature.results]
        pairs = _pair(arguments, asked, results)
        if not pairs.keys() >= now.keys():
            return nothing
        useful = {result: argument for result, argument in given.items() if argument.index in pairs}
        if len(useful) == len(given):
            return Advice(MappingProxyType(given), MappingProxyType(pairs))
        given = useful
    return nothing


def _pair(arguments: Sequence[Leaf], asked: Sequence[Leaf], results: Sequence[Leaf]) -> dict[int, int]:
    """JAX's first round: the first donated argument of a key meets the first result of that key."""
    memory_counts = all(leaf.sharding is not None for leaf in (*arguments, *results))

    def key(leaf: Leaf) -> Hashable:
        shape = leaf.shape if leaf.sharding is None else leaf.shard_shape
        return shape, leaf.dtype, leaf.memory if memory_counts else None

    waiting: defaultdict[Hashable, deque[Leaf]] = defaultdict(deque)
    for leaf in asked:
        if None not in leaf.shape:
            waiting[key(leaf)].append(leaf)
    pairs: dict[int, int] = {}
    for result in results:
        alike = waiting.get(key(result))
        if alike:
            argument = alike.popleft()
            if argument.layout == result.layout and not left_to_xla(result):
                pairs[argument.index] = result.index
    return pairs


def _can_be_followed(argument: Leaf) -> bool:
    return argument.spec is not None and not left_to_xla(argument) and argument.memory is argument.layout is None


def _choose(waiting: Sequence[Leaf], signature: Signature, now: Mapping[int, int]) -> dict[int, Leaf]:
    """For each waiting argument a result of its shape and dtype: one that XLA shards first, one of its name first."""
    taken = set(now.values())
    given: dict[int, Leaf] = {}
    for by_xla in (True, False):
        free = [
            result
            for result in signature.results
            if result.index not in taken and result.memory is result.layout is None and left_to_xla(result) is by_xla
        ]
        named: dict[Hashable, Leaf] = {}
        for result in free:
            for name in result_names(result):
                named.setdefault((result.shape, result.dtype, name), result)
        nameless: list[Leaf] = []
        for argument in waiting:
            result = named.get((argument.shape, argument.dtype, argument_name(argument)))
            if result is None or result.index in given:
                nameless.append(argument)
            else:
                given[result.index] = argument
        in_order: defaultdict[Hashable, deque[Leaf]] = defaultdict(deque)
        for result in free:
            if result.index not in given:
                in_order[result.shape, result.dtype].append(result)
        waiting = []
        for argument in nameless:
            alike = in_order[argument.shape, argument.dtype]
            if alike:
                given[alike.popleft().index] = argument
            else:
                waiting.append(argument)
    return given


def _sharded_as(result: Leaf, argument: Leaf | None) -> Leaf:
    if argument is None:
        return result
    return dataclasses.replace(
        result,
        sharding=argument.sharding,
        spec=argument.spec,
        mesh=argument.mesh,
        shard_shape=argument.shard_shape,
    )


# ---- as code


def has_several_meshes(signature: Signature) -> bool:
    """Whether shardings name more than one mesh: then each has to be told apart."""
    return len({leaf.mesh for leaf in (*signature.arguments, *signature.results)} - {None}) > 1


def sharding_code(leaf: Leaf, several_meshes: bool) -> str:
    """The leaf's sharding as an expression: "NamedSharding(mesh, P('x', None))". It must have a spec."""
    kind = "" if leaf.memory is None else f", memory_kind={leaf.memory!r}"
    return f"NamedSharding({_mesh_name(leaf, several_meshes)}, {leaf.spec}{kind})"


def _mesh_name(leaf: Leaf, several_meshes: bool) -> str:
    """`mesh`, but `mesh_x4_y2` where the program has several."""
    if not several_meshes:
        return "mesh"
    axes = "_".join("".join(axis.split(": ")) for axis in (leaf.mesh or "").split(", "))
    return f"mesh_{axes}" if f"mesh_{axes}".isidentifier() else "mesh"


def out_shardings_code(signature: Signature, given: Mapping[int, Leaf]) -> str | None:
    """The value of `out_shardings=` that gives results these arguments' shardings and leaves all others as they are.

    A pytree prefix where all below it is alike. None where a result's sharding, layout or container has no short form
    in code, or nothing is known about the tree that the function returns.
    """
    if signature.returned is None:
        return None
    several_meshes = has_several_meshes(signature)
    codes: dict[int, str] = {}
    for result in signature.results:
        as_argument = _sharded_as(result, given.get(result.index))
        if as_argument.sharding is None:
            codes[result.index] = "None"
        elif as_argument.spec is None or as_argument.layout is not None or left_to_xla(as_argument):
            return None
        else:
            codes[result.index] = sharding_code(as_argument, several_meshes)
    return _tree_code(ast.literal_eval(signature.returned), codes)


def _tree_code(tree: Any, codes: Mapping[int, str]) -> str | None:
    alike = {codes[index] for index in _below(tree)}
    if len(alike) < 2:
        return alike.pop() if alike else "None"
    if isinstance(tree, dict):
        items = cast("dict[Any, Any]", tree).items()
        return _joined("{", [(f"{key!r}: ", _tree_code(part, codes)) for key, part in items], "}")
    if isinstance(tree, list):
        return _joined("[", [("", _tree_code(part, codes)) for part in cast("list[Any]", tree)], "]")
    if isinstance(tree, tuple):
        parts = [("", _tree_code(part, codes)) for part in cast("tuple[Any, ...]", tree)]
        return _joined("(", parts, ",)" if len(parts) == 1 else ")")
    return None


def _joined(opening: str, parts: Sequence[tuple[str, str | None]], closing: str) -> str | None:
    if any(code is None for _, code in parts):
        return None
    return f"{opening}{', '.join(f'{ahead}{code}' for ahead, code in parts)}{closing}"


def _below(tree: Any) -> Iterator[int]:
    if isinstance(tree, int):
        yield tree
    elif isinstance(tree, dict):
        for part in cast("dict[Any, Any]", tree).values():
            yield from _below(part)
    elif isinstance(tree, tuple | list | set):
        for part in cast("tuple[Any, ...]", tree):
            yield from _below(part)
