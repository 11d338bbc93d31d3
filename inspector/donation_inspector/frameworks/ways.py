"""How a user's function is jitted, and which words of the framework donate: plain data, which can be written down."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from donation_inspector.donating.function import DonatingFunction
from donation_inspector.frameworks import equinox, exported, nnx
from donation_inspector.frameworks.call_site import NOWHERE, CallSite
from donation_inspector.frameworks.jitting import names_tuple
from donation_inspector.xla.stage import keeps_unused, static_arguments, wraps_options

Kind = Literal["jax", "nnx", "equinox", "paired", "method", "exported", "unnamed", "foreign"]


@dataclass(frozen=True)
class Way:
    """What the code that donates is written from.

    `name` is what a new jit is assigned to, as "step" or "trainer.step"; where nothing can be, the function's own, as
    "Trainer.step". `also` is another variable to assign it to. `positional` are its parameters that can be passed by
    position, in order, `named` those that can be named; `rest` is what it calls those behind them (`*rest`), `others`
    those by any name (`**others`). `static` is the part of a `jax.jit` call that keeps its static arguments static, and
    its unused ones. `shardings`: its jit has shardings, a device or compiler options, which a jit around it would not
    have. `inner` is the variable of the function below the jit, where that is there too and nothing else would be lost.
    `jitted`: there is a jit around it.
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
    also: str = ""
    jitted: bool = False

    @property
    def assigned(self) -> str:
        """What stands before the `=`."""
        return f"{self.also} = {self.name}" if self.also else self.name

    @property
    def function(self) -> str:
        """What is jitted: the function below its jit, since around another jit XLA makes another program of it."""
        return self.inner or (f"{self.name}.__wrapped__" if self.jitted else self.name)

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


def way_of(fn: Any, site: CallSite = NOWHERE) -> Way:
    """How the function is jitted, or is to be, where a person's code names it."""
    rest, others = _starred(fn)
    name = site.name_of(fn)
    filtered = equinox.wrapped_call(fn, (), {})
    if filtered is not None and not isinstance(fn, types.MethodType | functools.partial) and not filtered[1]:
        return Way("equinox", name, *_parameters(fn), rest=rest, others=others, jitted=True)
    if exported.behind(fn) is not None:
        return Way("exported", _own_name(fn))
    if isinstance(fn, types.MethodType):
        return _way_of_method(fn, name)
    kind: Kind = "nnx" if nnx.is_wrapped(fn) else "paired" if isinstance(fn, DonatingFunction) else "jax"
    untyped: Any = cast(object, fn)
    jitted = getattr(untyped, "jitted_fn", untyped)
    static, known = _static(jitted)
    options = wraps_options(jitted)
    if kind == "jax" and not known and isinstance(fn, types.FunctionType) and hasattr(fn, "lower"):
        # as `jax.pmap`, which knows arguments by number alone, and is another program inside a jit
        return Way("foreign", name or _own_name(fn), _parameters(fn)[0], shardings=True, rest=rest)
    if not name or isinstance(fn, functools.partial) or not hasattr(fn, "__name__"):
        own = name or _own_name(fn)
        return Way("unnamed", own, *_parameters(fn), static, options, rest, others, jitted=known)
    below = getattr(fn, "__wrapped__", None) if known and kind != "paired" and not options else None
    inner = _own_name(fn) if below is not None and site.holds(_own_name(fn), below) else ""
    # a variable of a function under way is gone with it, the name of the function below is not
    also = inner if inner and site.is_local(name) and not site.is_local(inner) else ""
    return Way(kind, name, *_parameters(fn), static, options, rest, others, inner, also, jitted=known)


def _way_of_method(fn: types.MethodType, name: str) -> Way:
    unbound = fn.__func__
    positional, named = _parameters(unbound)
    static, known = _static(unbound)
    if name and not known and not nnx.is_wrapped(unbound):
        # looked up on its object it is a function like another, which holds that object
        return Way("jax", name, *_parameters(fn), "", False, *_starred(fn))
    # What is not jitted yet is traced with the object as a constant.
    kept = static if known else f"static_argnames={names_tuple(positional[:1])}"
    own = f"{type(fn.__self__).__name__}.{unbound.__name__}"
    return Way("method", own, positional[1:], named, kept, False, *_starred(unbound))


def _static(fn: Any) -> tuple[str, bool]:
    """The part of a `jax.jit` call that says what is static, and whether the function is jitted at all."""
    found = fn.static_arguments if isinstance(fn, DonatingFunction) else static_arguments(fn)
    if found is None:
        return "", False
    numbers, names = found
    static = f"static_argnames={names_tuple(names)}" if names else f"static_argnums={numbers}" if numbers else ""
    keeps = fn.keep_unused if isinstance(fn, DonatingFunction) else keeps_unused(fn)
    kept = "keep_unused=True" if keeps else ""
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


def _own_name(fn: Any) -> str:
    inner = fn.func if isinstance(fn, functools.partial) else fn
    return str(getattr(inner, "__name__", None) or type(inner).__name__)
