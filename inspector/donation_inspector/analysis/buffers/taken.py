"""Which results cannot take an argument's buffer at the end: it is needed still, or was for too long."""

from __future__ import annotations

from collections import defaultdict

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, OpResult, SSAValue

from donation_inspector.analysis import in_place
from donation_inspector.analysis.buffers.model import Buffers
from donation_inspector.analysis.buffers.places import Buffer, Home, buffers
from donation_inspector.analysis.liveness import Liveness


class Taken:
    """Of `func`, which has one block: what a materialization before the return would do too early."""

    def __init__(self, func: FuncOp) -> None:
        self._func, self._liveness, self._model = func, Liveness(func), Buffers(func)
        terminator = func.get_return_op()
        self._returned = () if terminator is None else tuple(terminator.operands)
        self._inhabitants: defaultdict[SSAValue, list[int]] = defaultdict(list)
        """By argument, the results that are, or may be, in its buffer."""
        for position, value in enumerate(self._returned):
            for buffer in buffers(self._model.place(value)):
                self._inhabitants[buffer.value].append(position)
        self._last_reads: dict[BlockArgument, int] = {}

    def may_take(self, argument: int, result: int) -> bool:
        """Whether the result may be written into the argument's buffer.

        Not where another returned value is, or may be, in there; nor where a loop or an update would work in place
        there while an operation behind it, or in its regions, reads the old value.
        """
        taken, value = self._func.args[argument], self._returned[result]
        stays = buffers(self._model.place(value)) == frozenset({Buffer(taken)})
        if not stays and any(position != result for position in self._inhabitants[taken]):
            return False
        made = _behind_views(value)
        number = in_place.destination(made.op, made.index) if isinstance(made, OpResult) else None
        if not isinstance(made, OpResult) or number is None or number >= len(made.op.operands):
            return True
        if Buffer(taken) not in buffers(self._model.place(made.op.operands[number])):
            return True
        captured = self._model.captured(made.op)
        return self._liveness.index(made.op) >= self._last_read(taken) and not any(
            Buffer(taken) in buffers(self._model.place(value)) for value in captured
        )

    def _last_read(self, argument: BlockArgument) -> int:
        """The index of the last operation that reads what is in the argument's buffer."""
        known = self._last_reads.get(argument)
        if known is None:
            values = (argument, *self._model.inside(Home(Buffer(argument))))
            uses = (self._liveness.last_use(value) for value in values)
            known = self._last_reads[argument] = max((use for use in uses if use is not None), default=-1)
        return known


def _behind_views(value: SSAValue) -> SSAValue:
    while isinstance(value, OpResult) and in_place.is_view(value.op) and value.op.operands:
        value = value.op.operands[min(value.index, len(value.op.operands) - 1)]
    return value
