"""Liveness of SSA values in one function, as questions.

After mlir's `Liveness` (mlir/include/mlir/Analysis/Liveness.h). Only the function's own values are followed: arguments
of its own blocks and results of its own operations. What an operation's regions use counts as used by that operation,
so a value captured by a loop's body is live while the loop runs. A call is an operation like any other.

A block that no path reaches is looked at as if one did.

Linear in the operations for a function of one block; a function of several blocks adds the classical backward
fixpoint over its blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue


@dataclass(slots=True)
class _BlockLiveness:
    """One block: the indices of its operations are `first` … `stop - 1`."""

    first: int
    stop: int
    defined: list[SSAValue]
    last_use: dict[SSAValue, int]
    successors: tuple[Block, ...]
    live_in: set[SSAValue] = field(default_factory=set[SSAValue])
    live_out: set[SSAValue] = field(default_factory=set[SSAValue])


class Liveness:
    """Answers where the values of `func` are live. The function must not change while the answers are used.

    An operation's index counts the function's own operations, those of all its blocks in order.
    """

    def __init__(self, func: FuncOp) -> None:
        self.func = func
        self.operations: tuple[Operation, ...] = tuple(op for block in func.body.blocks for op in block.ops)
        self._index = {op: index for index, op in enumerate(self.operations)}
        self._definition: dict[SSAValue, int] = {}
        self._blocks: dict[Block, _BlockLiveness] = {}
        for block in func.body.blocks:
            self._add_block(block)
        if len(self._blocks) > 1:
            self._solve()

    def _add_block(self, block: Block) -> None:
        first = self._index[block.first_op] if block.first_op is not None else len(self.operations)
        defined: list[SSAValue] = list(block.args)
        for argument in block.args:
            self._definition[argument] = first
        last_use: dict[SSAValue, int] = {}
        index = first
        for op in block.ops:
            for operand in op.operands:
                last_use[operand] = index
            for region in op.regions:
                _use_captured(region, index, last_use)
            for result in op.results:
                self._definition[result] = index
                defined.append(result)
            index += 1
        successors = tuple(block.last_op.successors) if block.last_op is not None else ()
        self._blocks[block] = _BlockLiveness(first, index, defined, last_use, successors)

    def _solve(self) -> None:
        predecessors: dict[Block, list[Block]] = {block: [] for block in self._blocks}
        for block, liveness in self._blocks.items():
            for successor in liveness.successors:
                predecessors[successor].append(block)
            liveness.live_in = {value for value in liveness.last_use if value in self._definition}
            liveness.live_in.difference_update(liveness.defined)
        pending = list(self._blocks)
        while pending:
            block = pending.pop()
            live_in = self._blocks[block].live_in
            for predecessor in predecessors[block]:
                liveness = self._blocks[predecessor]
                added = live_in - liveness.live_out
                if not added:
                    continue
                liveness.live_out |= added
                grown = added.difference(liveness.defined) - liveness.live_in
                if grown:
                    liveness.live_in |= grown
                    pending.append(predecessor)

    def index(self, op: Operation) -> int:
        """The index of `op`, or of the function's own operation that holds it. KeyError outside the function."""
        own = op
        while own not in self._index:
            parent = own.parent_op()
            if parent is None:
                raise KeyError(op)
            own = parent
        return self._index[own]

    def definition(self, value: SSAValue) -> int:
        """The index of the operation that defines `value`; for a block's argument, of the block's first operation.
        KeyError for a value that is not the function's own."""
        return self._definition[value]

    def live_in(self, block: Block) -> frozenset[SSAValue]:
        """A value is in it iff it is defined outside `block` and on some path from the block's start it is used before
        the function returns. The block's own arguments are defined in it."""
        return frozenset(self._blocks[block].live_in)

    def live_out(self, block: Block) -> frozenset[SSAValue]:
        """A value is in it iff it is in `live_in` of one of the block's successors."""
        return frozenset(self._blocks[block].live_out)

    def last_use(self, value: SSAValue) -> int | None:
        """The highest index of an operation that uses `value` or holds a use of it; None iff it has no use."""
        uses = (block.last_use[value] for block in self._blocks.values() if value in block.last_use)
        return max(uses, default=None)

    def is_live(self, value: SSAValue, op: Operation) -> bool:
        """Whether `value` is live while `op` runs.

        Live iff `op` defines it, or `op` uses it, or it is defined before `op` and used after it on some path. A
        block's argument is defined as the block's first operation starts. Of a nested `op`, the function's own
        operation that holds it counts.
        """
        index = self.index(op)
        block = self.operations[index].parent
        assert block is not None
        span = self._span(value, self._blocks[block])
        return span is not None and span[0] <= index <= span[1]

    def _span(self, value: SSAValue, block: _BlockLiveness) -> tuple[int, int] | None:
        """The first and last index of `block` at which `value` is live."""
        if value in block.live_in:
            start = block.first
        elif value in self._definition and block.first <= self._definition[value] < block.stop:
            start = self._definition[value]
        else:
            return None
        return start, block.stop - 1 if value in block.live_out else block.last_use.get(value, start)

    def spans(self) -> Iterator[tuple[SSAValue, int, int]]:
        """(value, first, last): every stretch of operations inside one block at which a value is live, both inclusive.

        Per value and block there is at most one. Values come in the order of their definition within a block, then
        those that live into the block from others.
        """
        for block in self._blocks.values():
            if block.first == block.stop:
                continue
            last_use, live_out, end = block.last_use, block.live_out, block.stop - 1
            for value in block.defined:
                start = self._definition[value]
                yield value, start, end if value in live_out else last_use.get(value, start)
            for value in block.live_in:
                yield value, block.first, end if value in live_out else last_use[value]


def _use_captured(region: Region, index: int, last_use: dict[SSAValue, int]) -> None:
    # values of the nested regions land here too and are never asked for: cheaper than telling them apart
    for block in region.blocks:
        for op in block.ops:
            for operand in op.operands:
                last_use[operand] = index
            for nested in op.regions:
                _use_captured(nested, index, last_use)
