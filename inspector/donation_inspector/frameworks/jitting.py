"""The jit that a user would write to donate: what is suggested must run, and must not harm live objects."""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from typing import Any

from donation_inspector.donating.function import DonatingFunction
from donation_inspector.frameworks import equinox, exported, nnx
from donation_inspector.xla.stage import static_names


def call_that_jits(fn: Any) -> str | None:
    """`jax.jit(step, `, up to where `donate_argnames` goes; None where no such call does it.

    An NNX step keeps to `nnx.jit`, because `jax.jit` would lose what it changes in live objects, and static arguments
    stay static. Nothing is suggested for `eqx.filter_jit`, whose donation goes by groups of arguments, for `di.jit`,
    whose pairs another jit would not make, for a method, a partial, an object or an Exported, which no plain assignment
    replaces, or for positional-only arguments, which JAX can't name.
    """
    if (
        isinstance(fn, types.MethodType | DonatingFunction)
        or equinox.wrapped_call(fn, (), {}) is not None
        or exported.behind(fn) is not None
    ):
        return None
    name = str(getattr(fn, "__name__", ""))
    static = static_names(getattr(fn, "jitted_fn", fn))
    if not name.isidentifier() or static is None or _has_positional_only(fn):
        return None
    jit = "nnx.jit" if nnx.is_wrapped(fn) else "jax.jit"
    kept = f"static_argnames={names_tuple(static)}, " if static else ""
    return f"{jit}({name}, {kept}"


def line_that_donates(name: str, jit: str | None, names: Sequence[str]) -> str | None:
    """The assignment that donates these arguments; None without a jit, or where one has no name of its own."""
    if jit is None or not all(one.isidentifier() for one in names):
        return None
    return f"{name} = {jit}donate_argnames={names_tuple(tuple(names))})"


def names_tuple(names: tuple[str, ...]) -> str:
    """The names as Python writes a tuple of them: `("params", "state")`."""
    written = ", ".join(f'"{name}"' for name in names)
    return f"({written},)" if len(names) == 1 else f"({written})"


def _has_positional_only(fn: Any) -> bool:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(parameter.kind is inspect.Parameter.POSITIONAL_ONLY for parameter in parameters)
