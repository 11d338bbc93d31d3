"""A call's flat arguments as `jax.jit` counts and names them, found through public JAX API alone."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import jax

_jax: Any = jax
"""Public, partly untyped."""

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
Statics = tuple[tuple[tuple[int, Any, type], ...], tuple[tuple[str, Any, type], ...]]
"""The static arguments of a call: (position, value, its type) and (keyword, value, its type). 2 == 2.0, and JAX traces
for each of them."""
Dynamic = tuple[tuple[Any, ...], dict[str, Any]]


class Chosen(NamedTuple):
    """Arguments as `*_argnums` and `*_argnames` choose them: those passed by position, those passed by keyword."""

    numbers: frozenset[int]
    names: frozenset[str]

    def has(self, number: int | None, name: str | None, passed: int) -> bool:
        """Whether it chooses the argument passed at position `number` of `passed`, or else by the keyword `name`."""
        if number is None:
            return name in self.names
        return number in self.numbers or number - passed in self.numbers


@dataclass(frozen=True)
class Whole:
    """One argument of a call: its leaves are `first` up to `end`; `number` is None where it is passed by keyword."""

    root: str
    number: int | None
    keyword: str | None
    first: int
    end: int

    @property
    def leaves(self) -> frozenset[int]:
        """The flat indices of its leaves."""
        return frozenset(range(self.first, self.end))


@dataclass(frozen=True)
class FlatCall:
    """The flat dynamic arguments of one call, in JAX's order: by position, then the keywords sorted."""

    leaves: tuple[Any, ...]
    tree: Any
    """Their `PyTreeDef`, that of (positional, keywords)."""
    statics: Statics
    passed: int
    """How many arguments were passed by position, static ones included."""
    wholes: tuple[Whole, ...]
    _rests: tuple[str, ...]

    @cached_property
    def names(self) -> tuple[tuple[str, str], ...]:
        """The whole argument that each leaf belongs to, and its path there: `params` and `['w']`."""
        return tuple((whole.root, self._rests[leaf]) for whole in self.wholes for leaf in range(whole.first, whole.end))

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The path of each leaf, as `Inspection.arguments` has it: `params['w']`."""
        return tuple(root + rest for root, rest in self.names)

    def chosen(self, chosen: Chosen) -> frozenset[int]:
        """The leaves of the arguments that `chosen` names."""
        found = (whole for whole in self.wholes if chosen.has(whole.number, whole.keyword, self.passed))
        return frozenset(leaf for whole in found for leaf in whole.leaves)


class Parameters:
    """The parameters of a function, with which of them are static."""

    def __init__(self, fn: Callable[..., Any], static_argnums: Any, static_argnames: Any) -> None:
        """`static_*` as for `jax.jit`."""
        try:
            self._all = tuple(inspect.signature(fn).parameters.values())
        except (TypeError, ValueError):
            self._all = None
        self._static = self.choose(static_argnums, static_argnames)
        self.has_static = bool(self._static.numbers or self._static.names)

    @property
    def static(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The static ones by number and by name."""
        return tuple(sorted(self._static.numbers)), tuple(sorted(self._static.names))

    def choose(self, numbers: int | Iterable[int] | None, names: str | Iterable[str] | None) -> Chosen:
        """Numbers and names completed by one another as `jax.jit` does it where only one kind is given."""
        chosen = Chosen(
            frozenset((numbers,) if isinstance(numbers, int) else numbers or ()),
            frozenset((names,) if isinstance(names, str) else names or ()),
        )
        both = [
            (number, one.name)
            for number, one in enumerate(self._all or ())
            if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        ]
        if numbers is None:
            return Chosen(frozenset(number for number, name in both if name in chosen.names), chosen.names)
        if names is None:
            return Chosen(chosen.numbers, frozenset(name for number, name in both if number in chosen.numbers))
        return chosen

    def covering(self, wholes: Iterable[Whole]) -> Chosen:
        """Numbers and names that choose exactly these arguments, however they are passed the next time."""
        numbers, names = set[int](), set[str]()
        for whole in wholes:
            position = self._position(whole)
            if position is not None:
                numbers.add(position)
            if whole.keyword is not None:
                names.add(whole.keyword)
        return Chosen(frozenset(numbers), frozenset(names))

    def _position(self, whole: Whole) -> int | None:
        if whole.number is not None:
            return whole.number
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return next(
            (i for i, one in enumerate(self._all or ()) if one.name == whole.keyword and one.kind is kind), None
        )

    def split(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Dynamic, Statics]:
        """The dynamic arguments, and the static ones."""
        static, passed = self._static, len(args)
        by_position = tuple(static.has(number, None, passed) for number in range(passed))
        dynamic = tuple(one for one, fixed in zip(args, by_position, strict=True) if not fixed)
        named = {name: value for name, value in kwargs.items() if name not in static.names}
        held = tuple((number, args[number], _type(args[number])) for number in range(passed) if by_position[number])
        by_name = tuple((name, kwargs[name], _type(kwargs[name])) for name in sorted(static.names & kwargs.keys()))
        return (dynamic, named), (held, by_name)

    def flat(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> FlatCall:
        """The call with these arguments, laid flat."""
        dynamic, statics = self.split(args, kwargs)
        found, tree = _jax.tree_util.tree_flatten_with_path(dynamic)
        held = {number for number, *_ in statics[0]}
        numbers = [number for number in range(len(args)) if number not in held]
        bounds: dict[tuple[int, int | str], tuple[int, int]] = {}
        for leaf, (keys, _) in enumerate(found):
            key = (0, keys[1].idx) if keys[0].idx == 0 else (1, keys[1].key)
            bounds[key] = (bounds.get(key, (leaf, leaf))[0], leaf + 1)
        wholes = tuple(
            self._by_number(numbers[cast(int, key)], *bound) if kind == 0 else self._by_keyword(cast(str, key), *bound)
            for (kind, key), bound in bounds.items()
        )
        return FlatCall(
            leaves=tuple(leaf for _, leaf in found),
            tree=tree,
            statics=statics,
            passed=len(args),
            wholes=wholes,
            _rests=tuple(key_path(keys[2:]) for keys, _ in found),
        )

    def _by_number(self, number: int, first: int, end: int) -> Whole:
        named = [one for one in self._all or () if one.kind in _BY_POSITION]
        if number < len(named):
            one = named[number]
            keyword = one.name if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD else None
            return Whole(one.name, number, keyword, first, end)
        rest = [one.name for one in self._all or () if one.kind is inspect.Parameter.VAR_POSITIONAL]
        return Whole(f"{rest[0] if rest else 'args'}[{number - len(named)}]", number, None, first, end)

    def _by_keyword(self, keyword: str, first: int, end: int) -> Whole:
        known = {one.name for one in self._all or () if one.kind is not inspect.Parameter.VAR_KEYWORD}
        rest = [one.name for one in self._all or () if one.kind is inspect.Parameter.VAR_KEYWORD]
        root = keyword if keyword in known else f"{rest[0] if rest else 'kwargs'}['{keyword}']"
        return Whole(root, None, keyword, first, end)


def _type(value: object) -> type:
    return type(value)


def with_statics(dynamic: Dynamic, statics: Statics) -> Dynamic:
    """The arguments of the whole call: what `Parameters.split` took apart."""
    args, kwargs = list(dynamic[0]), {**dynamic[1], **{name: value for name, value, _ in statics[1]}}
    for number, value, _ in statics[0]:
        args.insert(number, value)
    return tuple(args), kwargs


def key_path(keys: tuple[Any, ...]) -> str:
    """JAX's `keystr`, but `[0]` where a container numbers its leaves without keys."""
    return re.sub(r"<flat index (\d+)>", r"\1", _jax.tree_util.keystr(keys))
