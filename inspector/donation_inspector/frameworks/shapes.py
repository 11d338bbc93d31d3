"""A call with shapes in place of arrays: the user's own structures and objects, never changed, hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from donation_inspector.frameworks.nnx_names import is_object, loaded
from donation_inspector.xla import internals

_trees: Any = jax.tree
"""Public, partly untyped."""


def is_array(value: Any) -> bool:
    """Whether a leaf takes memory that a shape does not."""
    return isinstance(value, jax.Array | np.ndarray)


def is_deleted(value: Any) -> bool:
    """Whether a leaf is an array whose buffer is gone: donated, or deleted by hand."""
    return isinstance(value, jax.Array) and not isinstance(value, internals.Tracer) and value.is_deleted()


def shape_of(array: Any) -> jax.ShapeDtypeStruct:
    """What JAX traces in place of the array, also after it was deleted: type, weak type, sharding where it is fixed."""
    if not isinstance(array, jax.Array):
        return jax.ShapeDtypeStruct(array.shape, jax.dtypes.canonicalize_dtype(array.dtype))
    sharding = array.sharding if array.committed else None
    # an array of typed keys has no weak type
    weak = bool(getattr(array, "weak_type", False))
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding, weak_type=weak)


def arrays(tree: Any) -> list[Any]:
    """Every array in a pytree, those that NNX objects hold among them; one that is held twice by NNX is there once."""
    plain, objects = _parts(tree)
    held: list[Any] = _trees.leaves(loaded().split(objects)[1]) if objects else []
    return [leaf for leaf in (*plain, *held) if is_array(leaf)]


def map_arrays(change: Callable[[Any], Any], tree: Any) -> Any:
    """The pytree with each array changed. NNX objects that hold one are made anew, with what they share."""

    def in_state(leaf: Any) -> Any:
        return change(leaf) if is_array(leaf) else leaf

    _, objects = _parts(tree)
    anew: dict[int, Any] = {}
    if objects:
        graph, state = loaded().split(objects)
        changed = _trees.map(in_state, state)
        kept = zip(_trees.leaves(changed), _trees.leaves(state), strict=True)
        if any(new is not old for new, old in kept):
            made = loaded().merge(graph, changed)
            anew = {id(old): new for old, new in zip(objects, made, strict=True)}

    def one(leaf: Any) -> Any:
        return anew.get(id(leaf), leaf) if not is_array(leaf) else change(leaf)

    return _trees.map(one, tree, is_leaf=is_object)


def _parts(tree: Any) -> tuple[list[Any], list[Any]]:
    """The leaves, and the NNX objects among them, each once."""
    leaves: list[Any] = _trees.leaves(tree, is_leaf=is_object)
    objects = {id(leaf): leaf for leaf in leaves if is_object(leaf)}
    return [leaf for leaf in leaves if id(leaf) not in objects], list(objects.values())
