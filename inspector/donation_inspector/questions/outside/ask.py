"""What else fills the device: live arrays that are no arguments of an Inspection, by the variables that hold them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import jax

from donation_inspector.common.labels import type_label
from donation_inspector.common.tables import told, told_html
from donation_inspector.common.units import format_bytes
from donation_inspector.questions.outside.variables import LIMIT, Scope, Walk, scopes
from donation_inspector.xla.pointers import Buffer, buffers

_SHOWN = 20
_NAMED_IN_SENTENCE = 3
_HEADER = ("array", "type", "bytes", "on")
NO_VARIABLE = "no variable found"


@dataclass(frozen=True, slots=True)
class LiveArray:
    """One array that is alive outside the call.

    `path` is the variable that reaches it by the fewest steps, as `history[3]` or, of another function that is under
    way, `history[3] in train()`; None where no variable was found.
    `per_device` are its bytes by device ("cuda:0"), without those that another array here or an argument shares;
    `nbytes` is their sum.
    """

    path: str | None
    type: str
    nbytes: int
    per_device: Mapping[str, int]


@dataclass(frozen=True)
class Outside:
    """The live arrays that are no arguments of an Inspection, most bytes first: one moment's view that holds no array.

    `arguments` counts the call's own arrays that are alive and left out, `gone` those that were donated or let go since
    it was inspected: what took their place is among `arrays`.
    `known` is False where this process has no device of the program's platform, so that nothing can be said.
    `complete` is False where there are so many Python objects that not all were looked at for names.
    `unplaced` counts arrays whose buffers the runtime does not tell: they are in no sum.
    """

    arrays: tuple[LiveArray, ...]
    arguments: int = 0
    gone: int = 0
    known: bool = True
    complete: bool = True
    unplaced: int = 0

    @property
    def total(self) -> int | None:
        """Bytes on all devices of this process together; None where that is unknown."""
        return sum(array.nbytes for array in self.arrays) if self.known and not self.unplaced else None

    @property
    def per_device(self) -> Mapping[str, int]:
        """Bytes by device, most first, as far as they are known."""
        counts = Counter[str]()
        for array in self.arrays:
            counts.update(array.per_device)
        return dict(counts.most_common())

    def sentence(self) -> str:
        """What else fills the device, the largest by name."""
        if not self.known:
            return "What else fills the device is unknown: this process has no device of the program's platform."
        if not self.arrays and not self.unplaced:
            return "Nothing else is alive on the device."
        sizes, members = Counter[str](), Counter[str]()
        for array in self.arrays:
            sizes[_variable(array.path)] += array.nbytes
            members[_variable(array.path)] += 1
        parts = [
            f"{name}{f' ({members[name]} arrays)' if members[name] > 1 else ''} {format_bytes(size)}"
            for name, size in sizes.most_common(_NAMED_IN_SENTENCE)
        ]
        if len(sizes) > _NAMED_IN_SENTENCE:
            parts.append(f"{len(sizes) - _NAMED_IN_SENTENCE} more")
        if self.unplaced:
            parts.append(f"{self.unplaced} of unknown size")
        are = "argument that is" if self.gone == 1 else "arguments that are"
        gone = f" What took the place of {self.gone} {are} gone since is among it." if self.gone else ""
        limit = "" if self.complete else f" Names are from the first {LIMIT:,} Python objects."
        return f"What else fills {self._where()}: {', '.join(parts)}.{gone}{limit}"

    def _where(self) -> str:
        devices = self.per_device
        if not devices:
            return "the device"
        own = f"{self.arguments} array{'' if self.arguments == 1 else 's'}"
        besides = f"besides this call's {own}" if self.arguments else "where no array of this call is"
        device, most = next(iter(devices.items()))
        if len(devices) == 1:
            return f"{device} {besides}, {format_bytes(most)}"
        return f"{len(devices)} devices {besides}, at most {format_bytes(most)} on one ({device})"

    def _rows(self) -> tuple[list[tuple[str, ...]], str]:
        rows = [
            (array.path or NO_VARIABLE, array.type, format_bytes(array.nbytes), ", ".join(array.per_device))
            for array in self.arrays[:_SHOWN]
        ]
        left = self.arrays[_SHOWN:]
        more = f"and {len(left)} more, {format_bytes(sum(array.nbytes for array in left))}" if left else ""
        return rows, more

    def __repr__(self) -> str:
        return told(self.sentence(), _HEADER, *self._rows())

    def _repr_html_(self) -> str:
        return told_html(self.sentence(), _HEADER, *self._rows())


_PATH = re.compile(r"(?P<variable>Out\[\d+\]|\w+).*?(?P<where> in (?:\S+\(\)|module \S+)(?:, kept by .*)?)?", re.DOTALL)


def _variable(path: str | None) -> str:
    """The variable at a path's start; each of IPython's outputs is one of its own."""
    if path is None:
        return NO_VARIABLE
    found = None if path.startswith("held by ") else _PATH.fullmatch(path)
    return path if found is None else found["variable"] + (found["where"] or "")


def look(platform: str, arguments: Iterable[Any], named: Iterable[Scope] | None = None, gone: int = 0) -> Outside:
    """The live arrays of a platform that share no buffer with the arguments, of which `gone` are there no more.

    `named` are the variables that they are looked for in, None for all of the user's.
    """
    try:
        live: list[Any] = cast(Any, jax).live_arrays(platform)
    except RuntimeError:
        return Outside((), known=False)
    given = [held for held in map(buffers, {id(one): one for one in arguments}.values()) if held]
    taken = {buffer for held in given for buffer in held}
    own: list[tuple[Any, dict[Buffer, int]]] = []
    unplaced = 0
    # an array before its shards, which JAX keeps as arrays of their own once somebody looked at them
    for array in sorted(live, key=lambda array: -array.nbytes):
        held = buffers(array)
        if held is None:
            unplaced += not array.is_deleted()
            continue
        fresh = {buffer: size for buffer, size in held.items() if buffer not in taken}
        taken.update(fresh)
        if fresh:
            own.append((array, fresh))
    walk = Walk(lambda value: isinstance(value, jax.Array))
    paths = _paths(walk, scopes() if named is None else named, {b for _, held in own for b in held})
    arrays = [_described(array, held, paths) for array, held in own]
    arrays.sort(key=lambda array: (-array.nbytes, array.path is None, array.path or ""))
    return Outside(tuple(arrays), len(given), gone, complete=walk.complete, unplaced=unplaced)


def _paths(walk: Walk, named: Iterable[Scope], sought: set[Buffer]) -> Mapping[Buffer, str]:
    """The first path to each buffer, until all are found."""
    paths: dict[Buffer, str] = {}
    for where, variables in named:
        for path, array in walk.through(variables, where):
            for buffer in buffers(array) or ():
                paths.setdefault(buffer, path)
            if sought <= paths.keys():
                return paths
    return paths


def _described(array: Any, held: Mapping[Buffer, int], paths: Mapping[Buffer, str]) -> LiveArray:
    per_device = Counter[str]()
    for (device, _), size in held.items():
        per_device[device] += size
    path = next((paths[buffer] for buffer in held if buffer in paths), None)
    return LiveArray(path, type_label(str(array.dtype), array.shape), per_device.total(), dict(per_device))
