"""A function is run in its order, on places instead of values: see the package."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence, Set
from typing import NamedTuple

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from donation_inspector.analysis import in_place
from donation_inspector.analysis.buffers.functions import (
    BRANCHES,
    LOOPS,
    Functions,
    function_of,
    is_followed_branch,
    is_followed_loop,
    is_terminator,
)
from donation_inspector.analysis.buffers.places import (
    Buffer,
    Contents,
    Home,
    Place,
    buffers,
    either,
    homes,
    mapped,
    own_place,
)
from donation_inspector.analysis.destination import behind_casts
from donation_inspector.analysis.naming import CONSTANT, operation_name

_BODIES = frozenset({"sdy.manual_computation", "sdy.named_computation"})


class Overwritten(NamedTuple):
    """What goes wrong, and in which buffer, if in one; `writer` wrote there too early, or what nobody gave up."""

    what: str
    buffer: Buffer | None
    writer: Operation


class Found(Exception):
    """Ends the run at the first thing that goes wrong."""

    def __init__(self, found: Overwritten) -> None:
        super().__init__(found.what)
        self.found = found


class Run:
    """One run of `func` as an entry. `kept` are the buffers of arguments that the caller has not given up.

    `go()` raises `Found`. Afterwards `place(value)` is where each value of the function's own block is.
    """

    def __init__(self, func: FuncOp, functions: Functions, kept: Iterable[BlockArgument] = ()) -> None:
        self._func, self._functions = func, functions
        self._contents = Contents()
        self._kept = frozenset(kept)
        self._places: dict[SSAValue, Place] = {}
        self._inside: defaultdict[Home, list[SSAValue]] = defaultdict(list)
        self._visited: set[Block] = set()
        self._depth = 0
        self._read_at_first: set[Buffer] = set()

    def go(self) -> list[Place]:
        """The places of what the function returns."""
        for argument in self._func.body.block.args:
            self._set(argument, own_place(argument.type, argument))
        return self._block(self._func.body.block)

    def summed_up(self) -> tuple[Set[Buffer], list[Place]]:
        """The buffers that are read as they were at first, and the places of what the function returns."""
        results = self.go()
        return self._read_at_first, results

    def place(self, value: SSAValue) -> Place:
        known = self._places.get(value)
        return frozenset({Home(Buffer(value))}) if known is None else known

    def inside(self, home: Home) -> Sequence[SSAValue]:
        return self._inside.get(home, ())

    def _set(self, value: SSAValue, place: Place) -> None:
        """Keeps a place that is not the value's own buffer, as it is at first."""
        if value not in self._places and place == frozenset({Home(Buffer(value))}):
            return
        self._places[value] = place
        for home in homes(place):
            self._inside[home].append(value)

    # --- reading and writing

    def _read(self, place: Place, op: Operation) -> None:
        self._read_at_first.update(home.buffer for home in homes(place) if home.version == 0)
        gone = self._contents.gone(place)
        if gone is None:
            return
        reads = "reads" if len(list(homes(place))) == 1 else "may read"
        written, writer = self._contents.written[self._contents.version(gone.buffer)]
        told = _maker(written)
        what = f"'{operation_name(op)}' {reads} {self._holder(gone)}, but {told} was written there before"
        raise Found(Overwritten(what, gone.buffer, writer))

    def _write(self, buffer: Buffer, value: SSAValue | None, op: Operation) -> Home:
        if buffer.value in self._kept:
            what = f"'{operation_name(op)}' writes {_name(buffer)}, which the function has not been given"
            raise Found(Overwritten(what, buffer, op))
        if isinstance(buffer.value, OpResult) and operation_name(buffer.value.op) in {CONSTANT, "arith.constant"}:
            raise Found(Overwritten(f"'{operation_name(op)}' writes a constant", buffer, op))
        return self._contents.write(buffer, value, op)

    def _holder(self, home: Home) -> str:
        if home.version == 0:
            return _name(home.buffer)
        held = self._contents.written[home.version][0]
        return f"{_maker(held)} in {_name(home.buffer)}"

    # --- blocks

    def _block(self, block: Block) -> list[Place]:
        """Runs the operations in order; the places of what the last one gives, which it reads."""
        if block in self._visited:
            for op in block.ops:
                for result in op.results:
                    self._places.pop(result, None)
        self._visited.add(block)
        for op in block.ops:
            if is_terminator(op):
                given = [self.place(operand) for operand in op.operands]
                for place in given:
                    self._read(place, op)
                return given
            for result, place in zip(op.results, self._step(op), strict=True):
                self._set(result, place)
        return []

    def _step(self, op: Operation) -> Sequence[Place]:
        name = operation_name(op)
        operands = [self.place(operand) for operand in op.operands]
        if isinstance(op, MaterializeInDestinationOp):
            return [self._materialize(op, *operands[:2])][: len(op.results)]
        if name.endswith(".get_tuple_element"):
            return [_element(operands[0], op)]
        if name in {"stablehlo.tuple", "mhlo.tuple"}:
            return [tuple(operands)]
        if in_place.is_view(op) and operands:
            return [operands[min(number, len(operands) - 1)] for number in range(len(op.results))]
        if isinstance(op, CallOp):
            return self._call(op, operands)
        if name in LOOPS and is_followed_loop(op):
            return self._loop(op, operands)
        if name in BRANCHES and is_followed_branch(op):
            return self._branch(op, operands)
        if name in _BODIES and len(op.regions) == 1 and len(op.regions[0].block.args) == len(operands):
            return self._with_arguments(op.regions[0].block, operands)
        return self._other(op, operands)

    def _materialize(self, op: MaterializeInDestinationOp, source: Place, destination: Place) -> Place:
        self._read(source, op)
        there = buffers(destination)
        if len(there) == 1 and buffers(source) == there:
            return source
        return frozenset(self._write(buffer, op.source, op) for buffer in sorted(there, key=_order))

    def _other(self, op: Operation, operands: list[Place]) -> list[Place]:
        seen = operands + [self.place(value) for value in self._functions.captured(op)]
        for place in seen:
            self._read(place, op)
        if in_place.is_choice(op):
            return [either(operands[1:])]
        if op.regions and not in_place.is_known(op) and self._functions.has_writes(op):
            raise Found(_not_followed(op, "something is materialized in its regions"))
        self._written_at_once(op, seen)
        if not in_place.is_known(op):
            return self._unknown(op, seen)
        return [self._made(op, operands, number) for number in range(len(op.results))]

    def _unknown(self, op: Operation, seen: Sequence[Place]) -> list[Place]:
        """Each result may be one of all that the operation sees."""
        return [
            frozenset(home for place in (own_place(result.type, result), *seen) for home in homes(place))
            if not isinstance(result.type, in_place.SCALARS)
            else own_place(result.type, result)
            for result in op.results
        ]

    def _made(self, op: Operation, operands: Sequence[Place], number: int) -> Place:
        """A result of an operation that is known: in place of an operand, or in a buffer of its own."""
        result = op.results[number]
        own = own_place(result.type, result)
        tied = in_place.destination(op, number)
        if tied is None or tied >= len(operands):
            return own
        place = operands[tied]
        if operation_name(op).endswith(".custom_call"):
            free = not self._depth and not self._read_behind(place, op)
            worked_on = frozenset(one for one in buffers(place) if free and one.value not in self._kept)
        else:
            worked_on = self._claimed(result) & buffers(place)
        if not worked_on:
            return own
        written = [self._write(buffer, result, op) for buffer in sorted(worked_on, key=_order)]
        return frozenset([*written, *(homes(own) if worked_on != buffers(place) else ())])

    # --- what materializations say

    def _written_at_once(self, op: Operation, seen: Sequence[Place]) -> None:
        """The operation writes results where materializations right behind it put them, while it still reads."""
        behind, not_yet = op.next_op, [op]
        while isinstance(behind, MaterializeInDestinationOp):
            source, destination = behind.source, behind.dest
            mine = isinstance(source, OpResult) and source.op is op and destination.owner not in not_yet
            if isinstance(source, OpResult) and mine and source.has_one_use():
                there = buffers(self.place(destination))
                for number, place in enumerate(seen):
                    shared = there & buffers(place)
                    if shared and not in_place.writes_over(op, number, source.index):
                        buffer = min(shared, key=_order)
                        held = self._holder(Home(buffer, self._contents.version(buffer)))
                        what = f"'{operation_name(op)}' reads {held} while it writes its result {source.index} there"
                        raise Found(Overwritten(what, buffer, behind))
            not_yet.append(behind)
            behind = behind.next_op

    def _claimed(self, result: SSAValue) -> frozenset[Buffer]:
        """The buffers that the result, or a view of it, is materialized into."""
        found: set[Buffer] = set()
        for use in result.uses:
            user = use.operation
            if isinstance(user, MaterializeInDestinationOp):
                if use.index == 0:
                    found |= buffers(self.place(behind_casts(user.dest)))
            elif in_place.is_view(user) and user.results:
                found |= self._claimed(user.results[min(use.index, len(user.results) - 1)])
        return frozenset(found)

    def _read_behind(self, place: Place, op: Operation) -> bool:
        """Whether an operation behind `op` in its block reads what is in the same buffers now."""
        there = [Home(buffer, self._contents.version(buffer)) for buffer in buffers(place)]
        return any(
            self._functions.read_behind(value, op)
            for home in there
            for value in (*self.inside(home), *([home.buffer.value] if home.version == 0 else ()))
        )

    # --- loops, branches, calls

    def _loop(self, op: Operation, init: list[Place]) -> list[Place]:
        """`head` has the homes of what it carries in place when an iteration begins, the first or any other one."""
        for place in init:
            self._read(place, op)
        condition, body = (region.block for region in op.regions)
        claimed = [self._claimed(result) & buffers(place) for result, place in zip(op.results, init, strict=True)]
        start, written = self._contents.now(), list[Buffer]()
        while True:
            for buffer in written:
                self._contents.write(buffer, None, op)
            head = [
                {buffer: self._write(buffer, result, op) for buffer in sorted(mine, key=_order)}
                for result, mine in zip(op.results, claimed, strict=True)
            ]
            before = self._contents.now()
            carried = [self._carried(*one) for one in zip(init, head, body.args, strict=True)]
            given = self._with_arguments(condition, carried)
            after = self._contents.now()
            self._with_arguments(body, given[1:] if operation_name(op) == "scf.while" else carried)
            new = [one for one in self._contents.changed_since(before) if one not in written and not _inside(one, op)]
            if not new:
                break
            written += new
            self._contents.back_to(start)
        self._contents.back_to(after)
        return [
            frozenset([*homes_of.values(), *(homes(own) if len(homes_of) < len(buffers(place)) else ())])
            if homes_of
            else own
            for place, homes_of, own in zip(init, head, map(_own, op.results), strict=True)
        ]

    def _carried(self, init: Place, in_place_: dict[Buffer, Home], argument: BlockArgument) -> Place:
        """Where a carried value is as an iteration begins: in the first where it was, later in a copy or in place."""
        if not isinstance(init, frozenset):
            return either([mapped(init, self._as_it_is), _own(argument)])
        found = [in_place_.get(home.buffer) or Home(home.buffer, self._contents.version(home.buffer)) for home in init]
        copied = homes(_own(argument)) if len(in_place_) < len(init) else ()
        return frozenset([*found, *copied])

    def _as_it_is(self, home: Home) -> Place:
        return frozenset({Home(home.buffer, self._contents.version(home.buffer))})

    def _with_arguments(self, block: Block, places: Sequence[Place]) -> list[Place]:
        for argument, place in zip(block.args, places, strict=True):
            self._set(argument, place)
        return self._block(block)

    def _branch(self, op: Operation, operands: Sequence[Place]) -> list[Place]:
        for place in operands:
            self._read(place, op)
        start, ends = self._contents.now(), list[tuple[list[Place], dict[Buffer, int]]]()
        for region in op.regions:
            self._contents.back_to(start)
            given = self._block(region.block) if region.blocks else []
            ends.append((given, self._contents.now()))
        changed = {buffer for _, end in ends for buffer in end if len({one.get(buffer, 0) for _, one in ends}) > 1}
        self._contents.back_to(ends[0][1] if ends else start)
        joined = {buffer: self._contents.write(buffer, None, op) for buffer in sorted(changed, key=_order)}

        def as_joined(home: Home) -> Place:
            return frozenset({joined.get(home.buffer, home)})

        return [
            either(mapped(given[number], as_joined) for given, _ in ends if number < len(given))
            if ends
            else _own(result)
            for number, result in enumerate(op.results)
        ]

    def _call(self, op: CallOp, operands: list[Place]) -> list[Place]:
        callee = self._functions.called(op)
        if callee is None or not self._functions.can_open(callee):
            if callee is not None and self._functions.writes(callee):
                raise Found(_not_followed(op, "it has several blocks or calls itself, and something is materialized"))
            for place in operands:
                self._read(place, op)
            return self._unknown(op, operands)
        if self._functions.writes(callee):
            return self._followed(op, callee, operands)
        summary = self._functions.summary(callee, lambda: Run(callee, self._functions).summed_up())
        for number in summary.read:
            self._read(operands[number], op)
        given: dict[SSAValue, Place] = dict(zip(callee.body.block.args, operands, strict=True))
        return _renamed(op, summary.results, lambda home: _at(given[home.buffer.value], home.buffer.path), given)

    def _followed(self, op: CallOp, callee: FuncOp, operands: list[Place]) -> list[Place]:
        """The callee works on the caller's buffers; its own are new ones for the caller."""
        before = self._contents.now()
        self._depth += 1
        with self._functions.opened(callee):
            results = self._with_arguments(callee.body.block, operands)
        self._depth -= 1
        mine = {home.buffer.value for place in results for home in homes(place)}
        callers = {value: value for value in mine if function_of(value) is not callee}
        self._contents.forget(
            buffer for buffer in self._contents.changed_since(before) if function_of(buffer.value) is callee
        )
        return _renamed(op, results, lambda home: frozenset({home}), callers)


def _renamed(
    op: CallOp, results: Sequence[Place], keep: Callable[[Home], Place], known: Container[SSAValue]
) -> list[Place]:
    """What a callee gives: what is in a buffer of a `known` value as `keep` says, the rest in new ones of the call."""
    new: dict[Buffer, Place] = {}

    def change(home: Home) -> Place:
        if home.buffer.value in known:
            return keep(home)
        return new.setdefault(home.buffer, frozenset({Home(Buffer(op.results[0], (len(new),)))}))

    return [mapped(place, change) for place in results]


def _at(place: Place, path: Sequence[int]) -> Place:
    """The element of a tuple at `path`; the whole where its elements are not told apart."""
    for number in path:
        place = place if isinstance(place, frozenset) else place[number]
    return place


def _element(place: Place, op: Operation) -> Place:
    index = op.get_attr_or_prop("index")
    assert isinstance(index, IntegerAttr)
    return _at(place, [index.value.data])


def _own(value: SSAValue) -> Place:
    return own_place(value.type, value)


def _inside(buffer: Buffer, op: Operation) -> bool:
    return op.is_ancestor(buffer.value.owner)


def _order(buffer: Buffer) -> tuple[int, tuple[int, ...]]:
    """So that of several buffers always the same is spoken of: arguments first."""
    value = buffer.value
    return value.index if isinstance(value, BlockArgument) else 1 << 30, buffer.path


def _not_followed(op: Operation, why: str) -> Overwritten:
    return Overwritten(f"'{operation_name(op)}' cannot be followed: {why}", None, op)


def _name(buffer: Buffer) -> str:
    value = buffer.value
    return f"argument {value.index}" if isinstance(value, BlockArgument) else _maker(value)


def _maker(value: SSAValue | None) -> str:
    while isinstance(value, OpResult) and isinstance(value.op, MaterializeInDestinationOp):
        value = value.op.source
    if isinstance(value, OpResult):
        return f"result {value.index} of '{operation_name(value.op)}'"
    return f"argument {value.index}" if isinstance(value, BlockArgument) else "another value"
