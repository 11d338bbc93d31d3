"""How a user's function is jitted, and which words of the framework donate: plain data, which can be written down."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from donation_inspector.donating.function import DonatingFunction
from donation_inspector.frameworks import equinox, exported, nnx
from donation_inspector.frameworks.jitting import names_tuple
from donation_inspector.xla.stage import keeps_unused, static_arguments, wraps_options

Kind = Literal["jax", "nnx", "equinox", "paired", "method", "exported", "unnamed"]


@dataclass(frozen=True)
class Way:
    """What the code that donates is written from.

    `name` is that of the variable that it is in, else the function's own: "step" or "Trainer.step". `positional` are
    its parameters that can be passed by position, in order, `named` those that can be named; `rest` is what it calls
    those behind them (`*rest`), `others` those by any name (`**others`). `static` is the part of a `jax.jit` call that
    keeps its static arguments static, and its unused ones. `shardings`: its jit has shardings, a device or compiler
    options, which a jit around it would not have. `inner` is the variable of the function below the jit, where that is
    there too and nothing else would be lost.
    """

    kind: Kind
    name: str
    positional: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    static: str = ""
    shardings: bool = False
    rest: str = ""
    others: str = ""
    inner: str = ""

    @property
    def function(self) -> str:
        """What is jitted: with other pairs than it has, the function below them."""
        return f"{self.name}.__wrapped__" if self.kind == "paired" else self.inner or self.name

    @property
    def unwrapped(self) -> str:
        """The function below its jit."""
        return self.inner or f"{self.name}.__wrapped__"

    def donating(self, roots: Sequence[str]) -> str | None:
        """`donate_argnames=("params",)`, or by number; None for arguments that can be told neither way, "" for none."""
        if not roots:
            return ""
        names = {root: name for root in roots if (name := self._name_of(root)) is not None}
        numbers = {root: number for root in roots if (number := self._number_of(root)) is not None}
        by_name = f"donate_argnames={names_tuple(tuple(names.values()))}"
        by_number = f"donate_argnums={tuple(sorted(numbers.values()))}"
        if len(names) == len(roots):
            return by_name
        if len(numbers) == len(roots):
            return by_number
        # Given both, JAX infers neither from the other: what has a name and a number is told by both.
        return f"{by_number}, {by_name}" if {*names, *numbers} == {*roots} else None

    def _name_of(self, root: str) -> str | None:
        """By what name JAX knows a whole argument: of `**others`, `others['q']` is "q"."""
        if root in self.named:
            return root
        quoted = self.others and re.fullmatch(rf"{self.others}\['(\w+)'\]", root)
        return quoted[1] if quoted else None

    def _number_of(self, root: str) -> int | None:
        """By what number: of `*rest`, `rest[0]` is the first behind the named ones. A method's own object counts."""
        ahead = 1 if self.kind == "method" else 0
        if root in self.positional:
            return ahead + self.positional.index(root)
        behind = self.rest and re.fullmatch(rf"{self.rest}\[(\d+)\]", root)
        return ahead + len(self.positional) + int(behind[1]) if behind else None


def way_of(fn: Any) -> Way:
    """How the function is jitted, or is to be."""
    rest, others = _starred(fn)
    filtered = equinox.wrapped_call(fn, (), {})
    if filtered is not None and not isinstance(fn, types.MethodType | functools.partial) and not filtered[1]:
        return Way("equinox", _variable(fn), *_parameters(fn), rest=rest, others=others)
    if exported.behind(fn) is not None:
        return Way("exported", _name(fn))
    if isinstance(fn, types.MethodType):
        unbound = fn.__func__
        positional, named = _parameters(unbound)
        static, known = _static(unbound)
        # What is not jitted yet is traced with the object as a constant.
        kept = static if known else f"static_argnames={names_tuple(positional[:1])}"
        name = f"{type(fn.__self__).__name__}.{unbound.__name__}"
        return Way("method", name, positional[1:], named, kept, False, *_starred(unbound))
    name = _variable(fn)
    if not name.isidentifier() or isinstance(fn, functools.partial) or not hasattr(fn, "__name__"):
        return Way("unnamed", name, *_parameters(fn), rest=rest, others=others)
    kind: Kind = "nnx" if nnx.is_wrapped(fn) else "paired" if isinstance(fn, DonatingFunction) else "jax"
    jitted = getattr(fn, "jitted_fn", fn)
    static, known = _static(jitted)
    options = wraps_options(jitted)
    inner = _below(fn) if known and kind != "paired" and not options else ""
    return Way(kind, name, *_parameters(fn), static, options, rest, others, inner)


def _static(fn: Any) -> tuple[str, bool]:
    """The part of a `jax.jit` call that says what is static, and whether the function is jitted at all."""
    found = fn.static_arguments if isinstance(fn, DonatingFunction) else static_arguments(fn)
    if found is None:
        return "", False
    numbers, names = found
    static = f"static_argnames={names_tuple(names)}" if names else f"static_argnums={numbers}" if numbers else ""
    kept = "keep_unused=True" if keeps_unused(fn) else ""
    return ", ".join(part for part in (static, kept) if part), True


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


def _starred(fn: Any) -> tuple[str, str]:
    """What the function calls the arguments that it takes behind its parameters, and by any name."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return "", ""
    names = {one.kind: one.name for one in parameters}
    return names.get(inspect.Parameter.VAR_POSITIONAL, ""), names.get(inspect.Parameter.VAR_KEYWORD, "")


def _variable(fn: Any) -> str:
    """The global variable of the function's module that it is in, its own name where it is in none."""
    own, variables = _name(fn), _globals(fn)
    if variables.get(own) is fn:
        return own
    # what begins with an underscore may be a notebook's memory of what a cell gave
    return next((name for name, value in variables.items() if value is fn and not name.startswith("_")), own)


def _below(fn: Any) -> str:
    """The name of the function below a jit, where its module still has it by that."""
    wrapped, name = getattr(fn, "__wrapped__", None), _name(fn)
    return name if wrapped is not None and _globals(fn).get(name) is wrapped else ""


def _globals(fn: Any) -> Mapping[str, Any]:
    innermost = inspect.unwrap(fn)
    while isinstance(innermost, functools.partial):
        innermost = innermost.func
    return dict(getattr(innermost, "__globals__", {}))


def _name(fn: Any) -> str:
    inner = fn.func if isinstance(fn, functools.partial) else fn
    return str(getattr(inner, "__name__", None) or type(inner).__name__)
