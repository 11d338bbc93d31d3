"""How a user's function is jitted, and which words of the framework donate: plain data, which can be written down."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from donation_inspector.donating.function import DonatingFunction
from donation_inspector.frameworks import equinox, exported, nnx
from donation_inspector.frameworks.jitting import names_tuple
from donation_inspector.xla.stage import static_arguments, wraps_options

Kind = Literal["jax", "nnx", "equinox", "paired", "method", "exported", "unnamed"]


@dataclass(frozen=True)
class Way:
    """What the code that donates is written from.

    `name` is the function's own, "step" or "Trainer.step". `positional` are its parameters that can be passed by
    position, in order, `named` those that can be named; `static` is the part of a `jax.jit` call that keeps its static
    arguments static. `shardings`: its jit has shardings, a device or compiler options, which a jit around it would
    not have.
    """

    kind: Kind
    name: str
    positional: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    static: str = ""
    shardings: bool = False

    @property
    def function(self) -> str:
        """What is jitted: with other pairs than it has, the function below them."""
        return f"{self.name}.__wrapped__" if self.kind == "paired" else self.name

    def donating(self, roots: Sequence[str]) -> str | None:
        """`donate_argnames=("params",)`, or by number; None for arguments that can be told neither way, "" for none."""
        if not roots:
            return ""
        if all(root in self.named for root in roots):
            return f"donate_argnames={names_tuple(tuple(roots))}"
        if all(root in self.positional for root in roots):
            numbers = sorted(self.positional.index(root) for root in roots)
            return f"donate_argnums={tuple(numbers)}"
        return None


def way_of(fn: Any) -> Way:
    """How the function is jitted, or is to be."""
    filtered = equinox.wrapped_call(fn, (), {})
    if filtered is not None and not isinstance(fn, types.MethodType | functools.partial) and not filtered[1]:
        return Way("equinox", _name(fn), *_parameters(fn))
    if exported.behind(fn) is not None:
        return Way("exported", _name(fn))
    if isinstance(fn, types.MethodType):
        unbound = fn.__func__
        positional, named = _parameters(unbound)
        static, known = _static(unbound)
        # What is not jitted yet is traced with the object as a constant.
        kept = static if known else f"static_argnames={names_tuple(positional[:1])}"
        return Way("method", f"{type(fn.__self__).__name__}.{unbound.__name__}", positional[1:], named, kept)
    name = _name(fn)
    if not name.isidentifier() or isinstance(fn, functools.partial):
        return Way("unnamed", name, *_parameters(fn))
    kind: Kind = "nnx" if nnx.is_wrapped(fn) else "paired" if isinstance(fn, DonatingFunction) else "jax"
    inner = getattr(fn, "jitted_fn", fn)
    return Way(kind, name, *_parameters(fn), _static(inner)[0], wraps_options(inner))


def _static(fn: Any) -> tuple[str, bool]:
    """The part of a `jax.jit` call that says what is static, and whether the function is jitted at all."""
    found = fn.static_arguments if isinstance(fn, DonatingFunction) else static_arguments(fn)
    if found is None:
        return "", False
    numbers, names = found
    if names:
        return f"static_argnames={names_tuple(names)}", True
    return (f"static_argnums={numbers}" if numbers else ""), True


def _parameters(fn: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return (), ()
    kinds = inspect.Parameter
    by_position = (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    by_name = (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    return (
        tuple(one.name for one in parameters if one.kind in by_position),
        tuple(one.name for one in parameters if one.kind in by_name),
    )


def _name(fn: Any) -> str:
    inner = fn.func if isinstance(fn, functools.partial) else fn
    return str(getattr(inner, "__name__", None) or type(inner).__name__)
