"""Reading what an expression stands for without running anything of the user's: names, attributes, items, literals.

What would be computed on the device is read as its shape: an item of an array, `jnp.ones(3)`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

_BUILT_IN: tuple[Any, ...] = (list, tuple, dict, np.ndarray)
_ITEMS = tuple(kind.__getitem__ for kind in _BUILT_IN)
"""How an item is taken where this runs no code of the user's and nothing on a device."""
_LIBRARIES = ("flax", "numpy")
"""Whose containers are as harmless."""
_SHAPES = ("array", "asarray", "arange", "empty", "eye", "full", "identity", "linspace", "ones", "tri", "zeros")
_MAKERS: tuple[Any, ...] = tuple(
    getattr(cast(Any, jnp), name + like) for name in _SHAPES for like in ("", "_like") if hasattr(jnp, name + like)
)
"""The functions of `jax.numpy` that make an array of little; those of `jax.random` do so, too."""
_operator: Any = operator
"""Partly untyped."""

_OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: _operator.add,
    ast.Sub: _operator.sub,
    ast.Mult: _operator.mul,
    ast.Div: _operator.truediv,
    ast.FloorDiv: _operator.floordiv,
    ast.Mod: _operator.mod,
    ast.LShift: _operator.lshift,
}
_VALUES = (jax.Array, jax.ShapeDtypeStruct, np.generic, np.dtype, bool, int, float, complex, str)
_TYPES = ("builtins", "jax", "ml_dtypes", "numpy")
"""Whose classes stand for a dtype."""


class NotReadable(Exception):
    """An expression that would have to be run; `code` is the part of it."""

    def __init__(self, node: ast.AST) -> None:
        self.code = ast.unparse(node)
        super().__init__(self.code)


def read(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    """The value of an expression in a scope: one that is bound to it now.

    An item of a JAX array is read as its shape, because to take it would run on the device; so is what `jax.random` and
    a few functions of `jax.numpy` would make of arrays, numbers and dtypes.

    Raises:
      NotReadable: it holds another call, an operation on anything but numbers, a name that is not bound or whatever
        else would have to be run.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in scope:
            return scope[name]
        case ast.Attribute(value=inner, attr=name):
            return _attribute(node, read(inner, scope), name)
        case ast.Subscript(value=inner, slice=index):
            return _item(node, read(inner, scope), read(index, scope))
        case ast.Call(func=called, args=args, keywords=named):
            return _made(node, read(called, scope), items(args, scope), keywords(named, scope))
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if part is None else read(part, scope) for part in (lower, upper, step)))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in _OPERATIONS:
            return _computed(node, _OPERATIONS[type(operation)], read(left, scope), read(right, scope))
        case ast.Tuple(elts=parts):
            return tuple(items(parts, scope))
        case ast.List(elts=parts):
            return items(parts, scope)
        case ast.Dict(keys=keys, values=values) if None not in keys:
            named = [ast.literal_eval(key) for key in cast("list[ast.expr]", keys) if isinstance(key, ast.Constant)]
            if len(named) < len(keys):
                raise NotReadable(node)
            return dict(zip(named, (read(value, scope) for value in values), strict=True))
        case _:
            raise NotReadable(node)


def items(parts: list[ast.expr], scope: Mapping[str, Any]) -> list[Any]:
    """The values of expressions that stand in a row, `*rest` laid open. Raises NotReadable."""
    found: list[Any] = []
    for part in parts:
        if not isinstance(part, ast.Starred):
            found.append(read(part, scope))
            continue
        several = read(part.value, scope)
        if not isinstance(several, list | tuple):
            raise NotReadable(part)
        found.extend(cast("list[Any]", several))
    return found


def keywords(parts: list[ast.keyword], scope: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of a call, `**rest` laid open. Raises NotReadable."""
    found: dict[str, Any] = {}
    for part in parts:
        value = read(part.value, scope)
        if part.arg is not None:
            found[part.arg] = value
        elif isinstance(value, Mapping):
            found.update(cast("Mapping[str, Any]", value))
        else:
            raise NotReadable(part.value)
    return found


def _attribute(node: ast.AST, value: Any, name: str) -> Any:
    stands = inspect.getattr_static(value, name, NotReadable)
    # what a class computes is a call by another name
    if stands is NotReadable or isinstance(stands, property | functools.cached_property):
        raise NotReadable(node)
    try:
        return getattr(value, name)
    except Exception:
        raise NotReadable(node) from None


def _item(node: ast.AST, value: Any, index: Any) -> Any:
    def take(held: Any) -> Any:
        return held[index]

    array = isinstance(value, jax.Array)
    # a dictionary may make up what is missing, an array as index would be computed with
    if not (array or _is_plain(value)) or _has_array(index) or (isinstance(value, Mapping) and index not in value):
        raise NotReadable(node)
    try:
        return cast(Any, jax).eval_shape(take, value) if array else take(value)
    except Exception:
        raise NotReadable(node) from None


def _computed(node: ast.AST, operation: Callable[[Any, Any], Any], left: object, right: object) -> Any:
    """Of Python's own numbers, as `1 << 20` or `2 * batch`: other operands may be an array, or run the user's code."""
    if {type(left), type(right)} <= {int, float}:
        try:
            return operation(left, right)
        except (ArithmeticError, TypeError, ValueError, MemoryError):
            pass
    raise NotReadable(node)


def _made(node: ast.AST, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    trees, name = cast(Any, jax).tree, getattr(function, "__name__", "")
    known = any(function is maker for maker in _MAKERS) or function is getattr(jax.random, name, NotReadable)
    leaves, structure = trees.flatten((args, kwargs))
    if not known or not all(map(_is_value, leaves)):
        raise NotReadable(node)
    on_device = {n: leaf for n, leaf in enumerate(leaves) if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct)}

    def make(held: Mapping[int, Any]) -> Any:
        given, named = structure.unflatten([held.get(number, leaf) for number, leaf in enumerate(leaves)])
        return function(*given, **named)

    try:
        return cast(Any, jax).eval_shape(make, on_device)
    except Exception:
        raise NotReadable(node) from None


def _is_value(leaf: object) -> bool:
    if isinstance(leaf, type):
        return leaf.__module__.partition(".")[0] in _TYPES
    return isinstance(leaf, _VALUES) or type(leaf) is np.ndarray


def _is_plain(value: Any) -> bool:
    kind: Any = type(cast(object, value))
    return getattr(kind, "__getitem__", None) in _ITEMS or kind.__module__.partition(".")[0] in _LIBRARIES


def _has_array(index: object) -> bool:
    parts = cast("tuple[object, ...]", index) if isinstance(index, tuple) else (index,)
    return any(isinstance(one, jax.Array) for one in parts)
