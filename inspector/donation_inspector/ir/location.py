"""Where in the user's program an operation comes from."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, LocationAttr, NameLoc, StringAttr
from xdsl.ir import Attribute

from donation_inspector.common.user_code import is_user_code

RANGE = StringAttr("range")
"""Metadata of a fused location that stands for a range in a file, from its first to its second part."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place in a file and JAX's name stack, such as `jit(f)/jvp()/dot_general`.

    Lines count from 1, columns as the module has them: from 0 where JAX made it. `file` is None where only a name is
    known; `name_stack` is "" where there is none.
    """

    file: str | None
    line: int
    column: int
    name_stack: str


_sources: dict[int, tuple[weakref.ref[LocationAttr], Source | None]] = {}


def source(location: LocationAttr) -> Source | None:
    """The innermost frame of the user's own code, of all where there is none; None when nothing is known."""
    # by identity: operations share locations, and hashing a deep call chain costs more than reading it
    key = id(location)
    known = _sources.get(key)
    if known is None or known[0]() is not location:
        gone = weakref.ref(location, lambda _: _sources.pop(key, None))
        known = _sources[key] = (gone, _read(location))
    return known[1]


def name(location: Attribute) -> str | None:
    """The outermost name in a location: a leaf's path on an argument, the name stack on an operation."""
    if isinstance(location, NameLoc):
        return location.desc.data
    if isinstance(location, FusedLoc):
        return next((found for part in parts(location) if (found := name(part)) is not None), None)
    return None


def parts(location: FusedLoc) -> tuple[Attribute, ...]:
    """The locations that are fused."""
    return cast("ArrayAttr[Attribute]", location.locations).data


def _read(location: Attribute) -> Source | None:
    stack = name(location) or ""
    frames = list(_frames(location))
    frame = next((frame for frame in frames if is_user_code(frame.filename.data)), frames[0] if frames else None)
    if frame is None:
        return Source(None, 0, 0, stack) if stack else None
    return Source(frame.filename.data, frame.line.data, frame.column.data, stack)


def _frames(location: Attribute) -> Iterator[FileLineColLoc]:
    """The call chain, innermost frame first."""
    if isinstance(location, FileLineColLoc):
        yield location
    elif isinstance(location, NameLoc):
        yield from _frames(location.location)
    elif isinstance(location, CallSiteLoc):
        yield from _frames(location.callee)
        yield from _frames(location.caller)
    elif isinstance(location, FusedLoc):
        fused = parts(location)
        for part in fused[:1] if location.metadata == RANGE else fused:
            yield from _frames(part)
