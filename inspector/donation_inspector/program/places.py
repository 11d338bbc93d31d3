"""Where the operations of a program come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from xdsl.ir import BlockArgument

from donation_inspector.analysis.naming import operation_name
from donation_inspector.common.user_code import place
from donation_inspector.ir.location import Source, source

if TYPE_CHECKING:
    from xdsl.ir import Operation as XdslOperation

    from donation_inspector.attribution.compiled_module import CompiledModule
    from donation_inspector.attribution.links import Links
    from donation_inspector.program.subject import Subject


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
