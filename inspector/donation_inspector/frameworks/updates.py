"""Which results of a function are its arguments' new values, where that is plain from what it takes and returns.

`state -> state`, `params, opt_state, batch -> params, opt_state, loss`: what is returned has the structure, the shapes
and the types of a whole argument. Gradients have those of the parameters, too. So it also holds something that is no
floating-point number, as a count of steps, and that nobody differentiates; or it comes back under the argument's name;
or each of its leaves is the argument's own plus or minus something, as `optax.apply_updates` makes it.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp

from donation_inspector.xla.leaves import Name

_trees: Any = jax.tree
_trees_util: Any = jax.tree_util
"""Public, partly untyped."""

Written = tuple[str | None, ...]
"""The variable of each value in `return params, opt_state, loss`, None for what is none; one entry for `return x`."""
Sums = Sequence[frozenset[str]]
_Literal: Any = jax.extend.core.Literal


@dataclass(frozen=True, eq=False)
class Whole:
    """One whole argument, or one whole value that is returned: what it is called, and which flat leaves it has."""

    name: str | None
    leaves: tuple[int, ...]
    structure: Any
    types: tuple[tuple[Any, Any], ...]

    @property
    def is_container(self) -> bool:
        """Whether it is more than a bare array."""
        return not _trees_util.treedef_is_leaf(self.structure)

    @property
    def is_state(self) -> bool:
        """Whether it is a container with something in it that nobody differentiates."""
        return self.is_container and not all(jnp.issubdtype(dtype, jnp.inexact) for _, dtype in self.types)

    def is_like(self, other: Whole) -> bool:
        """Whether the two have the same structure, shapes and types."""
        if not self.leaves or self.types != other.types:
            return False
        try:
            return bool(self.structure == other.structure)
        except ValueError:
            # arrays among what the structure keeps aside have no one answer
            return False


def with_updates(
    traced: Any, written: Written, sums: Sums, arguments: Sequence[Name], results: Sequence[Name]
) -> Sequence[Name]:
    """The results' names, with `updates` where one is plainly an argument's new value.

    `traced` is a `jax.stages.Traced`; `written` is what the return statement says, () where that is not known; `sums`
    has for each result the paths of the arguments that it is plus or minus something.
    """
    if len(_trees.leaves(traced.args_info)) != len(arguments):
        return results
    positional, by_name = traced.args_info
    given = (*positional, *(by_name[key] for key in sorted(by_name)))
    roots = list(dict.fromkeys(name.root for name in arguments))
    taken = list(_wholes([value for value in given if _trees.leaves(value)], roots))
    (whole,) = _wholes([traced.out_info], written)
    if len(whole.leaves) != len(results):
        return results
    returned = [whole] if any(one.is_like(whole) for one in taken) else list(_wholes(_parts(traced.out_info), written))
    named = list(results)

    def is_sum(argument: Whole, result: Whole) -> bool:
        leaves = zip(argument.leaves, result.leaves, strict=True)
        return argument.is_container and all(arguments[old].path in sums[new] for old, new in leaves)

    for argument, result in _pairs(taken, returned, is_sum):
        for old, new in zip(argument.leaves, result.leaves, strict=True):
            known = arguments[old]
            named[new] = named[new]._replace(updates=known.path, added_by=known.added_by)
    return named


def _wholes(values: Sequence[Any], names: Sequence[str | None]) -> Iterator[Whole]:
    first = 0
    for number, value in enumerate(values):
        leaves, structure = _trees.flatten(value)
        name = names[number] if len(names) == len(values) else None
        types = tuple((tuple(leaf.shape), leaf.dtype) for leaf in leaves)
        yield Whole(name, tuple(range(first, first + len(leaves))), structure, types)
        first += len(leaves)


def _parts(value: Any) -> list[Any]:
    """What a container holds, in JAX's order; the value itself where it is none."""

    def is_part(node: object) -> bool:
        return node is not value

    return _trees.leaves(value, is_leaf=is_part)


def _pairs(
    taken: Sequence[Whole], returned: Sequence[Whole], is_sum: Callable[[Whole, Whole], bool]
) -> Iterator[tuple[Whole, Whole]]:
    for argument in taken:
        alike = [result for result in returned if result.is_like(argument)]
        by_name = [result for result in alike if result.name == argument.name]
        others = [other for other in taken if other.is_like(argument)]
        if len(by_name) == 1:
            yield argument, by_name[0]
        elif len(alike) == len(others) == 1 and (argument.is_state or is_sum(argument, alike[0])):
            yield argument, alike[0]


def sums_of(traced: Any, names: Sequence[Name]) -> Sums:
    """For each result of a `jax.stages.Traced`, the arguments that it is plus or minus something, by path."""
    jaxpr = traced.jaxpr.jaxpr
    if len(names) != len(jaxpr.invars):
        return [frozenset[str]()] * len(jaxpr.outvars)
    terms = _Terms()
    return [frozenset(names[place].path for place in terms.of(jaxpr, one, True)) for one in jaxpr.outvars]


class _Terms:
    """Which inputs of a jaxpr its values are as they stand, or plus or minus something; inner jits are gone into."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[dict[Any, Any], dict[Any, int]]] = {}

    def of(self, jaxpr: Any, value: Any, in_sum: bool) -> set[int]:
        """The inputs that a value is: with something added or subtracted where `in_sum`, else as they stand."""
        if isinstance(value, _Literal):
            return set()
        if id(jaxpr) not in self._known:
            made = {out: equation for equation in jaxpr.eqns for out in equation.outvars}
            self._known[id(jaxpr)] = made, {given: place for place, given in enumerate(jaxpr.invars)}
        made, places = self._known[id(jaxpr)]
        if value not in made:
            return {places[value]} if value in places and not in_sum else set()
        equation, given = made[value], made[value].invars
        match equation.primitive.name:
            case "add" if in_sum:
                return self.of(jaxpr, given[0], False) | self.of(jaxpr, given[1], False)
            case "sub" if in_sum and not isinstance(given[1], _Literal) and given[1] in made:
                # parameters minus a rate times a gradient; a difference to something else is no new value
                is_change = made[given[1]].primitive.name == "mul"
                return self.of(jaxpr, given[0], False) if is_change else set()
            case "convert_element_type" | "copy" | "copy_p":
                return self.of(jaxpr, given[0], in_sum)
            case "jit" | "pjit":
                inner = equation.params["jaxpr"].jaxpr
                out = inner.outvars[equation.outvars.index(value)]
                found = {place for term in self.of(inner, out, False) for place in self.of(jaxpr, given[term], in_sum)}
                summed = self.of(inner, out, True) if in_sum else set[int]()
                return found | {place for term in summed for place in self.of(jaxpr, given[term], False)}
            case _:
                return set()


def written_names(fn: Any) -> Written:
    """What the return statements of a function say, where its source is there and they all say the same; else ()."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    try:
        with warnings.catch_warnings():
            # Python has warned about the source already
            warnings.simplefilter("ignore")
            tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(fn))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return ()
    function = tree.body[0] if tree.body else None
    if not isinstance(function, ast.FunctionDef):
        return ()
    said = {_names_of(one.value) for one in _returns(function.body)}
    return said.pop() if len(said) == 1 else ()


def _returns(body: Sequence[ast.AST]) -> Iterator[ast.Return]:
    for node in body:
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _returns(list(ast.iter_child_nodes(node)))


def _names_of(value: ast.expr | None) -> Written:
    parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
    return tuple(part.id if isinstance(part, ast.Name) else None for part in parts)
