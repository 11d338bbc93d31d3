"""What fills a memory space at the peak: every byte in one class, the contributors by size, each with its place."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from donation_inspector.attribution.flow import Flow
from donation_inspector.attribution.phase import Phase, phase
from donation_inspector.attribution.place import user_frame
from donation_inspector.attribution.role import Role
from donation_inspector.attribution.roles import Roles
from donation_inspector.attribution.stretches import Stretches
from donation_inspector.common.signature import Signature
from donation_inspector.xla.hlo.allocation import Allocation
from donation_inspector.xla.hlo.buffers import BufferLiveRange, Buffers
from donation_inspector.xla.hlo.source import Frame


@dataclass(frozen=True, slots=True)
class Contributor:
    """Bytes of the peak that belong together: one buffer's, or those of an argument or result that hold no value now.

    `nbytes` is its part of the peak: where buffers share bytes the latest one has them. `path` is the user's of the
    argument whose value it holds, or else of the result that it becomes. `source` is the innermost frame of the user's
    own code, `stack` all frames, innermost first. `buffer` is XLA's, None where no value is held.
    """

    role: Role
    nbytes: int
    path: str | None
    op_name: str
    source: Frame | None
    stack: tuple[Frame, ...] = field(repr=False)
    buffer: BufferLiveRange | None
    allocation: int


@dataclass(frozen=True, slots=True)
class Peak:
    """The most bytes held at once in memory space `color`, at time `at` of the schedule.

    `instruction` runs then, named `op_name` by JAX, in `phase`, at `source`. `classes` adds up to `nbytes`, most bytes
    first; `contributors` too. `fragmentation` is what the program reserves and does not hold then; `padding` is what
    layouts add to the arrays that are live. `constants` is what the executable itself holds, in none of the others.
    """

    color: int
    nbytes: int
    at: int
    length: int
    instruction: str
    op_name: str
    phase: Phase
    source: Frame | None
    classes: tuple[tuple[Role, int], ...]
    contributors: tuple[Contributor, ...] = field(repr=False)
    fragmentation: int
    padding: int
    constants: int


def read_peak(buffers: Buffers, signature: Signature, color: int = 0) -> Peak | None:
    """The peak of a memory space in the user's words; None where the program uses none of it."""
    return find_peak(Roles(Flow(buffers), signature), signature, color)


def find_peak(roles: Roles, signature: Signature, color: int = 0) -> Peak | None:
    """The peak of a memory space; None where the program uses none of it."""
    buffers = roles.flow.buffers
    curves = buffers.spaces.get(color)
    if curves is None or not len(curves.held):
        return None
    time = curves.peak_at
    held = list(_held(buffers, time, color))
    entry = _Entry(roles, signature)
    contributors = sorted(
        (entry.contributor(allocation, buffer, nbytes) for allocation, buffer, nbytes in held),
        key=lambda contributor: -contributor.nbytes,
    )
    totals: defaultdict[Role, int] = defaultdict(int)
    for contributor in contributors:
        totals[contributor.role] += contributor.nbytes
    running = roles.flow.running(time)
    op_name = "" if running is None else running.op_name
    stack = () if running is None else buffers.program.stacks.stack(running)
    return Peak(
        color=color,
        nbytes=curves.peak,
        at=time,
        length=len(buffers.schedule),
        instruction=buffers.schedule[time],
        op_name=op_name,
        phase=phase(op_name),
        source=user_frame(stack),
        classes=tuple(sorted(totals.items(), key=lambda item: -item[1])),
        contributors=tuple(contributors),
        fragmentation=max(0, curves.reserved - curves.peak),
        padding=sum(_padding(buffer) for _, buffer, _ in held if isinstance(buffer, BufferLiveRange)),
        constants=curves.constant,
    )


def _held(buffers: Buffers, time: int, color: int) -> Iterator[tuple[Allocation, BufferLiveRange | Role, int]]:
    """(allocation, buffer that holds a value or class of what holds none, bytes) of all that is held at a time."""
    inside: defaultdict[int, list[BufferLiveRange]] = defaultdict(list)
    extent: defaultdict[int, int] = defaultdict(int)
    for buffer in buffers.live_ranges:
        if buffer.color == color:
            extent[buffer.allocation] = max(extent[buffer.allocation], buffer.offset + buffer.nbytes)
            if buffer.start <= time <= buffer.end:
                inside[buffer.allocation].append(buffer)
    for allocation in buffers.allocations:
        if allocation.color != color or allocation.kind in ("constant", "thread-local"):
            continue
        stretches = Stretches()
        covered = 0
        # a value that is written where an older one lay has the bytes
        for buffer in sorted(inside[allocation.index], key=lambda buffer: (-buffer.start, buffer.id)):
            taken = stretches.take(buffer.offset, buffer.offset + buffer.nbytes)
            covered += taken
            if taken:
                yield allocation, buffer, taken
        if allocation.kind == "temp":
            continue
        idle = extent[allocation.index] - covered
        if idle:
            yield allocation, Role.IDLE_ARGUMENTS if allocation.kind == "parameter" else Role.IDLE_RESULTS, idle
        if allocation.nbytes > extent[allocation.index]:
            yield allocation, Role.PADDING, allocation.nbytes - extent[allocation.index]


class _Entry:
    """The user's names for what the entry function takes and returns."""

    def __init__(self, roles: Roles, signature: Signature) -> None:
        self._roles = roles
        self._stacks = roles.flow.buffers.program.stacks
        self._arguments = {leaf.position: leaf.path for leaf in signature.arguments if leaf.position is not None}
        self._results = {leaf.position: leaf.title for leaf in signature.results if leaf.position is not None}
        self._result_in = {buffer.allocation: position for position, buffer in reversed(roles.flow.results.items())}

    def contributor(self, allocation: Allocation, buffer: BufferLiveRange | Role, nbytes: int) -> Contributor:
        if isinstance(buffer, Role):
            path = self._arguments.get(allocation.parameter) if allocation.parameter is not None else None
            if path is None and allocation.index in self._result_in:
                path = self._results.get(self._result_in[allocation.index])
            return Contributor(buffer, nbytes, path, "", None, (), None, allocation.index)
        role = self._roles.role(buffer)
        argument, result = self._roles.argument(buffer), self._roles.result(buffer)
        if argument is None and result is None:
            argument = self._roles.carried_argument(buffer)
        path = None
        if argument is not None:
            path = self._arguments.get(argument)
        elif result is not None:
            path = self._results.get(result)
        origin = self._roles.flow.origin(buffer)
        stack = () if origin is None else self._stacks.stack(origin)
        op_name = "" if origin is None else origin.op_name
        return Contributor(role, nbytes, path, op_name, user_frame(stack), stack, buffer, allocation.index)


def _padding(buffer: BufferLiveRange) -> int:
    """What the layout adds to an array's own bytes; 0 where they are not known."""
    bits = 8 if buffer.dtype == "bool" else int(found.group()) if (found := re.search(r"\d+", buffer.dtype)) else 0
    return max(0, buffer.nbytes - -(-prod(buffer.shape) * bits // 8)) if bits else 0
