"""One device's part of an array, from the sharding that stands at an argument or result of the entry function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from donation_inspector.ir.dialect import to_text
from donation_inspector.signature import Shape

_AXES = re.compile(r'"((?:[^"\\]|\\.)*)"\s*=\s*(\d+)')
_AXIS = re.compile(r'"((?:[^"\\]|\\.)*)"(?::\(\d+\)(\d+))?')
_DEVICES = re.compile(r"\{devices=\[([\d,]+)\]")


@dataclass(frozen=True, slots=True)
class Sharding:
    """`shard_shape` is one device's shape, None in a dimension where that is unknown; `text` as the module has it."""

    shard_shape: Shape
    text: str | None


def read(shape: Shape, attributes: DictionaryAttr, function: FuncOp) -> Sharding:
    """The sharding of an argument or result with these attributes.

    Dimensions that Shardy may still shard further (`?`) are unknown, and all of them where a program of several
    partitions says nothing.
    """
    shardy, text = attributes.data.get("sdy.sharding"), attributes.data.get("mhlo.sharding")
    if shardy is not None:
        written = to_text(shardy)
        return Sharding(_divide(shape, _shardy_tiles(written, len(shape), function)), written)
    if isinstance(text, StringAttr):
        return Sharding(_divide(shape, _hlo_tiles(text.data, len(shape))), text.data)
    return Sharding(shape if _partitions(function) == 1 else (None,) * len(shape), None)


def _divide(shape: Shape, tiles: Sequence[int | None] | None) -> Shape:
    if tiles is None or len(tiles) != len(shape):
        return (None,) * len(shape)
    return tuple(
        None if extent is None or tile is None else -(-extent // tile)
        for extent, tile in zip(shape, tiles, strict=True)
    )


def _shardy_tiles(text: str, rank: int, function: FuncOp) -> Sequence[int | None] | None:
    found = re.match(r'#sdy\.sharding<(mesh<.*?>|@"(?:[^"\\]|\\.)*"|@[\w.$-]+), \[(.*)\]', text)
    if found is None:
        return None
    mesh = found.group(1)
    axes = _axes(mesh if mesh.startswith("mesh<") else _mesh(mesh[1:].strip('"'), function))
    if axes is None:
        return None
    tiles: list[int | None] = []
    for part in re.findall(r"\{((?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*)\}", found.group(2))[:rank]:
        tile: int | None = 1
        for name, sub_axis in _AXIS.findall(part):
            extent = int(sub_axis) if sub_axis else axes.get(name)
            tile = None if tile is None or extent is None else tile * extent
        tiles.append(None if re.sub(_AXIS, "", part).find("?") >= 0 else tile)
    return tiles


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


def _partitions(function: FuncOp) -> int | None:
    module = function.parent_op()
    if not isinstance(module, ModuleOp):
        return None
    count = module.attributes.get("mhlo.num_partitions")
    if isinstance(count, IntegerAttr):
        return count.value.data
    return None if any(operation.get_attr_or_prop("mesh") is not None for operation in module.ops) else 1
