"""From any of them to the others: line of Python, operation of the StableHLO, instruction of XLA's, argument.

XLA's side is that of the variant which is spoken of, and empty before anything is compiled.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.ir import BlockArgument

from donation_inspector.analysis.naming import operation_name
from donation_inspector.errors import PathError
from donation_inspector.ir.location import Source, source
from donation_inspector.selection import is_below
from donation_inspector.tables import aligned
from donation_inspector.units import format_bytes
from donation_inspector.user_code import place

if TYPE_CHECKING:
    from xdsl.ir import Operation as XdslOperation

    from donation_inspector.attribution.links import Links
    from donation_inspector.compiled_module import CompiledModule
    from donation_inspector.subject import Subject
    from donation_inspector.xla.hlo.buffers import BufferLiveRange

_PLACE = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d+)")
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the entry function: `index` in program order, `line` in `Inspection.ir`, from 0.

    `value` is its first result's name, "" where it has none; `place` is "train.py:41", "" where JAX told none.
    """

    index: int
    line: int
    value: str
    name: str
    place: str


@dataclass(frozen=True)
class Where:
    """What one line, value, instruction or argument has to do with the others.

    `places` are lines of the user's own code. `instructions` are XLA's, in the order of its schedule, and `buffers`
    what these define; both are empty before `compare`.
    """

    asked: str
    arguments: tuple[str, ...]
    places: tuple[str, ...]
    operations: tuple[Operation, ...]
    instructions: tuple[str, ...]
    buffers: tuple[BufferLiveRange, ...]

    def __repr__(self) -> str:
        rows: list[tuple[str, ...]] = []
        rows += [("argument", path) for path in self.arguments]
        rows += [("line", where) for where in self.places]
        rows += [("StableHLO", f"{one.value or one.name}  {one.name}  line {one.line + 1}") for one in self.operations]
        held: dict[str, int] = {}
        for buffer in self.buffers:
            # a tuple's own bytes are its table alone
            if buffer.dtype != "tuple":
                held[buffer.instruction] = held.get(buffer.instruction, 0) + buffer.nbytes
        rows += [("XLA", f"{name}  {format_bytes(held[name])}" if name in held else name) for name in self.instructions]
        more = [("", f"and {len(rows) - _SHOWN} more")] if len(rows) > _SHOWN else []
        return "\n".join(aligned(("where", self.asked), [*rows[:_SHOWN], *more]))


class Places:
    """The operations of a program's entry function with where they come from; made once for a subject."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.operations: Sequence[XdslOperation] = tuple(subject.ranges.liveness.operations)
        self._sources = [source(operation.location) for operation in self.operations]

    @cached_property
    def _values(self) -> dict[str, int]:
        """The operation that defines each named value."""
        ranges = self._subject.ranges
        first = len(self._subject.func.args)
        starts = ranges.start[first:].tolist()
        return dict(zip(ranges.names[first:], starts, strict=True))

    @cached_property
    def _names(self) -> dict[int, str]:
        return {operation: name for name, operation in reversed(self._values.items())}

    def links(self, module: CompiledModule) -> Links:
        """A compiled module joined with the operations."""
        known: list[Source] = [one or Source(None, 0, 0, "") for one in self._sources]
        return module.links(
            [one.name_stack for one in known], [one.line for one in known], [one.column for one in known]
        )

    def described(self, index: int) -> Operation:
        """One operation for people."""
        return Operation(
            index,
            int(self._subject.text.line_of_op[index]),
            self._names.get(index, ""),
            operation_name(self.operations[index]),
            self.place(index),
        )

    def place(self, index: int) -> str:
        """Where an operation comes from, "" where that is not known."""
        known = self._sources[index]
        return "" if known is None or known.file is None else place(known.file, known.line)

    def on_line(self, file: str | None, line: int) -> list[int]:
        """The operations that a line of the user's makes."""
        wanted = None if file is None else f"{file}:{line}"
        return [
            index
            for index, known in enumerate(self._sources)
            if known is not None
            and known.line == line
            and known.file is not None
            and (wanted is None or place(known.file, line) == wanted or known.file.endswith(file or ""))
        ]

    def of_value(self, name: str) -> int | None:
        """The operation that defines a value, "%12"."""
        return self._values.get(name)

    def arguments_of(self, index: int) -> list[int]:
        """The positions of the arguments that an operation reads."""
        args = self._subject.func.args
        entry = set(args)
        return [
            value.index
            for value in self.operations[index].operands
            if isinstance(value, BlockArgument) and value in entry
        ]

    def readers_of(self, position: int) -> list[int]:
        """The operations that read an argument; what reads it inside of a region is counted at the outer one."""
        at = {operation: index for index, operation in enumerate(self.operations)}
        body = self._subject.func.body
        found: set[int] = set()
        for use in self._subject.func.args[position].uses:
            operation: XdslOperation | None = use.operation
            while operation is not None and operation.parent_region() is not body:
                operation = operation.parent_op()
            if operation is not None and operation in at:
                found.add(at[operation])
        return sorted(found)


def find(subject: Subject, module: CompiledModule | None, asked: str | int) -> Where:
    """See `Inspection.where`."""
    places = subject.places
    links = None if module is None else places.links(module)
    paths = subject.argument_paths
    text = str(asked).strip()
    arguments: Iterable[int] = ()
    operations: Iterable[int] = ()
    instructions: Iterable[str] = ()
    positions = [position for position, path in paths.items() if is_below(path, text)] if text else []
    match = _PLACE.fullmatch(text)
    if positions:
        arguments = positions
        operations = sorted({index for position in positions for index in places.readers_of(position)})
        read = [name for position in positions for name in (links.hlo_of_argument(position) if links else ())]
        instructions = dict.fromkeys(read)
    elif match is not None:
        file, line = match["file"], int(match["line"])
        operations = places.on_line(file, line)
        instructions = links.hlo_of_line(line, None if file == "cell" else file) if links else ()
        arguments = [position for index in operations for position in places.arguments_of(index)]
    elif (index := places.of_value(text if text.startswith("%") else f"%{text}")) is not None:
        operations = [index]
        instructions = links.hlo_of_op(index) if links else ()
        arguments = places.arguments_of(index)
    elif links is not None and module is not None and text in module.buffers.schedule:
        operations, instructions = links.ops_of_hlo(text), [text]
        own = [position for position, buffer in module.roles.flow.arguments.items() if buffer.instruction == text]
        arguments = own or links.arguments_of_hlo(text)
    if not (arguments or operations or instructions):
        raise PathError(_unknown(subject, module, text))
    names = tuple(instructions)
    made = set(names)
    lines = [place(*one) for name in names for one in (links.lines_of_hlo(name) if links else ())]
    return Where(
        asked=text,
        arguments=tuple(dict.fromkeys(paths[position] for position in arguments if position in paths)),
        places=tuple(dict.fromkeys(filter(None, [*map(places.place, operations), *lines]))),
        operations=tuple(map(places.described, operations)),
        instructions=names,
        buffers=tuple(one for one in module.buffers.live_ranges if one.instruction in made) if module else (),
    )


def _unknown(subject: Subject, module: CompiledModule | None, text: str) -> str:
    """What there is instead, the near names first."""
    known = [*subject.argument_paths.values(), *subject.ranges.names, *(module.buffers.schedule if module else ())]
    near = difflib.get_close_matches(text, list(dict.fromkeys(known)), 3, cutoff=0.6)
    hint = f" Near it: {', '.join(near)}." if near else ""
    compiled = "" if module else " XLA's instructions are known after compare()."
    return (
        f"{text!r} is no argument, no line that makes an operation, no value of the program and no instruction."
        f"{hint}{compiled} Write a line as 'train.py:41', a value as '%12', an argument by its path."
    )
