"""What tracing stores outside the function is taken out again: from a global, a closure, an attribute, a container.

A method that trains, `self.params = step(self.params, batch)`, runs once when it is traced, and leaves tracers where
the arrays were: the caller's next real call would fail on them. So what the function reaches is remembered before it
is traced, and what holds tracers afterwards is put back as it was.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import jax
import numpy as np

from donation_inspector.xla import internals

_jax: Any = jax
"""Public, partly untyped."""
_LIMIT = 20_000
"""Objects that are looked at, nearest first, and parts of one: what a step changes is near it."""
_ATOMS = (bool, int, float, complex, str, bytes, type(None), type, types.ModuleType, np.ndarray, np.generic, jax.Array)
_ABSENT: Any = object()
_Dict: Any = dict
_List: Any = list
"""Their own methods, so that none of a subclass of the caller's runs."""


@dataclass(eq=False)
class Stored:
    """Whether tracing stored tracers in what was remembered."""

    found: bool = False


@contextmanager
def taken_out(*roots: Any) -> Generator[Stored]:
    """Trace inside: what `roots` reach and holds tracers afterwards is put back, on errors too."""
    memory, stored = _Memory(), Stored()
    memory.remember(roots)
    try:
        yield stored
    finally:
        stored.found = memory.restore()


@dataclass(eq=False)
class _Memory:
    """What can be changed, with a shallow copy. Attributes are a dict; of globals there are those that code names."""

    dicts: list[tuple[dict[Any, Any], Mapping[Any, Any]]] = field(default_factory=list[Any])
    named: list[tuple[dict[str, Any], Mapping[str, Any]]] = field(default_factory=list[Any])
    lists: list[tuple[list[Any], list[Any]]] = field(default_factory=list[Any])
    deques: list[tuple[deque[Any], deque[Any]]] = field(default_factory=list[Any])
    cells: list[tuple[types.CellType, Any]] = field(default_factory=list[Any])

    def remember(self, roots: tuple[Any, ...]) -> None:
        """Walk over what the roots hold, without running any of its code."""
        waiting, seen = deque[Any](roots), set[int]()
        while waiting and len(seen) < _LIMIT:
            value = waiting.popleft()
            if id(value) in seen:
                continue
            # a proxy of the caller's may answer even `isinstance` with an error
            with suppress(Exception):
                if not isinstance(value, _ATOMS):
                    seen.add(id(value))
                    waiting.extend(self._parts(value))

    def restore(self) -> bool:
        """Put back what holds tracers now; whether anything did."""
        found = [_put_back(held, before, _Dict.keys(held)) for held, before in self.dicts]
        found += [_put_back(held, before, before) for held, before in self.named]
        for held, before in self.lists:
            known = set(map(id, before))
            if any(_leaks(one) for one in _List.copy(held) if id(one) not in known):
                _List.__setitem__(held, slice(None), before)
                found.append(True)
        for held, before in self.deques:
            known = set(map(id, before))
            if any(_leaks(one) for one in held.copy() if id(one) not in known):
                held.clear()
                held.extend(before)
                found.append(True)
        for cell, before in self.cells:
            if _content(cell) is not before and _leaks(_content(cell)):
                _set(cell, before)
                found.append(True)
        return any(found)

    def _parts(self, value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            held = cast("dict[Any, Any]", value)
            if len(held) <= _LIMIT:
                before = dict[Any, Any](_Dict.items(held))
                self.dicts.append((held, before))
                yield from before.values()
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            if len(items) <= _LIMIT:
                self.lists.append((items, _List.copy(items)))
                yield from self.lists[-1][1]
        elif isinstance(value, deque):
            window = cast("deque[Any]", value)
            if len(window) <= _LIMIT:
                self.deques.append((window, window.copy()))
                yield from self.deques[-1][1]
        elif isinstance(value, tuple):
            yield from cast("tuple[Any, ...]", value)[:_LIMIT]
        elif isinstance(value, functools.partial):
            held_call = cast("functools.partial[Any]", value)
            yield from (held_call.func, held_call.args, held_call.keywords)
        elif isinstance(value, types.MethodType):
            yield from (value.__self__, value.__func__)
        elif isinstance(value, types.FunctionType):
            yield from self._of_function(value)
        else:
            yield from _attributes(value)

    def _of_function(self, function: types.FunctionType) -> Iterator[Any]:
        for cell in function.__closure__ or ():
            self.cells.append((cell, _content(cell)))
            yield self.cells[-1][1]
        before = {name: function.__globals__.get(name, _ABSENT) for name in set(_names(function.__code__))}
        self.named.append((function.__globals__, before))
        yield from (function.__defaults__, vars(function), *before.values())


def _attributes(value: Any) -> Iterator[Any]:
    try:
        attributes: Any = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    if any(kind.__module__.startswith("flax.nnx") for kind in type(value).__mro__):
        # NNX objects are put back by their own guard, which tells what changed them
        yield attributes.get("__wrapped__")
    elif isinstance(attributes, dict):
        yield cast("dict[str, Any]", attributes)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _put_back(held: dict[Any, Any], before: Mapping[Any, Any], keys: Any) -> bool:
    changed = {key: before.get(key, _ABSENT) for key in list(keys)}
    leaked = [key for key, old in changed.items() if (now := _Dict.get(held, key, _ABSENT)) is not old and _leaks(now)]
    for key in leaked:
        if changed[key] is _ABSENT:
            _Dict.__delitem__(held, key)
        else:
            _Dict.__setitem__(held, key, changed[key])
    return bool(leaked)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        # the enclosing function has not set it yet
        return _ABSENT


def _set(cell: types.CellType, value: Any) -> None:
    if value is _ABSENT:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _leaks(value: Any) -> bool:
    if isinstance(value, internals.Tracer):
        return True
    if isinstance(value, _ATOMS):
        return False
    try:
        return any(isinstance(leaf, internals.Tracer) for leaf in _jax.tree.leaves(value))
    except Exception:
        # no pytree of JAX's, as a dict whose keys cannot be sorted
        return False
