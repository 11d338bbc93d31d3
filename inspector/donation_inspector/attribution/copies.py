"""Why a copy: what a compiled program keeps in memory only because a result has to live in an argument's buffer.

A donated argument that is still read when the result comes costs as much as it gives: XLA keeps the old value in a
copy, makes the result elsewhere and copies it in, or has no place for a value that would have waited in the result's
own buffer. All three are read off the compiled module.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from donation_inspector.attribution.flow import Flow, Use
from donation_inspector.attribution.place import user_frame
from donation_inspector.xla.hlo.buffers import BufferLiveRange
from donation_inspector.xla.hlo.source import Frame


class Kind(StrEnum):
    """KEPT: a copy of the argument's old value. MOVED: the result, made elsewhere and then copied into the argument.
    DISPLACED: a value that the result is made from, and that lay in the result's own buffer if it had one."""

    KEPT = "kept"
    MOVED = "moved"
    DISPLACED = "displaced"


@dataclass(frozen=True, slots=True)
class Step:
    """An operation as the user knows it: JAX's name and the user's line."""

    instruction: str
    op_name: str
    source: Frame | None
    time: int = field(compare=False)

    @property
    def primitive(self) -> str:
        """The last part of JAX's name, XLA's own name where JAX gave none."""
        return self.op_name.split(";", 1)[0].rsplit("/", 1)[-1] or self.instruction


@dataclass(frozen=True, slots=True)
class Copy:
    """A buffer of `nbytes` that exists because result `result` lives in the buffer of argument `argument`.

    Both are positions of the entry function. `buffer` is XLA's. `reader` is the last operation that needs the
    argument's old value apart from `writer`, which makes the result; the writer itself where nothing else reads it.
    `maker` makes a displaced value. `is_temporary`: it lies in memory that is taken for temporaries, and not in that of
    an argument or a result which is free at the time.
    """

    kind: Kind
    argument: int
    result: int
    buffer: BufferLiveRange
    nbytes: int
    is_temporary: bool
    reader: Step
    writer: Step
    maker: Step | None = None


def find_copies(flow: Flow) -> list[Copy]:
    """Every buffer that only aliasing makes necessary, by argument."""
    finder = _Finder(flow)
    return [copy for argument, result in aliased_pairs(flow) for copy in finder.of_pair(argument, result)]


def aliased_pairs(flow: Flow) -> list[tuple[int, int]]:
    """(argument, result) by position, as the compiled module has them."""
    pairs = [
        (entry.parameter_number, entry.output_shape_index[0] if entry.output_shape_index else 0)
        for entry in flow.module.proto.input_output_alias.entries
    ]
    return [(argument, result) for argument, result in pairs if argument in flow.arguments and result in flow.results]


class _Finder:
    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._kinds = {allocation.index: allocation.kind for allocation in flow.buffers.allocations}

    def of_pair(self, argument: int, result: int) -> Iterator[Copy]:
        """What the pair costs, if the argument's old value and the result are not the same to begin with."""
        flow = self._flow
        old, new = flow.arguments[argument], flow.results[result]
        made = flow.uncopied(new)
        if made.id == old.id or not new.nbytes:
            return
        writer = self._writer(made)
        uses = flow.far_uses(old)
        others = [use for use in uses if use.instruction.name != made.instruction]
        # a copy into another memory space brings a value near, and has nothing to do with aliasing
        kept = [copy for copy in self._copies(old) if copy.id != new.id and copy.color == old.color]
        is_elsewhere = made.id != new.id and made.allocation != old.allocation and made.color == old.color
        moved = made if is_elsewhere and made.kind != "constant" else None
        for copy in kept:
            yield self._copy(Kind.KEPT, argument, result, copy, self._reader(others or uses, writer), writer)
        if moved is not None:
            yield self._copy(Kind.MOVED, argument, result, moved, self._reader(others or uses, writer), writer)
        if kept or moved is not None:
            return
        for displaced in self._displaced(made):
            late = [use for use in uses if use.time >= displaced.start]
            if late:
                maker = self._writer(displaced)
                reader = self._reader(late, writer)
                yield self._copy(Kind.DISPLACED, argument, result, displaced, reader, writer, maker)

    def _copy(
        self,
        kind: Kind,
        argument: int,
        result: int,
        buffer: BufferLiveRange,
        reader: Step,
        writer: Step,
        maker: Step | None = None,
    ) -> Copy:
        is_temporary = self._kinds[buffer.allocation] == "temp"
        return Copy(kind, argument, result, buffer, buffer.nbytes, is_temporary, reader, writer, maker)

    def _copies(self, buffer: BufferLiveRange) -> Iterator[BufferLiveRange]:
        for copy in self._flow.copies(buffer):
            yield copy
            yield from self._copies(copy)

    def _displaced(self, made: BufferLiveRange) -> Iterator[BufferLiveRange]:
        """Temporaries as large as the result that only its maker reads, and that end there."""
        flow = self._flow
        for value in flow.operands(flow.instruction(made)):
            readers = {use.instruction.name for use in flow.uses[value.id]}
            is_alone = readers == {made.instruction}
            fits = value.nbytes == made.nbytes and value.color == made.color
            if is_alone and fits and self._kinds[value.allocation] == "temp":
                yield value

    def _writer(self, buffer: BufferLiveRange) -> Step:
        origin = self._flow.origin(buffer)
        stack = () if origin is None else self._flow.buffers.program.stacks.stack(origin)
        name = "" if origin is None else origin.op_name
        return Step(buffer.instruction, name, user_frame(stack), buffer.start)

    def _reader(self, uses: list[Use] | tuple[Use, ...], otherwise: Step) -> Step:
        """The last of the uses, named by what really reads the value there."""
        if not uses:
            return otherwise
        use = uses[-1]
        named = [inner for inner in self._flow.inner(use) if inner.metadata.op_name]
        metadata = named[0].metadata if named else use.instruction.metadata
        stack = self._flow.buffers.program.stacks.stack(metadata)
        return Step(use.instruction.name, metadata.op_name, user_frame(stack), use.time)
