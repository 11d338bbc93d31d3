"""The user's names in what `nnx.jit` packs: Variables by their path in the objects that hold them.

`nnx.jit` flattens objects to lists, `states[0][7]`, beside a graph that says what each entry is. What it returns is the
changed arguments, then what the function returns.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import jax

from donation_inspector.common.signature import updated
from donation_inspector.frameworks.naming import Place, numbered
from donation_inspector.xla.leaves import Name, distinct, key_path, leaves_with_path

_trees: Any = jax.tree
"""Public, partly untyped."""


def loaded() -> Any:
    """The module `flax.nnx` where the user has imported it, else None."""
    return sys.modules.get("flax.nnx")


def is_object(value: Any) -> bool:
    """Whether this is one of NNX's own: a Variable, or a Module, an Optimizer or whatever else holds some."""
    nnx = loaded()
    return nnx is not None and isinstance(value, nnx.Variable | nnx.Pytree)


def arrays(argument: str, value: Any, seen: set[int] | None = None) -> Iterator[tuple[Any, Name]]:
    """Each array in an argument with its name; what a Variable holds once, under the first path to it.

    `seen` has the ids of the Variables that earlier arguments hold, and takes in those of this one.
    """
    seen = set() if seen is None else seen
    for keys, leaf in leaves_with_path(value, is_leaf=is_object):
        if is_object(leaf):
            yield from _held(leaf, Name(argument, key_path(keys)), seen)
        else:
            yield leaf, Name(argument, key_path(keys))


def arrays_of_all(arguments: Iterable[tuple[str, Any]]) -> Iterator[tuple[Any, Name]]:
    """Each array in several arguments, that of a Variable which they share once."""
    seen: set[int] = set()
    for argument, value in arguments:
        yield from arrays(argument, value, seen)


def _held(value: Any, name: Name, seen: set[int]) -> Iterator[tuple[Any, Name]]:
    nnx = loaded()
    for path, node in nnx.iter_graph(value):
        rest = name.rest + "".join(map(_step, path))
        if not isinstance(node, nnx.Variable):
            if jax.tree_util.all_leaves([node]):
                yield node, Name(name.root, rest)
        elif id(node) not in seen:
            seen.add(id(node))
            added_by = _added_by(node)
            for inner, part in leaves_with_path(node.get_raw_value()):
                yield part, Name(name.root, rest + key_path(inner), added_by)


def _added_by(variable: Any) -> str | None:
    """NNX's own Variables: its random streams' keys and counts, and its Optimizer's count of steps."""
    nnx = loaded()
    if isinstance(variable, nnx.RngState):
        return "nnx.Rngs"
    return "nnx.Optimizer" if type(variable) is nnx.OptState else None


def _step(key: Any) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f".{key}"
    return f"[{key!r}]"


def results_in_graph_mode(traced: Any, arguments: Sequence[Name], otherwise: Sequence[Name]) -> Sequence[Name]:
    """The name of each flat result of a traced `nnx.jit` function, given those of its arguments.

    What it returns is (the positional arguments as the step leaves them, those by name, what the function returns),
    each object packed as a graph. `otherwise` has JAX's own names.
    """
    graphlib: Any = sys.modules["flax.nnx.graphlib"]
    objects = graphlib.IndexMap()

    def unpacked(node: Any) -> Any:
        if not _is_packed(node):
            return node
        first, *more = node.states
        state: Any = graphlib.FlatState.merge(first, *more) if isinstance(first, graphlib.FlatState) else first
        return graphlib.unflatten(node.graphdef, state, index_ref=objects)

    given, _ = numbered(traced.args_info)
    made = numbered(traced.out_info)
    # What is static is left out of the former alone, and holds no object.
    roots = [_root(value, arguments) for value in given if _holds_packed(value)]
    holding = [_holds_packed(value) for value in made[0]]
    positional, by_name, returned = _trees.map(unpacked, made, is_leaf=_is_packed)
    objects_given = [value for value, holds in zip(positional, holding, strict=True) if holds]
    changed = arrays_of_all([*zip(roots, objects_given, strict=True), *by_name.items(), ("", returned)])
    paths = {name.path for name in arguments}
    return _placed(((part, _changed(name, paths) if name.root else name) for part, name in changed), otherwise)


def _is_packed(node: object) -> bool:
    return isinstance(node, sys.modules["flax.nnx.extract"].NodeStates)


def _holds_packed(value: Any) -> bool:
    return any(map(_is_packed, _trees.leaves(value, is_leaf=_is_packed)))


def _root(value: Any, arguments: Sequence[Name]) -> str:
    """What the argument is called that holds these places; one that only shares what earlier ones hold has none."""
    places: list[Place] = _trees.leaves(value)
    return arguments[places[0].index].root if places else "args"


def _changed(name: Name, paths: Collection[str]) -> Name:
    """What a step leaves under an argument's name: its new value, or what was not there before."""
    if name.path in paths:
        return Name("", updated(name.path), name.added_by, updates=name.path)
    return Name("", f"{name.path}, new", name.added_by)


def _placed(found: Iterable[tuple[Any, Name]], otherwise: Sequence[Name]) -> Sequence[Name]:
    names = {part.index: name for part, name in found if isinstance(part, Place)}
    named = [names.get(index, name) for index, name in enumerate(otherwise)]
    return distinct([name if name.path else Name("", "result") for name in named], otherwise)


def results_in_tree_mode(traced: Any, arguments: Sequence[Name], otherwise: Sequence[Name]) -> Sequence[Name]:
    """As `results_in_graph_mode`, where Modules are pytrees: (what the function returns, the changed Variables)."""
    returned, updates = numbered(traced.out_info)
    given: list[tuple[Any, Place]] = leaves_with_path(numbered(traced.args_info))
    at = {key_path(keys): arguments[place.index] for keys, place in given}

    def changes() -> Iterator[tuple[Any, Name]]:
        for place, part in _places_of_updates(updates):
            if place in at:
                name = at[place]
                yield part, Name("", updated(name.path), name.added_by, updates=name.path)

    return _placed((*changes(), *arrays("", returned)), otherwise)


def _places_of_updates(updates: Any) -> Iterator[tuple[str, Any]]:
    """Where in the arguments each changed array belongs: in their own structure, or by a list of keys beside it."""
    kind: type[Any] | None = getattr(sys.modules["flax.nnx.extract"], "Updates", None)
    for keys, node in leaves_with_path(updates, is_leaf=lambda node: kind is not None and isinstance(node, kind)):
        if kind is None or not isinstance(node, kind):
            yield key_path(keys), node
            continue
        for key, held in node:
            for inner, part in leaves_with_path(held):
                yield _place_of_key(key) + key_path(inner), part


def _place_of_key(key: Any) -> str:
    """`jit_partial` counts the Variables that it holds, as its first argument, and gives their bare values."""
    if isinstance(key, int):
        return f"[0][0][{key}].value"
    return ("[0]" if key[0].name == "args" else "[1]") + key_path(tuple(key[1:]))
