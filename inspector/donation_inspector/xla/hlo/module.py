"""A compiled HLO module by instruction, computation and shape: what the analyses ask, answered at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from donation_inspector.xla.hlo.proto import (
    HloComputationProto,
    HloInstructionProto,
    HloModuleProto,
    ShapeProto,
    primitive_types,
)

ShapeIndex = tuple[int, ...]
"""The way into nested tuples: () is the whole shape, (1, 0) the first part of its second part."""

Position = tuple[int, ShapeIndex]
"""An instruction's id and a part of its result."""

_NUMPY_NAMES = {
    "PRED": "bool",
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "C128": "complex128",
}
_PREFIXES = {"S": "int", "U": "uint", "F": "float"}


class Module:
    """An index of a module; `proto` is XLA's message."""

    def __init__(self, proto: HloModuleProto) -> None:
        self.proto = proto
        self.computations: dict[int, HloComputationProto] = {c.id: c for c in proto.computations}
        self.instructions: dict[int, HloInstructionProto] = {}
        self.computation_of: dict[int, int] = {}
        self.callers: defaultdict[int, list[HloInstructionProto]] = defaultdict(list)
        self.roots = {computation.root_id for computation in proto.computations}
        for computation in proto.computations:
            for instruction in computation.instructions:
                self.instructions[instruction.id] = instruction
                self.computation_of[instruction.id] = computation.id
                for called in instruction.called_computation_ids:
                    self.callers[called].append(instruction)
        self._parts: dict[int, tuple[ShapeIndex, ...]] = {}

    @property
    def entry(self) -> HloComputationProto:
        """The entry computation."""
        return self.computations[self.proto.entry_computation_id]

    def parts(self, instruction: int) -> tuple[ShapeIndex, ...]:
        """Every part of an instruction's result: the whole first, a tuple before its elements."""
        known = self._parts.get(instruction)
        if known is None:
            known = self._parts[instruction] = tuple(_indices(self.instructions[instruction].shape))
        return known


def _indices(shape: ShapeProto, prefix: ShapeIndex = ()) -> Iterator[ShapeIndex]:
    yield prefix
    for number, part in enumerate(shape.tuple_shapes):
        yield from _indices(part, (*prefix, number))


def subshape(shape: ShapeProto, index: ShapeIndex) -> ShapeProto:
    """The part of a nested tuple's shape at `index`."""
    for number in index:
        shape = shape.tuple_shapes[number]
    return shape


def dtype(shape: ShapeProto) -> str:
    """The element type in numpy's words ("float32", "bfloat16", "int4"), else XLA's: "tuple", "token"."""
    name = primitive_types().get(shape.element_type, "unknown")
    if name in _NUMPY_NAMES:
        return _NUMPY_NAMES[name]
    if name[0] in _PREFIXES and name[1:2].isdigit():
        kind = _PREFIXES[name[0]]
        # numpy has no 8-bit float of its own: ml_dtypes names them float8_e4m3fn
        return kind + (f"{name[1]}_{name[2:].lower()}" if kind == "float" else name[1:])
    return name.removesuffix("_TYPE").lower()
