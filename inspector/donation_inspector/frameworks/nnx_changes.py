"""What a function outside `nnx.jit` does to the NNX objects it is given: `jax.jit` hands it copies.

Modules are pytrees, so a step that returns what it changes is one that `jax.jit` takes. What it changes and does not
return is gone after the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import jax

from donation_inspector.errors import TraceError
from donation_inspector.frameworks import naming
from donation_inspector.frameworks.nnx_names import arrays_of_all, is_object, loaded

_jax: Any = jax
"""Public, partly untyped."""
_SHOWN = 3


def refuse_lost_changes(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse a function that changes NNX objects among its arguments and does not return the new values.

    It is traced once for it. What cannot be traced is left for others to tell.

    Raises:
        TraceError: with the objects, what is lost and what to do.
    """
    try:
        held = _held_objects(fn, args, kwargs)
        lost = _lost(inspect.unwrap(fn), args, kwargs) if held else []
    except Exception:
        return
    if lost is None or lost:
        first = ", ".join((lost or [])[:_SHOWN])
        more = f" and {len(lost or []) - _SHOWN} more" if len(lost or []) > _SHOWN else ""
        name = str(getattr(fn, "__name__", type(fn).__name__))
        raise TraceError(
            f"{name} takes an NNX object ({held[0]}) but is not jitted by nnx.jit: jax.jit loses what the step changes "
            f"in it{': ' if first else ''}{first}{more}. Decorate the step with @nnx.jit and inspect that, return what "
            "it changes, or pass nnx.split's state to a pure function."
        )


def _held_objects(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """`model: Net` for each NNX object in the arguments. A split state is no object."""
    state: type[Any] = loaded().State

    def is_whole(value: object) -> bool:
        return is_object(value) or isinstance(value, state)

    return [
        f"{argument}: {type(leaf).__name__}"
        for argument, value in naming.bound_arguments(fn, args, kwargs)
        for leaf in _jax.tree.leaves(value, is_leaf=is_whole)
        if is_object(leaf)
    ]


def _lost(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str] | None:
    """The paths whose new values are not returned; None where an object is no pytree, so that JAX cannot take it."""
    flat: tuple[list[Any], Any] = _jax.tree.flatten((args, dict(kwargs)))
    leaves, tree = flat
    if any(map(is_object, leaves)):
        return None
    traced = [index for index, leaf in enumerate(leaves) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
    found: list[str] = []

    def run(arrays: list[Any]) -> None:
        filled = dict(enumerate(leaves)) | dict(zip(traced, arrays, strict=True))
        copies, named = _jax.tree.unflatten(tree, filled.values())
        given = naming.bound_arguments(function, copies, named)
        before = {name.path: array for array, name in arrays_of_all(given)}
        returned = {id(leaf) for leaf in _jax.tree.leaves(function(*copies, **named))}
        after = ((name.path, array) for array, name in arrays_of_all(given))
        found.extend(path for path, array in after if array is not before.get(path) and id(array) not in returned)

    _jax.eval_shape(run, [leaves[index] for index in traced])
    return found
