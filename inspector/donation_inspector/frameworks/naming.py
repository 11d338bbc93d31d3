"""The user's names for flat arrays that a framework has packed into structures of its own, found by identity."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from donation_inspector.xla.leaves import Name, distinct


def bound_arguments(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """(`model`, value), (`args[0]`, value), … for a call, by the function's signature where it has one."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
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


def by_identity(arrays: Iterable[tuple[Any, Name]]) -> dict[int, Name]:
    """The first name of each array object. Python's numbers are left out: equal ones are often the same object."""
    found: dict[int, Name] = {}
    for array, name in arrays:
        if hasattr(array, "shape") and hasattr(array, "dtype"):
            found.setdefault(id(array), name)
    return found


def rename(inputs: Sequence[Any] | None, known: Mapping[int, Name], names: Sequence[Name]) -> Sequence[Name]:
    """The known name of each flat input, JAX's own name where there is none."""
    if inputs is None or len(inputs) != len(names):
        return names
    return distinct([known.get(id(value), name) for value, name in zip(inputs, names, strict=True)], names)
