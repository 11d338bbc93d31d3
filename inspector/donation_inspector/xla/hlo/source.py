"""Where in the user's program an instruction comes from: the frames of the Python stack that JAX recorded."""

from __future__ import annotations

from dataclasses import dataclass

from donation_inspector.xla.hlo.proto import OpMetadata, StackFrameIndexProto


@dataclass(frozen=True, slots=True)
class Frame:
    """One call in a Python stack; `line` counts from 1, and is 0 where it is not known, `column` counts from 0."""

    file: str
    function: str
    line: int
    column: int


class Stacks:
    """The stacks of a module, each made once."""

    def __init__(self, index: StackFrameIndexProto) -> None:
        self._index = index
        # a frame id counts from 1, and 0 ends every stack
        self._stacks: dict[int, tuple[Frame, ...]] = {0: ()}

    def stack(self, metadata: OpMetadata) -> tuple[Frame, ...]:
        """The frames, innermost first; empty where XLA made the instruction itself."""
        if metadata.stack_frame_id:
            return self._from(metadata.stack_frame_id)
        if metadata.source_file:
            return (Frame(metadata.source_file, "", metadata.source_line, metadata.source_column),)
        return ()

    def _from(self, frame_id: int) -> tuple[Frame, ...]:
        path: list[int] = []
        while frame_id not in self._stacks:
            path.append(frame_id)
            frame_id = self._index.stack_frames[frame_id - 1].parent_frame_id
        stack = self._stacks[frame_id]
        for inner in reversed(path):
            stack = self._stacks[inner] = (self._frame(inner), *stack)
        return stack

    def _frame(self, frame_id: int) -> Frame:
        at = self._index.file_locations[self._index.stack_frames[frame_id - 1].file_location_id - 1]
        return Frame(
            self._index.file_names[at.file_name_id - 1],
            self._index.function_names[at.function_name_id - 1],
            at.line,
            at.column,
        )
