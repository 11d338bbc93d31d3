"""What a line, a value, an instruction or an argument has to do with the others, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from donation_inspector.common.tables import aligned
from donation_inspector.common.units import format_bytes
from donation_inspector.program.places import Operation

if TYPE_CHECKING:
    from donation_inspector.xla.hlo.buffers import BufferLiveRange


_SHOWN = 20


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
