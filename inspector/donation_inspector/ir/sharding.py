"""One device's part of an array, from the sharding that stands at an argument or result of the entry function."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from donation_inspector.common.signature import Shape
from donation_inspector.ir.dialect import to_text

_AXES = re.compile(r'"((?:[^"\\]|\\.)*)"\s*=\s*(\d+)')
_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"(?::\(\d+\)(\d+))?')
_DEVICES = re.compile(r"\{devices=\[([\d,]+)\]")


@dataclass(frozen=True, slots=True)
class Sharding:
    """`shard_shape` is one device's shape, None in a dimension where that is unknown.

    `spec` is JAX's words for it, "P('data', None)", and `mesh` the axes, "data: 4, model: 2": None where the module
    names no axes, or shards in a way that a PartitionSpec cannot say. `text` has both, or what the module itself says;
    None where it says nothing or all is on one device. `memory` is the memory kind where it is not the device's own.
    """

    shard_shape: Shape
    text: str | None = None
    spec: str | None = None
    mesh: str | None = None
    memory: str | None = None


def read(shape: Shape, attributes: DictionaryAttr, function: FuncOp) -> Sharding:
    """The sharding of an argument or result with these attributes.

    Dimensions that Shardy may still shard further (`?`) are unknown, and all of them where a program of several
    partitions says nothing.
    """
    shardy, text = attributes.data.get("sdy.sharding"), attributes.data.get("mhlo.sharding")
    kind = attributes.data.get("mhlo.memory_kind")
    memory = kind.data if isinstance(kind, StringAttr) and kind.data != "device" else None
    if shardy is not None:
        found = _read_shardy(shape, to_text(shardy), function)
    elif isinstance(text, StringAttr):
        found = Sharding(_divide(shape, _hlo_tiles(text.data, len(shape))), text.data)
    else:
        found = Sharding(shape if _partitions(function) == 1 else (None,) * len(shape))
    told = f"{found.text} in {memory}" if found.text and memory else found.text
    return replace(found, text=told, memory=memory)


def _read_shardy(shape: Shape, text: str, function: FuncOp) -> Sharding:
    axes, dimensions = _axes_and_dimensions(text, function)
    shard_shape = _divide(shape, None if axes is None else [_tile(part, axes) for part in dimensions[: len(shape)]])
    if axes is not None and math.prod(axes.values()) == 1:
        return Sharding(shard_shape)
    entries = [_entry(part) for part in dimensions]
    if not axes or None in entries or "unreduced=" in text:
        return Sharding(shard_shape, text)
    spec = f"P({', '.join(map(str, entries))})"
    mesh = ", ".join(f"{name}: {extent}" for name, extent in axes.items())
    return Sharding(shard_shape, f"{spec} over ({mesh})", spec, mesh)


def _divide(shape: Shape, tiles: Sequence[int | None] | None) -> Shape:
    if tiles is None or len(tiles) != len(shape):
        return (None,) * len(shape)
    return tuple(
        None if extent is None or not tile else -(-extent // tile) for extent, tile in zip(shape, tiles, strict=True)
    )


def _axes_and_dimensions(text: str, function: FuncOp) -> tuple[dict[str, int] | None, Sequence[str]]:
    """The mesh's axes, None where it is not there, and what stands between the braces of each dimension."""
    found = re.match(r'#sdy\.sharding<(mesh<.*?>|@"(?:[^"\\]|\\.)*"|@[\w.$-]+), \[(.*)\]', text)
    if found is None:
        return None, ()
    mesh, dimensions = found.groups()
    axes = _axes(mesh if mesh.startswith("mesh<") else _mesh(mesh[1:].strip('"'), function))
    return axes, re.findall(r"\{((?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*)\}", dimensions)


def _tile(part: str, axes: Mapping[str, int]) -> int | None:
    tile: int | None = 1
    for name, sub_axis in _AXIS.findall(part):
        extent = int(sub_axis) if sub_axis else axes.get(name)
        tile = None if tile is None or extent is None else tile * extent
    return None if "?" in re.sub(_AXIS, "", part) else tile


def _entry(part: str) -> str | None:
    """One dimension of a PartitionSpec; None where it cannot say this: part of an axis, or open to more axes."""
    axes = _AXIS.findall(part)
    if any(sub_axis for _, sub_axis in axes):
        return None
    names = [repr(name) for name, _ in axes]
    if "?" in re.sub(_AXIS, "", part):
        return None if names else "P.UNCONSTRAINED"
    if not names:
        return "None"
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _axes(mesh: str | None) -> dict[str, int] | None:
    return None if mesh is None else {name: int(extent) for name, extent in _AXES.findall(mesh)}


def _mesh(name: str, function: FuncOp) -> str | None:
    module = function.parent_op()
    for operation in module.ops if isinstance(module, ModuleOp) else ():
        symbol, mesh = operation.get_attr_or_prop("sym_name"), operation.get_attr_or_prop("mesh")
        if isinstance(symbol, StringAttr) and symbol.data == name and mesh is not None:
            return to_text(mesh)
    return None


def _hlo_tiles(text: str, rank: int) -> Sequence[int | None] | None:
    if text.startswith(("{replicated", "{maximal", "{manual")):
        return (1,) * rank
    found = _DEVICES.match(text)
    tiles: list[int | None] = [int(tile) for tile in found.group(1).split(",")] if found else []
    return tiles[:rank] if len(tiles) >= rank else None


def devices(function: FuncOp) -> int:
    """How many devices the program runs on: its partitions, the devices of its mesh where it does not count them."""
    partitions = _partitions(function)
    if partitions is not None:
        return partitions
    module = function.parent_op()
    meshes = [operation.get_attr_or_prop("mesh") for operation in module.ops] if isinstance(module, ModuleOp) else []
    axes = [_axes(to_text(mesh)) or {} for mesh in meshes if mesh is not None]
    return max((math.prod(one.values()) for one in axes), default=1)


def _partitions(function: FuncOp) -> int | None:
    module = function.parent_op()
    if not isinstance(module, ModuleOp):
        return None
    count = module.attributes.get("mhlo.num_partitions")
    if isinstance(count, IntegerAttr):
        return count.value.data
    return None if any(operation.get_attr_or_prop("mesh") is not None for operation in module.ops) else 1
