"""What tracing stores outside the function is taken out again: from a global, a closure, an attribute, a container.

A method that trains, `self.params = step(self.params, batch)`, runs once when it is traced, and leaves tracers where
the arrays were: the caller's next real call would fail on them. So what the function reaches is remembered before it
is traced, and what holds tracers afterwards is put back as it was.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax

from donation_inspector.xla import internals, reach, traces
from donation_inspector.xla.reach import ABSENT, LIMIT, Attributes

_jax: Any = jax
"""Public, partly untyped."""
_Dict: Any = dict
_List: Any = list
_Deque: Any = deque
"""Their own methods, so that none of a subclass of the caller's runs."""


@dataclass(eq=False)
class Stored:
    """Whether tracing stored tracers outside, in what was remembered (`found`) or elsewhere (`left`)."""

    found: bool = False
    left: bool = False


@contextmanager
def taken_out(*roots: Any) -> Generator[Stored]:
    """Trace inside: what `roots` reach and holds tracers afterwards is put back, on errors too.

    What is left after that is known by the traces alone, however much else is alive.
    """
    memory, stored = _Memory(), Stored()
    memory.remember(reach.reachable(*roots))
    with traces.made() as made:
        try:
            yield stored
        finally:
            stored.found = memory.restore()
    stored.left = traces.are_held(made)


@dataclass(eq=False)
class _Memory:
    """What can be changed, with a shallow copy. The attributes of an instance are a dict."""

    dicts: list[tuple[dict[Any, Any], dict[Any, Any]]] = field(default_factory=list[Any])
    named: list[tuple[Attributes, dict[str, Any]]] = field(default_factory=list[Any])
    lists: list[tuple[list[Any], list[Any]]] = field(default_factory=list[Any])
    deques: list[tuple[deque[Any], deque[Any]]] = field(default_factory=list[Any])
    cells: list[tuple[types.CellType, Any]] = field(default_factory=list[Any])

    def remember(self, things: Iterable[Any]) -> None:
        """Keep what each holds now."""
        for thing in things:
            if isinstance(thing, Attributes):
                self.named.append((thing, thing.read()))
            elif isinstance(thing, types.CellType):
                self.cells.append((thing, reach.content(thing)))
            elif isinstance(thing, _Dict) and len(thing) <= LIMIT:
                self.dicts.append((thing, dict[Any, Any](_Dict.items(thing))))
            elif isinstance(thing, _List) and len(thing) <= LIMIT:
                self.lists.append((thing, _List.copy(thing)))
            elif isinstance(thing, _Deque) and len(thing) <= LIMIT:
                self.deques.append((thing, thing.copy()))

    def restore(self) -> bool:
        """Put back what holds tracers now; whether anything did."""
        found = [_restored(held, before) for held, before in self.dicts]
        found += [_written(space, before) for space, before in self.named]
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
            now = reach.content(cell)
            if now is not before and _leaks(now):
                _set(cell, before)
                found.append(True)
        return any(found)


def _restored(held: dict[Any, Any], before: dict[Any, Any]) -> bool:
    changed = [(key, now) for key, now in list(_Dict.items(held)) if now is not before.get(key, ABSENT)]
    leaked = [key for key, now in changed if _leaks(now)]
    for key in leaked:
        if key in before:
            _Dict.__setitem__(held, key, before[key])
        else:
            _Dict.__delitem__(held, key)
    return bool(leaked)


def _written(space: Attributes, before: dict[str, Any]) -> bool:
    leaked = [name for name, now in space.read().items() if now is not before[name] and _leaks(now)]
    for name in leaked:
        space.write(name, before[name])
    return bool(leaked)


def _set(cell: types.CellType, value: Any) -> None:
    if value is ABSENT:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _leaks(value: Any) -> bool:
    if isinstance(value, internals.Tracer):
        return True
    if value is ABSENT or isinstance(value, reach.ATOMS):
        return False
    try:
        return any(isinstance(leaf, internals.Tracer) for leaf in _jax.tree.leaves(value))
    except Exception:
        # no pytree of JAX's, as a dict whose keys cannot be sorted
        return False
