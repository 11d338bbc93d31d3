"""The user's names for flat arrays that a framework has packed into structures of its own, found by identity."""

from __future__ import annotations

import inspect
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from donation_inspector.xla.leaves import Name, distinct

_trees: Any = jax.tree
"""Public, partly untyped."""


def bound_arguments(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(`model`, value), (`args[0]`, value), … for a call, by the function's signature where it has one."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except Exception:  # what it is asked about is a user's object, which may raise anything
        return [*((f"args[{i}]", value) for i, value in enumerate(args)), *kwargs.items()]
    named: list[tuple[str, Any]] = []
    for parameter, value in bound.arguments.items():
        kind = signature.parameters[parameter].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            named.extend((f"{parameter}[{i}]", item) for i, item in enumerate(value))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            named.extend((f"{parameter}[{key!r}]", item) for key, item in value.items())
        else:
            named.append((parameter, value))
    return named


@dataclass(frozen=True, eq=False)
class Place:
    """Stands for one flat array in a structure that is only looked at; `index` counts the arrays."""

    index: int


def numbered(tree: Any) -> Any:
    """The pytree with a `Place` for each leaf."""
    structure: Any = _trees.structure(tree)
    return _trees.unflatten(structure, [Place(index) for index in range(structure.num_leaves)])


Found = tuple[Name | None, ...] | None
"""The user's name of each flat input, None where it is nobody's; None altogether where the inputs are not known."""


def by_identity(inputs: Sequence[Any] | None, arrays: Iterable[tuple[Any, Name]]) -> Found:
    """The name of each flat input, found as the very array that the user holds under it.

    An array that is held in several places takes its names in order, one each time that it goes in. Python's numbers
    are left out: equal ones are often the same object. Names are kept and no arrays, as an inspector must not fill the
    device.
    """
    if inputs is None:
        return None
    # all of them stay alive until the last is compared, so that no id comes up again
    held = [(array, name) for array, name in arrays if hasattr(array, "shape") and hasattr(array, "dtype")]
    names: defaultdict[int, deque[Name]] = defaultdict(deque)
    for array, name in held:
        names[id(array)].append(name)
    return tuple(names[id(value)].popleft() if names.get(id(value)) else None for value in inputs)


def rename(found: Found, names: Sequence[Name]) -> Sequence[Name]:
    """The found name of each flat input, JAX's own name where there is none."""
    if found is None or len(found) != len(names):
        return names
    return distinct([known or name for known, name in zip(found, names, strict=True)], names)
