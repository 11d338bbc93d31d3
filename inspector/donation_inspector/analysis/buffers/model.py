"""The buffers of one function that somebody calls from outside, as questions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue

from donation_inspector.analysis.buffers.functions import Functions
from donation_inspector.analysis.buffers.places import Home, Place
from donation_inspector.analysis.buffers.run import Found, Overwritten, Run
from donation_inspector.analysis.destination import behind_casts
from donation_inspector.ir.entry import read_donation


class Buffers:
    """Who holds which buffer in `func`, which has one block, followed into the functions that it calls.

    The caller has given up the arguments that carry a donation flag and those that `func` itself materializes into.
    What is asked holds for the function as it was when this was made.
    """

    def __init__(self, func: FuncOp) -> None:
        functions = Functions(func)
        self._run = Run(func, functions, kept(func))
        self.captured = functions.captured
        self.overwritten: Overwritten | None = None
        """The first thing that goes wrong; None if nothing does. The places are those up to there."""
        self.returned: Sequence[Place] = ()
        try:
            self.returned = self._run.go()
        except Found as error:
            self.overwritten = error.found

    def place(self, value: SSAValue) -> Place:
        """Where a value of the function's own block is."""
        return self._run.place(value)

    def inside(self, home: Home) -> Sequence[SSAValue]:
        """The values that are, or may be, there, besides the one that the buffer was made for."""
        return self._run.inside(home)


def find_overwritten(func: FuncOp) -> Overwritten | None:
    """What is read, or written while it is read, though its buffer holds something else by then, and what is written
    though the caller keeps it; None if nothing is, or nothing is materialized.

    `func` has one block.
    """
    return Buffers(func).overwritten if Functions(func).writes(func) else None


def kept(func: FuncOp) -> list[BlockArgument]:
    """The arguments of a function that its caller from outside has not given up."""
    written = {behind_casts(op.dest) for op in func.walk() if isinstance(op, MaterializeInDestinationOp)}
    donated = read_donation(func).positions
    return [one for one in func.args if one.index not in donated and one not in written]
