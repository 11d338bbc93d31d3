"""What is asked again and again about the functions of a module and the regions of their operations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Sequence, Set
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from donation_inspector.analysis.buffers.places import Buffer, Place

LOOPS = frozenset({"stablehlo.while", "mhlo.while", "scf.while"})
BRANCHES = frozenset({"stablehlo.if", "stablehlo.case", "mhlo.if", "mhlo.case", "scf.if", "scf.index_switch"})


class Summary(NamedTuple):
    """What a function that writes nothing does: which arguments it reads, and where what it gives is."""

    read: Sequence[int]
    results: Sequence[Place]


class Functions:
    """Of `func` and those that it calls; they must not change while the answers are used."""

    def __init__(self, func: FuncOp) -> None:
        module = func.parent_op()
        functions = [op for op in module.ops if isinstance(op, FuncOp)] if isinstance(module, ModuleOp) else [func]
        self._by_name = {function.sym_name.data: function for function in functions}
        self._entry = func
        self._opening: list[FuncOp] = []
        self._summaries: dict[FuncOp, Summary] = {}
        self._captured: dict[Operation, Sequence[SSAValue]] = {}
        self._indices: dict[Block, dict[Operation, int]] = {}

    def called(self, op: CallOp) -> FuncOp | None:
        """The function, where it has a body."""
        callee = self._by_name.get(op.callee.string_value())
        return None if callee is None or callee.is_declaration else callee

    def can_open(self, callee: FuncOp) -> bool:
        """Whether it has one block and is not open already, calling itself."""
        return len(callee.body.blocks) == 1 and callee not in self._opening

    @contextmanager
    def opened(self, callee: FuncOp) -> Generator[None]:
        self._opening.append(callee)
        yield
        self._opening.remove(callee)

    def summary(self, callee: FuncOp, run: Callable[[], tuple[Set[Buffer], Sequence[Place]]]) -> Summary:
        """Of one that can be opened and that writes nothing; `run` gives the buffers that it reads, and its results."""
        known = self._summaries.get(callee)
        if known is None:
            with self.opened(callee):
                read, results = run()
            arguments = {buffer.value for buffer in read}
            numbers = [argument.index for argument in callee.args if argument in arguments]
            known = self._summaries[callee] = Summary(numbers, results)
        return known

    def writes(self, func: FuncOp) -> bool:
        """Whether something is materialized in the function, or in one that it calls."""
        return func in self._writers

    @cached_property
    def _writers(self) -> Set[FuncOp]:
        callers: defaultdict[FuncOp, list[FuncOp]] = defaultdict(list)
        writers, reached = list[FuncOp](), [self._entry]
        for func in reached:
            for op in func.walk():
                if isinstance(op, MaterializeInDestinationOp):
                    writers.append(func)
                elif isinstance(op, CallOp) and (callee := self.called(op)) is not None:
                    callers[callee].append(func)
                    if callee not in reached:
                        reached.append(callee)
        found = set(writers)
        while writers:
            new = set(callers[writers.pop()]) - found
            found |= new
            writers += new
        return found

    def has_writes(self, op: Operation) -> bool:
        """Whether something is materialized in the operation's regions, or in a function that they call."""
        return any(
            isinstance(one, MaterializeInDestinationOp)
            or (isinstance(one, CallOp) and (callee := self.called(one)) is not None and self.writes(callee))
            for region in op.regions
            for one in region.walk()
        )

    def captured(self, op: Operation) -> Sequence[SSAValue]:
        """What the regions of an operation use from around it, once each."""
        if not op.regions:
            return ()
        known = self._captured.get(op)
        if known is None:
            used = (operand for region in op.regions for one in region.walk() for operand in one.operands)
            known = tuple(dict.fromkeys(value for value in used if not op.is_ancestor(value.owner)))
            self._captured[op] = known
        return known

    def read_behind(self, value: SSAValue, op: Operation) -> bool:
        """Whether an operation behind `op` in its block reads the value, or one in its regions."""
        block = op.parent
        assert block is not None
        if block not in self._indices:
            self._indices[block] = {one: index for index, one in enumerate(block.ops)}
        index = self._indices[block]
        for use in value.uses:
            if isinstance(use.operation, MaterializeInDestinationOp) and use.index == 1:
                continue
            user: Operation | None = use.operation
            while user is not None and user.parent is not block:
                user = user.parent_op()
            if user is not None and index[user] > index[op]:
                return True
        return False


def function_of(value: SSAValue) -> FuncOp | None:
    """The function that the value is in."""
    owner = value.owner
    op = owner if isinstance(owner, Operation) else owner.parent_op()
    while op is not None and not isinstance(op, FuncOp):
        op = op.parent_op()
    return op


def is_terminator(op: Operation) -> bool:
    """Whether `op` ends its block and gives its operands to whoever ran that."""
    if isinstance(op, ReturnOp):
        return True
    return op.parent is not None and op is op.parent.last_op and not op.results and not op.regions


def is_followed_loop(loop: Operation) -> bool:
    """Whether each region of the loop is one block that takes what is carried."""
    if len(loop.regions) != 2 or any(len(region.blocks) != 1 for region in loop.regions):
        return False
    carried = {len(loop.operands), len(loop.results), *(len(region.block.args) for region in loop.regions)}
    return len(carried) == 1


def is_followed_branch(branch: Operation) -> bool:
    """Whether each region of the branch is one block that gives the results, or empty where there are none."""
    given = [region.block.last_op if len(region.blocks) == 1 else None for region in branch.regions]
    counts = [0 if last is None else len(last.operands) for last in given]
    return bool(counts) and set(counts) == {len(branch.results)} and all(len(one.blocks) < 2 for one in branch.regions)
