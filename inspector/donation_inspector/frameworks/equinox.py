"""Equinox: from a `filter_jit` function to the `jax.jit` function behind it, shapes without arrays included.

Equinox is touched only where the user has imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np

from donation_inspector.errors import TraceError
from donation_inspector.frameworks import naming
from donation_inspector.frameworks.updates import Sums, Written, sums_of, with_updates, written_names
from donation_inspector.frameworks.versions import require
from donation_inspector.xla import lowering
from donation_inspector.xla.leaves import Name, key_path, leaves_with_path
from donation_inspector.xla.lowering import Lowered
from donation_inspector.xla.stage import attempt, flat_inputs, trace

OLDEST = "0.13"
"""The first Equinox whose `filter_jit` is known here."""

_trees: Any = jax.tree
"""Public, partly untyped."""

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


class _Listener:
    """Stands in for the `jax.jit` function in a copy of Equinox's wrapper, and keeps what it is asked to lower.

    Equinox offers no trace, and no way to the flat arguments that it makes.
    """

    call: tuple[Any, ...] = ()

    def lower(self, *call: Any) -> None:
        self.call = call


def wrapped_call(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | None:
    """The `filter_jit` function behind `fn` with all its arguments, bound ones included; None where there is none."""
    if "equinox" not in sys.modules:
        return None
    args, kwargs = tuple(args), dict(kwargs)
    while type(fn).__module__.partition(".")[0] in ("equinox", "jax", "functools"):
        if hasattr(fn, "_cached") and hasattr(fn, "_signature"):
            return fn, args, kwargs
        if hasattr(fn, "func") and hasattr(fn, "args"):
            fn, args, kwargs = fn.func, (*fn.args, *args), {**fn.keywords, **kwargs}
        elif hasattr(fn, "__func__") and hasattr(fn, "__self__"):
            fn, args = fn.__func__, (fn.__self__, *args)
        else:
            return None
    return None


def lower(wrapper: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowered:
    """Trace and lower a `filter_jit` function, with names as in the user's own call.

    Raises:
        TraceError: as `lowering.lower`.
    """
    require("equinox", OLDEST)
    name = str(wrapper.fn)
    # by hand, because Equinox remembers every Module that is made half-way, as copy.copy does, and never forgets it
    listener, kind = _Listener(), cast("type[Any]", type(wrapper))
    listening: Any = object.__new__(kind)
    listening.__dict__.update({**wrapper.__dict__, "_cached": listener})
    attempt(name, listening.lower, args, kwargs, wrapper.__wrapped__)
    if len(listener.call) != 3:
        raise TraceError(f"{name} is wrapped by a version of equinox.filter_jit that is not known here.")
    call = _trace_shapes_too(*listener.call)
    inputs = flat_inputs(wrapper._cached, call, {})
    staged = trace(wrapper._cached, call, {}, name=name, inputs=inputs)
    function = wrapper.__wrapped__
    given = naming.bound_arguments(function, args, kwargs)
    found = naming.by_identity(inputs, _named([*given, (name, function)]))
    # what is kept for naming has shapes alone: an inspector must not hold the caller's arrays
    shapes = [(root, _traced_shapes(value)) for root, value in given]
    written, traced = written_names(function), staged.traced

    def rename(arguments: Sequence[Name], results: Sequence[Name]) -> lowering.Names:
        marker, *own = _result_names(results)
        named = naming.rename(found, arguments)
        if traced is not None and marker.added_by is not None:
            own = _updates(traced, written, sums_of(traced, named)[1:], shapes, own)
        return named, [marker, *own]

    return lowering.from_stage(staged, rename)


def _trace_shapes_too(donated: Any, kept: Any, static: Any) -> tuple[Any, Any, Any]:
    """Equinox's flat arguments with every `jax.ShapeDtypeStruct` moved from the static side to the traced one."""
    donated, kept = dict(donated), dict(kept)
    moved: list[Any] = []
    for part, held in zip(("fun", "first", "rest"), static, strict=True):
        leaves, tree = held
        home = donated if part in donated else kept
        home[part] = tuple(leaf if _is_shape(leaf) else value for value, leaf in zip(home[part], leaves, strict=True))
        moved.append((tuple(None if _is_shape(leaf) else leaf for leaf in leaves), tree))
    return donated, kept, tuple(moved)


def _is_shape(value: Any) -> bool:
    return isinstance(value, jax.ShapeDtypeStruct)


def _traced_shapes(value: Any) -> Any:
    """The shapes of what Equinox traces of an argument, None in place of the rest."""
    eqx: Any = sys.modules["equinox"]

    def is_traced(leaf: Any) -> bool:
        return eqx.is_array(leaf) or isinstance(leaf, np.generic | np.ndarray | jax.ShapeDtypeStruct)

    def shape(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)

    return _trees.map(shape, eqx.filter(value, is_traced))


def _named(arguments: Sequence[tuple[str, Any]]) -> Iterator[tuple[Any, Name]]:
    for argument, value in arguments:
        for keys, leaf in leaves_with_path(value):
            yield leaf, Name(argument, key_path(keys))


def _result_names(results: Sequence[Name]) -> Sequence[Name]:
    """Equinox returns (its marker, the user's arrays, the rest): the user's own paths of them."""
    if not all(name.rest.startswith(("[0]", "[1]")) for name in results):
        return results
    return [
        Name("", name.rest.removeprefix("[1]") or "result")
        if name.rest.startswith("[1]")
        else Name("", "eqx marker", added_by="eqx.filter_jit")
        for name in results
    ]


def _updates(
    traced: Any, written: Written, sums: Sums, shapes: Sequence[tuple[str, Any]], results: Sequence[Name]
) -> Sequence[Name]:
    """The user's own results, with the argument that each is the new value of, where that is plain."""
    seen = SimpleNamespace(args_info=(tuple(value for _, value in shapes), {}), out_info=traced.out_info[1])
    return with_updates(seen, written, sums, [name for _, name in _named(shapes)], results)
