"""A call again with arguments of other shapes: nothing of it is executed, and no array is kept for it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import jax

from donation_inspector.errors import IRError, PathError
from donation_inspector.frameworks import equinox, step
from donation_inspector.frameworks.nnx_names import is_object
from donation_inspector.frameworks.shapes import map_arrays, shape_of
from donation_inspector.xla.stage import bind, unwrap

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]
Shapes = Mapping[int, tuple[int, ...]]
"""The new shape of flat arguments, by leaf index."""

FIXED = (
    "The sizes of this program are fixed: it was given without the function that made it. Inspect the function itself "
    "with its arguments, arrays or jax.ShapeDtypeStruct: inspect(step, params, batch)."
)

_trees: Any = jax.tree
"""Public, partly untyped."""


class Resizable:
    """A call whose arguments are held as shapes, each a `jax.ShapeDtypeStruct` of its own."""

    def __init__(self, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._call: Call | None = None
        self._inputs: tuple[Any, ...] | None = None
        if unwrap(fn) is None:
            try:
                self._call = _as_shapes(fn, args, dict(kwargs))
            except Exception:
                # The user's own structures may not take shapes; the inspection is there all the same.
                self._call = None

    def at(self, shapes: Shapes) -> Call:
        """The function with these shapes among its arguments, for `step.lower`.

        Raises:
            IRError: what was traced was given without the function, or its arguments cannot be made anew.
            PathError: the array is inside an NNX object.
        """
        if self._call is None:
            raise IRError(FIXED)
        if self._inputs is None:
            self._inputs = step.lower(*self._call).inputs
        places = {id(self._inputs[leaf]): shape for leaf, shape in shapes.items()}
        found: set[int] = set()

        def one(leaf: Any) -> Any:
            if id(leaf) not in places:
                return leaf
            found.add(id(leaf))
            return leaf.update(shape=places[id(leaf)])

        fn, args, kwargs = self._call
        args, kwargs = _trees.map(one, (args, kwargs), is_leaf=is_object)
        if len(found) < len(shapes):
            raise PathError(
                "The size of an array that an NNX object holds, or that is no array of its own among the arguments, "
                "cannot be changed: name an argument that is an array or a structure of arrays."
            )
        return fn, args, kwargs


def _as_shapes(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    filtered = equinox.wrapped_call(fn, args, kwargs)
    if filtered is not None:
        # the function may itself hold arrays, and is a pytree
        return map_arrays(shape_of, _each_its_own(filtered))
    fn, args, bound = bind(fn, args, kwargs)
    args, kwargs = map_arrays(shape_of, _each_its_own((args, dict(bound))))
    return fn, args, kwargs


def _each_its_own(tree: Any) -> Any:
    def one(leaf: Any) -> Any:
        return copy.copy(leaf) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf

    return _trees.map(one, tree, is_leaf=is_object)
