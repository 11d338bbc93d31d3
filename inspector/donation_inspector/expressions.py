"""Reading what an expression stands for without running anything of the user's: names, attributes, items, literals."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Mapping
from typing import Any, cast

import jax
import numpy as np

_BUILT_IN: tuple[Any, ...] = (list, tuple, dict, np.ndarray)
_ITEMS = tuple(kind.__getitem__ for kind in _BUILT_IN)
"""How an item is taken where this runs no code of the user's and nothing on a device."""
_LIBRARIES = ("flax", "numpy")
"""Whose containers are as harmless."""


class NotReadable(Exception):
    """An expression that would have to be run; `code` is the part of it."""

    def __init__(self, node: ast.AST) -> None:
        self.code = ast.unparse(node)
        super().__init__(self.code)


def read(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    """The value of an expression in a scope: one that is bound to it now.

    An item of a JAX array is read as its shape, because to take it would run on the device.

    Raises:
      NotReadable: it holds a call, an operation, a name that is not bound or anything else that would have to be run.
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
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if part is None else read(part, scope) for part in (lower, upper, step)))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
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


def _is_plain(value: Any) -> bool:
    kind: Any = type(cast(object, value))
    return getattr(kind, "__getitem__", None) in _ITEMS or kind.__module__.partition(".")[0] in _LIBRARIES


def _has_array(index: object) -> bool:
    parts = cast("tuple[object, ...]", index) if isinstance(index, tuple) else (index,)
    return any(isinstance(one, jax.Array) for one in parts)
