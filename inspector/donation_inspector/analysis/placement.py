"""Where a leaf lies on several devices, in words: its PartitionSpec and one device's part."""

from __future__ import annotations

from donation_inspector.analysis.out_shardings import has_several_meshes, left_to_xla
from donation_inspector.analysis.paths import noun
from donation_inspector.common.signature import Leaf, Shape, Signature


def dimensions(shape: Shape) -> str:
    """ "64,128", with "?" for a dynamic dimension."""
    return ",".join("?" if dimension is None else str(dimension) for dimension in shape)


def type_text(leaf: Leaf) -> str:
    """The leaf's type as JAX writes it: "float32[64,128]", "?" for a dynamic dimension."""
    return f"{leaf.dtype}[{dimensions(leaf.shape)}]"


def result_text(leaf: Leaf) -> str:
    """The result as a noun."""
    return noun(leaf.title)


class Placement:
    """The words for the leaves of one signature, which has several devices."""

    def __init__(self, signature: Signature) -> None:
        self.several_meshes = has_several_meshes(signature)

    def sharding(self, leaf: Leaf) -> str:
        """ "P('x', None)", its mesh where there are several, "its sharding left to XLA" where nothing is told."""
        if left_to_xla(leaf):
            return "its sharding left to XLA"
        if leaf.spec is None or self.several_meshes:
            return str(leaf.sharding)
        return leaf.spec if leaf.memory is None else f"{leaf.spec} in {leaf.memory}"

    def type_and_place(self, leaf: Leaf) -> str:
        """ "float32[1024,512], P('x', None), 256×512 a device"."""
        parts = [type_text(leaf), self.sharding(leaf)]
        if leaf.shard_shape and None not in leaf.shard_shape:
            parts.append(f"{'×'.join(map(str, leaf.shard_shape))} a device")
        return ", ".join(parts)
