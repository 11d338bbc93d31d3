"""A function that is jitted by JAX itself: its own names, with what its frameworks' values are called.

A linen `TrainState`, optax states and `nnx.split`'s states are pytrees, so JAX's paths are the user's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from donation_inspector.frameworks import naming
from donation_inspector.frameworks.nnx_names import arrays_of_all, is_object
from donation_inspector.frameworks.updates import sums_of, with_updates, written_names
from donation_inspector.xla import lowering
from donation_inspector.xla.leaves import Name, key_path, leaves_with_path
from donation_inspector.xla.lowering import Lowered
from donation_inspector.xla.stage import stage

_PACKED = ("args", "flat_args")
"""What `jax.pmap` calls all that it is given, one leaf after the other, in JAX 0.9 and later."""


def lower(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Lowered:
    """Trace and lower it; a result that is an argument's new value is known as such.

    Raises:
        TraceError: as `lowering.lower`.
    """
    staged = stage(fn, args, kwargs)
    found = naming.by_identity(staged.inputs, arrays_of_all(_with_variables(fn, args, kwargs)))
    # what is kept for naming must not hold the inputs
    written, traced = written_names(fn), staged.traced
    given = () if kwargs else _named_leaves(fn, args)

    def rename(arguments: Sequence[Name], results: Sequence[Name]) -> lowering.Names:
        packed = found is None and all(name.root.partition("[")[0] in _PACKED for name in arguments)
        named = naming.rename(given if packed else found, arguments)
        return named, results if traced is None else with_updates(
            traced, written, sums_of(traced, named), named, results
        )

    return lowering.from_stage(staged, rename)


def _named_leaves(fn: Any, args: tuple[Any, ...]) -> tuple[Name, ...]:
    """The leaves of a call by position, as the function's signature calls them."""
    return tuple(
        Name(name, key_path(keys))
        for name, value in naming.bound_arguments(fn, args, {})
        for keys, _ in leaves_with_path(value)
    )


def _with_variables(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The arguments that hold NNX Variables, which JAX's paths go into: `state['l1']['kernel'].value`."""
    given = naming.bound_arguments(fn, args, kwargs) if args or kwargs else []
    trees: Any = jax.tree
    return [
        (name, value)
        for name, value in given
        if any(is_object(leaf) for leaf in trees.leaves(value, is_leaf=is_object))
    ]
