"""What a call reaches: its arguments, what its code names, what that holds. None of the caller's code runs for it.

Of a module and of a class there is only what code that is reached names: their other attributes are not the call's.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import jax
import numpy as np

from donation_inspector.common.user_code import is_user_code

LIMIT = 20_000
"""Objects that are looked at, nearest first, and parts of one: what a step changes is near it."""
ABSENT: Any = object()
"""Stands where nothing is."""
ATOMS = (bool, int, float, complex, str, bytes, type(None), types.CodeType, np.ndarray, np.generic, jax.Array)
_CLOSED = frozenset({"jax", "jaxlib", "numpy", "donation_inspector", *sys.stdlib_module_names}) - {"__main__"}
"""Packages whose functions keep nothing of their callers', but for what they close over."""
_Dict: Any = dict
_List: Any = list
"""Their own methods, so that none of a subclass of the caller's runs."""


@dataclass(frozen=True, eq=False)
class Attributes:
    """Some attributes of a namespace: globals that code names, those of a module or class, slots of an instance."""

    owner: Any
    names: frozenset[str]

    def read(self) -> dict[str, Any]:
        """What stands there, `ABSENT` where nothing does."""
        if isinstance(self.owner, _Dict):
            return {name: _Dict.get(self.owner, name, ABSENT) for name in self.names}
        if isinstance(self.owner, type):
            return {name: vars(self.owner).get(name, ABSENT) for name in self.names}
        return {name: _attribute(self.owner, name) for name in self.names}

    def write(self, name: str, value: Any) -> None:
        """Put something there; `ABSENT` takes away what is."""
        gone = value is ABSENT
        if isinstance(self.owner, _Dict):
            _Dict.pop(self.owner, name) if gone else _Dict.__setitem__(self.owner, name, value)
        elif isinstance(self.owner, type):
            type.__delattr__(self.owner, name) if gone else type.__setattr__(self.owner, name, value)
        else:
            object.__delattr__(self.owner, name) if gone else object.__setattr__(self.owner, name, value)


def reachable(*roots: Any) -> Iterator[Any]:
    """Each object that holds others, nearest first; `Attributes` for what is looked at in part.

    Of an instance its `__dict__` comes next, but for the objects of NNX, which are put back as wholes.
    """
    return _Walk(roots).run()


def attributes_of(thing: Any) -> dict[str, Any]:
    """What an instance has in slots and in its `__dict__`."""
    kind = cast("type[Any]", type(thing))
    held = Attributes(thing, _slots(kind)).read()
    return {**{name: value for name, value in held.items() if value is not ABSENT}, **_own(thing)}


def content(cell: types.CellType) -> Any:
    """What a closure holds; `ABSENT` where the enclosing function has not set it yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT


class _Walk:
    def __init__(self, roots: tuple[Any, ...]) -> None:
        self._waiting = deque[Any](roots)
        self._seen: dict[int, Any] = {}
        self._named: set[str] = set()
        self._spaces: dict[types.ModuleType | type, set[str]] = {}

    def run(self) -> Iterator[Any]:
        while self._waiting and len(self._seen) < LIMIT:
            value = self._waiting.popleft()
            if id(value) not in self._seen and self._enter(value):
                yield value
            if not self._waiting:
                # code that was met later may name what a module or a class of before has
                self._waiting.extend(self._newly_named())

    def _enter(self, value: Any) -> bool:
        # a proxy of the caller's may answer even `isinstance` with an error
        with suppress(Exception):
            if value is not ABSENT and not isinstance(value, ATOMS):
                self._seen[id(value)] = value
                self._waiting.extend(self._parts(value))
                return True
        return False

    def _parts(self, value: Any) -> Iterator[Any]:
        if isinstance(value, _Dict):
            yield from _few(_Dict.values(value))
        elif isinstance(value, _List):
            yield from _few(_List.copy(value))
        elif isinstance(value, deque):
            yield from _few(cast("deque[Any]", value).copy())
        elif isinstance(value, tuple):
            yield from cast("tuple[Any, ...]", value)[:LIMIT]
        elif isinstance(value, Attributes):
            yield from value.read().values()
        elif isinstance(value, types.CellType):
            yield content(value)
        elif isinstance(value, functools.partial):
            held_call = cast("functools.partial[Any]", value)
            yield from (held_call.func, held_call.args, held_call.keywords)
        elif isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
        elif isinstance(value, staticmethod | classmethod):
            yield cast("staticmethod[..., Any]", value).__func__
        elif isinstance(value, property):
            yield from (value.fget, value.fset)
        elif isinstance(value, types.FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, types.ModuleType | type):
            self._meet(value)
        else:
            yield from self._of_instance(value)

    def _of_function(self, function: types.FunctionType) -> Iterator[Any]:
        yield from function.__closure__ or ()
        if str(function.__module__).partition(".")[0] in _CLOSED:
            return
        names = frozenset(_names(function.__code__))
        self._named |= names
        yield Attributes(function.__globals__, names)
        yield from (function.__defaults__, function.__kwdefaults__, vars(function))

    def _of_instance(self, value: Any) -> Iterator[Any]:
        kind = cast("type[Any]", type(value))
        self._meet(kind)
        if _is_nnx(kind):
            yield from attributes_of(value).values()
            return
        slots = _slots(kind)
        if slots:
            yield Attributes(value, slots)
        own = _own(value)
        if own:
            yield own

    def _meet(self, space: types.ModuleType | type) -> None:
        for one in (space,) if isinstance(space, types.ModuleType) else space.__mro__:
            if one not in self._spaces and _is_users(one):
                self._spaces[one] = set()

    def _newly_named(self) -> Iterator[Attributes]:
        for space, known in self._spaces.items():
            implicit = {name for name, value in vars(space).items() if _is_implicit(name, value)}
            found = (self._named | implicit) - known
            known |= found
            if found:
                yield Attributes(space if isinstance(space, type) else vars(space), frozenset(found))


def _few(values: Any) -> Iterator[Any]:
    return iter(values) if len(values) <= LIMIT else iter(())


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_implicit(name: str, value: Any) -> bool:
    """Whether an operator or a call may run it without any code that names it."""
    return name.startswith("__") and isinstance(value, types.FunctionType)


@cache
def _is_users(space: types.ModuleType | type) -> bool:
    module = space if isinstance(space, types.ModuleType) else sys.modules.get(space.__module__)
    file = getattr(module, "__file__", None)
    return getattr(module, "__name__", "") == "__main__" or (file is not None and is_user_code(file))


@cache
def _is_nnx(kind: type) -> bool:
    return any(base.__module__.startswith("flax.nnx") for base in kind.__mro__)


@cache
def _slots(kind: type) -> frozenset[str]:
    found = (base.__dict__.get("__slots__", ()) for base in kind.__mro__)
    named = {name for slots in found for name in ((slots,) if isinstance(slots, str) else slots)}
    return frozenset(named - {"__dict__", "__weakref__"})


def _attribute(thing: Any, name: str) -> Any:
    try:
        return object.__getattribute__(thing, name)
    except AttributeError:
        return ABSENT


def _own(thing: Any) -> dict[str, Any]:
    try:
        held: Any = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return held if isinstance(held, _Dict) else {}
