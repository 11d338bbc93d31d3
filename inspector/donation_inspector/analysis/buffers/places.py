"""Where a value is: the buffers that it may be in, and the version of each that it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import NamedTuple, TypeAlias

from xdsl.dialects.builtin import TupleType
from xdsl.ir import Attribute, Operation, SSAValue


class Buffer(NamedTuple):
    """The buffer of a value that has one of its own; of a tuple, the one at `path`."""

    value: SSAValue
    path: tuple[int, ...] = ()


class Home(NamedTuple):
    """A buffer that a value may be in, and the version of it that the value needs."""

    buffer: Buffer
    version: int = 0


Place: TypeAlias = "frozenset[Home] | tuple[Place, ...]"
"""Of a tensor, all the homes that it may have: one is certain. Of a tuple, the place of each element."""


def homes(place: Place) -> Iterator[Home]:
    """Every home in a place, those of a tuple's elements in their order."""
    if isinstance(place, frozenset):
        yield from place
        return
    for part in place:
        yield from homes(part)


def buffers(place: Place) -> frozenset[Buffer]:
    return frozenset(home.buffer for home in homes(place))


def own_place(type_: Attribute, value: SSAValue, path: tuple[int, ...] = ()) -> Place:
    """Buffers of its own for a value of this type, as they are at first."""
    if isinstance(type_, TupleType):
        return tuple(own_place(part, value, (*path, number)) for number, part in enumerate(type_.types))
    return frozenset({Home(Buffer(value, path))})


def mapped(place: Place, change: Callable[[Home], Place]) -> Place:
    """The place with other homes: each becomes one, or a tuple where the place is that home alone."""
    if not isinstance(place, frozenset):
        return tuple(mapped(part, change) for part in place)
    changed = [change(home) for home in place]
    if len(changed) == 1:
        return changed[0]
    return frozenset(home for part in changed for home in homes(part))


def either(places: Iterable[Place]) -> Place:
    """Where a value is that is one of several; element by element where all are tuples of one length."""
    found = list(dict.fromkeys(places))
    if len(found) == 1:
        return found[0]
    parts = [place for place in found if not isinstance(place, frozenset)]
    if len(parts) == len(found) and len({len(part) for part in parts}) == 1:
        return tuple(either(elements) for elements in zip(*parts, strict=True))
    return frozenset(home for place in found for home in homes(place))


class Contents:
    """The version that each buffer is at, and for each version what was written then, by which operation."""

    def __init__(self) -> None:
        self._versions: dict[Buffer, int] = {}
        self._count = count(1)
        self.written: dict[int, tuple[SSAValue | None, Operation]] = {}
        """By version, the value that was written; None where it is one of several."""

    def version(self, buffer: Buffer) -> int:
        return self._versions.get(buffer, 0)

    def write(self, buffer: Buffer, value: SSAValue | None, op: Operation) -> Home:
        """The new home of what `op` writes there."""
        version = self._versions[buffer] = next(self._count)
        self.written[version] = value, op
        return Home(buffer, version)

    def gone(self, place: Place) -> Home | None:
        """A home of the value that holds, or may hold, something else by now."""
        if not self._versions:
            return None
        return next((home for home in homes(place) if self._versions.get(home.buffer, 0) != home.version), None)

    def now(self) -> dict[Buffer, int]:
        return dict(self._versions)

    def back_to(self, versions: dict[Buffer, int]) -> None:
        self._versions = dict(versions)

    def changed_since(self, versions: dict[Buffer, int]) -> list[Buffer]:
        return [buffer for buffer, version in self._versions.items() if versions.get(buffer, 0) != version]

    def forget(self, buffers: Iterable[Buffer]) -> None:
        """Of buffers that are no more."""
        for buffer in list(buffers):
            del self._versions[buffer]
