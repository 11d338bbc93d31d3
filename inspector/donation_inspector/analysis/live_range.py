"""Live ranges of the entry function's values, in program order, as columns.

What donation changes is the end of the arguments alone, so a table is built once for a function and `with_donated`
makes another that shares everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal, overload

import numpy as np
import numpy.typing as npt
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import OpResult, SSAValue

from donation_inspector.analysis.liveness import Liveness
from donation_inspector.analysis.naming import CONSTANT, operation_name, value_names
from donation_inspector.common.signature import Shape
from donation_inspector.errors import IRError
from donation_inspector.ir.dialect import to_text
from donation_inspector.ir.location import source
from donation_inspector.ir.size import nbytes, shape_dtype

Kind = Literal["argument", "constant", "temporary", "result"]
KINDS: tuple[Kind, ...] = ("argument", "constant", "temporary", "result")
UNKNOWN = -1
"""Stands in the `nbytes` column for a size that is unknown."""

_MOST = 1 << 50
"""Bytes of one value; thousands of these together are still no overflow."""

_NO_NAMES: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LiveRange:
    """One value of the entry function and where it is live.

    `start` and `end` are indices of the function's own operations, all blocks in order, both inclusive. `nbytes` is the
    global size, None when unknown. `value` is the argument's path, or the name in the printed module. `source` is
    "file:line" of the innermost user frame.
    """

    value: str
    kind: Kind
    shape: Shape
    dtype: str
    nbytes: int | None
    start: int
    end: int
    source: str | None


class _Values:
    """What donation does not change about a function's values: one row each, the entry block's arguments first."""

    def __init__(self, func: FuncOp, names: Mapping[int, str]) -> None:
        self.func, self.names = func, names
        self.liveness = Liveness(func)
        blocks = func.body.blocks
        self.values: tuple[SSAValue, ...] = tuple(
            value for block in blocks for value in (*block.args, *(result for op in block.ops for result in op.results))
        )
        self.arguments = len(func.args)
        self.operations = len(self.liveness.operations)
        rows: dict[SSAValue, int] = {value: row for row, value in enumerate(self.values)}
        spans = np.array([(rows[value], first, last) for value, first, last in self.liveness.spans()], np.int32)
        self.spans = spans.reshape(-1, 3).T
        self.nbytes = self._nbytes()
        self.kind = self._kind()

    def _nbytes(self) -> npt.NDArray[np.int64]:
        # by identity: values share type objects, and hashing a type costs more than looking it up
        sizes: dict[int, int] = {}
        for type_ in {id(value.type): value.type for value in self.values}.values():
            size = nbytes(type_)
            if size is not None and size > _MOST:
                raise IRError(f"{to_text(type_)} has {size} bytes: no devices have so many together.")
            sizes[id(type_)] = UNKNOWN if size is None else size
        return np.array([sizes[id(value.type)] for value in self.values], np.int64)

    def _kind(self) -> npt.NDArray[np.int8]:
        last_ops = [block.last_op for block in self.func.body.blocks]
        returned = {value for op in last_ops if isinstance(op, ReturnOp) for value in op.operands}
        argument, constant, temporary, result = range(len(KINDS))
        column = [argument] * self.arguments
        for value in self.values[self.arguments :]:
            if value in returned:
                column.append(result)
            elif isinstance(value, OpResult) and operation_name(value.op) == CONSTANT:
                column.append(constant)
            else:
                column.append(temporary)
        return np.array(column, np.int8)

    @cached_property
    def printed(self) -> tuple[str, ...]:
        names = value_names(self.func)
        return tuple(self.names.get(row, names[value]) for row, value in enumerate(self.values))

    @cached_property
    def sources(self) -> tuple[str | None, ...]:
        # by identity: operations share locations, and hashing a deep call chain costs more than reading it
        locations = [value.op.location if isinstance(value, OpResult) else None for value in self.values]
        place_of: dict[int, str | None] = {id(None): None}
        for location in {id(one): one for one in locations if one is not None}.values():
            place = source(location)
            place_of[id(location)] = None if place is None or place.file is None else f"{place.file}:{place.line}"
        return tuple(place_of[id(location)] for location in locations)


class LiveRanges(Sequence[LiveRange]):
    """The live range of every value of `func`: its arguments first, then in the order of definition.

    An argument that is not donated is live throughout. A donated one is live until its last use, at operation 0 alone
    when it has none. Give in `donated` the positions whose buffers JAX really gives away: an argument that was asked
    for but cannot be used keeps its buffer. A returned value is live until the return. A value without a use is live
    where it is defined. `names` gives argument positions their paths.

    Columns, one entry a value: `start` and `end` (int32, indices of operations, both inclusive), `nbytes` (int64, -1
    where the size is unknown), `kind` (int8, an index into `KINDS`). In a function of several blocks a range is the
    hull of the stretches at which the value is live; `spans` holds these as three int32 rows: value, first operation,
    last operation.

    Raises IRError for a function without a body or with a value that no devices hold, IndexError for a position that is
    no argument.
    """

    def __init__(
        self, func: FuncOp, *, donated: Iterable[int] = frozenset(), names: Mapping[int, str] = _NO_NAMES
    ) -> None:
        if func.is_declaration:
            raise IRError(f"Function @{func.sym_name.data} has no body, so nothing in it can be analysed.")
        self._donate(_Values(func, names), frozenset(donated))

    def _donate(self, values: _Values, donated: frozenset[int]) -> None:
        self._values, self.donated = values, donated
        kept = np.ones(values.arguments, bool)
        kept[list(donated)] = False
        throughout = np.zeros(len(values.values), bool)
        throughout[: values.arguments] = kept
        (arguments,) = np.nonzero(kept)
        whole = np.zeros((3, len(arguments)), np.int32)
        whole[0], whole[2] = arguments, values.operations - 1
        self.spans: npt.NDArray[np.int32] = np.hstack([whole, values.spans[:, ~throughout[values.spans[0]]]])

    def with_donated(self, positions: Iterable[int]) -> LiveRanges:
        """The same function with exactly these arguments donated; shares all columns but the ends of arguments."""
        ranges = object.__new__(LiveRanges)
        ranges._donate(self._values, frozenset(positions))
        return ranges

    @property
    def liveness(self) -> Liveness:
        return self._values.liveness

    @property
    def operations(self) -> int:
        """How many operations the function has of its own, all blocks together."""
        return self._values.operations

    @cached_property
    def start(self) -> npt.NDArray[np.int32]:
        start = np.full(len(self), self.operations, np.int32)
        np.minimum.at(start, self.spans[0], self.spans[1])
        return start

    @cached_property
    def end(self) -> npt.NDArray[np.int32]:
        end = np.full(len(self), -1, np.int32)
        np.maximum.at(end, self.spans[0], self.spans[2])
        return end

    @property
    def nbytes(self) -> npt.NDArray[np.int64]:
        return self._values.nbytes

    @property
    def kind(self) -> npt.NDArray[np.int8]:
        return self._values.kind

    @property
    def names(self) -> tuple[str, ...]:
        """Each value's path or printed name."""
        return self._values.printed

    @property
    def sources(self) -> tuple[str | None, ...]:
        """The innermost user frame of each value's operation, "file:line"; None where there is none."""
        return self._values.sources

    def __len__(self) -> int:
        return len(self._values.values)

    def __iter__(self) -> Iterator[LiveRange]:
        return (self._range(row) for row in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> LiveRange: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LiveRange, ...]: ...
    def __getitem__(self, index: int | slice) -> LiveRange | tuple[LiveRange, ...]:
        if isinstance(index, slice):
            return tuple(self._range(row) for row in range(len(self))[index])
        return self._range(range(len(self))[index])

    def _range(self, row: int) -> LiveRange:
        value = self._values.values[row]
        shape, dtype = shape_dtype(value.type)
        size = int(self.nbytes[row])
        return LiveRange(
            value=self.names[row],
            kind=KINDS[int(self.kind[row])],
            shape=shape,
            dtype=dtype,
            nbytes=None if size == UNKNOWN else size,
            start=int(self.start[row]),
            end=int(self.end[row]),
            source=self.sources[row],
        )
