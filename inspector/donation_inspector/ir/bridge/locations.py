"""Source locations between jaxlib's MLIR and xDSL, each made once: a program of 19,000 operations has a few hundred."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute

from donation_inspector.ir.location import RANGE, parts

_CLASSES: dict[str, Any] = {
    kind: getattr(ir, name, None)
    for kind, name in {
        "file": "FileLineColLoc",
        "name": "NameLoc",
        "callsite": "CallSiteLoc",
        "fused": "FusedLoc",
    }.items()
}


class LocationsToXdsl:
    """Locations of one jaxlib module as xDSL's. `made` keeps what each was made from, for the way back."""

    def __init__(self) -> None:
        self.made: dict[ir.Attribute, tuple[LocationAttr, ir.Location]] = {}

    def __call__(self, location: ir.Location) -> LocationAttr:
        key = location.attr
        known = self.made.get(key)
        if known is None:
            known = self.made[key] = (self._convert(location), location)
        return known[0]

    def _convert(self, location: Any) -> LocationAttr:
        if _is_a(location, "file"):
            start = _file(location.filename, location.start_line, location.start_col)
            end = _file(location.filename, location.end_line, location.end_col)
            # xDSL has no range: it stands as its two ends
            return start if start == end else _fused([start, end], RANGE)
        if _is_a(location, "name"):
            return NameLoc(StringAttr(location.name_str), self(location.child_loc))
        if _is_a(location, "callsite"):
            return CallSiteLoc(self(location.callee), self(location.caller))
        if _is_a(location, "fused"):
            text = str(location)
            # the bindings don't give the metadata: all of the text stands for it
            metadata = StringAttr(text) if text.startswith("loc(fused<") else NoneAttr()
            return _fused([self(part) for part in location.locations], metadata)
        text = str(location)
        return UNKNOWN_LOC if text == "loc(unknown)" else _fused([], StringAttr(text))


class LocationsToJaxlib:
    """xDSL's locations in the current MLIR context: the very ones that `imported` made, others built anew."""

    def __init__(self, imported: LocationsToXdsl) -> None:
        # by identity: hashing a deep call chain costs more than making it
        self._known = {id(mine): theirs for mine, theirs in imported.made.values()}

    def __call__(self, location: Attribute) -> ir.Location:
        known = self._known.get(id(location))
        return self._build(location) if known is None else known

    def _build(self, location: Attribute) -> ir.Location:
        if isinstance(location, FileLineColLoc):
            return ir.Location.file(*_place(location))
        if isinstance(location, NameLoc):
            return ir.Location.name(location.desc.data, self(location.location))
        if isinstance(location, CallSiteLoc):
            return ir.Location.callsite(self(location.callee), [self(location.caller)])
        if isinstance(location, FusedLoc):
            inner = parts(location)
            if (
                location.metadata == RANGE
                and isinstance(inner[0], FileLineColLoc)
                and isinstance(inner[1], FileLineColLoc)
            ):
                (name, line, column), (_, end, end_column) = _place(inner[0]), _place(inner[1])
                return ir.Location.file(name, line, column, end, end_column)
            return ir.Location.fused([self(part) for part in inner])
        return ir.Location.unknown()


def _is_a(location: Any, kind: str) -> bool:
    """Whether it is a location of this kind: jaxlib before 0.10 tells so itself, later it has a class for each."""
    told: Any = getattr(location, f"is_a_{kind}", None)
    return isinstance(location, _CLASSES[kind]) if told is None else bool(told())


def _fused(locations: Sequence[Attribute], metadata: Attribute) -> FusedLoc:
    return FusedLoc(ArrayAttr(locations), metadata)


def _place(location: FileLineColLoc) -> tuple[str, int, int]:
    return location.filename.data, location.line.data, location.column.data


def _file(name: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(name), IntAttr(line), IntAttr(column))
