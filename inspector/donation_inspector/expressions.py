"""Reading what an expression stands for without running anything of the user's: names, attributes, items, literals."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any, cast

import jax
import numpy as np

_CONTAINERS = (list, tuple, Mapping, np.ndarray)
"""What an item is read from: taking one of these runs no code of the user's and nothing on a device."""


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
            named = [read(key, scope) for key in cast("list[ast.expr]", keys)]
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
    if isinstance(getattr(cast(Any, type(value)), name, None), property):
        # a property is a call by another name
        raise NotReadable(node)
    try:
        return getattr(value, name)
    except Exception:
        raise NotReadable(node) from None


def _item(node: ast.AST, value: Any, index: Any) -> Any:
    try:
        if isinstance(value, jax.Array):
            return cast(Any, jax).eval_shape(operator.itemgetter(index), value)
        if isinstance(value, _CONTAINERS):
            return cast(Any, value)[index]
    except Exception:
        raise NotReadable(node) from None
    raise NotReadable(node)
