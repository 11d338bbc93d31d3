"""One device's shape, read off the module, is what JAX's own sharding says."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from donation_inspector.common.signature import Leaf, Signature
from donation_inspector.ir import source
from donation_inspector.ir.entry import entry_function, read_signature
from donation_inspector.ir.importer import import_module
from ir.programs import module

_SPECS = [
    P(),
    P("a"),
    P(None, "b"),
    P("a", "b"),
    P("b", "a"),
    P(("a", "b")),
    P(None, ("b", "a")),
    P(("a", "c"), "b"),
    P(None, None, "c"),
]


def _signature(text: str) -> Signature:
    return read_signature(entry_function(import_module(source.parse(text)).module))


@pytest.mark.parametrize("shardy", [True, False])
def test_shapes_are_jaxs(shardy: bool) -> None:
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(2, 2, 2), ("a", "b", "c"))
    shardings = [NamedSharding(mesh, spec) for spec in _SPECS]
    shapes = [(16, 8, 4), (8, 16, 12)]
    arguments = [
        jax.ShapeDtypeStruct(shape, np.float32, sharding=sharding)
        for shape, sharding in itertools.product(shapes, shardings)
    ]
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        lowered: Any = jax.jit(lambda *xs: [x + 1 for x in xs], out_shardings=[a.sharding for a in arguments]).lower(
            *arguments
        )
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)
    signature = read_signature(entry_function(import_module(lowered.compiler_ir()).module))
    expected = [argument.sharding.shard_shape(argument.shape) for argument in arguments]
    for leaves in (signature.arguments, signature.results):
        assert [leaf.shard_shape for leaf in leaves] == expected
        assert [leaf.nbytes_per_device for leaf in leaves] == [4 * int(np.prod(shape)) for shape in expected]
        assert all(leaf.nbytes == 4 * int(np.prod(leaf.shape)) for leaf in leaves)
        # Without Shardy the module names no axes.
        assert [_spec(leaf) for leaf in leaves] == [a.sharding if shardy else None for a in arguments]
        assert {leaf.mesh for leaf in leaves} == {"a: 2, b: 2, c: 2" if shardy else None}


def _spec(leaf: Leaf) -> NamedSharding | None:
    """The leaf's words, read as the code that they are."""
    if leaf.spec is None:
        return None
    spec = eval(leaf.spec, {"P": P})
    mesh = Mesh(np.array(jax.devices()[:8]).reshape(2, 2, 2), ("a", "b", "c"))
    rank = len(leaf.shape)
    return next(
        NamedSharding(mesh, one) for one in _SPECS if (*one, *[None] * rank)[:rank] == (*spec, *[None] * rank)[:rank]
    )


def test_the_file_of_shardings() -> None:
    signature = read_signature(entry_function(import_module(module("09_sdy_sharding.mlir")).module))
    whole = 64 * 128 * 4
    assert [leaf.nbytes for leaf in signature.arguments] == [whole, whole]
    assert [leaf.nbytes_per_device for leaf in signature.arguments] == [whole // 8, None]
    assert [leaf.shard_shape for leaf in signature.arguments] == [(16, 64), (64, None)]
    assert signature.arguments[0].sharding == "P('data', 'model') over (data: 4, model: 2)"
    assert signature.arguments[1].spec == "P(None, P.UNCONSTRAINED)"


@pytest.mark.parametrize(
    ("sharding", "expected", "spec"),
    [
        ('sdy.sharding = #sdy.sharding<mesh<["x"=2, "y"=4]>, [{"y"}, {"x"}]>', (3, 4), "P('y', 'x')"),
        # A PartitionSpec has no words for part of an axis, nor for a dimension that is split and open to more.
        ('sdy.sharding = #sdy.sharding<@m, [{"x":(1)2}, {}]>', (5, 8), None),
        ('sdy.sharding = #sdy.sharding<@m, [{"x", ?}, {}], replicated={"y"}>', (None, 8), None),
        ('sdy.sharding = #sdy.sharding<@m, [{"x"}, {}], unreduced={"y"}>', (3, 8), None),
        ('sdy.sharding = #sdy.sharding<@m, [{?}p0, {"x"}p1]>', (None, 2), "P(P.UNCONSTRAINED, 'x')"),
        ('mhlo.sharding = "{replicated}"', (10, 8), None),
        ('mhlo.sharding = "{maximal device=0}"', (10, 8), None),
        ('mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"', (5, 8), None),
        ('mhlo.sharding = "{devices=[4,2]0,1,2,3,4,5,6,7}"', (3, 4), None),
        ('mhlo.sharding = "{unheard of}"', (None, None), None),
        ('foo.bar = "nothing about it"', (None, None), None),
    ],
)
def test_written_shardings(sharding: str, expected: tuple[int | None, ...], spec: str | None) -> None:
    signature = _signature(f"""
        module attributes {{mhlo.num_partitions = 8 : i32}} {{
          sdy.mesh @m = <["x"=4, "y"=1]>
          func.func public @main(%arg0: tensor<10x8xf32> {{{sharding}}}) -> tensor<10x8xf32> {{
            return %arg0 : tensor<10x8xf32>
          }}
        }}""")
    assert (signature.arguments[0].shard_shape, signature.arguments[0].spec) == (expected, spec)


def test_host_memory_is_told_and_a_mesh_of_one_device_is_not() -> None:
    signature = _signature("""
        module attributes {mhlo.num_partitions = 8 : i32} {
          sdy.mesh @m = <["x"=4, "y"=2]>
          sdy.mesh @one = <["x"=1]>
          func.func public @main(
            %arg0: tensor<8x8xf32> {mhlo.memory_kind = "pinned_host", sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>},
            %arg1: tensor<8x8xf32> {mhlo.memory_kind = "device", sdy.sharding = #sdy.sharding<@one, [{"x"}, {}]>}
          ) { return }
        }""")
    host, one = signature.arguments
    assert (host.memory, host.sharding) == ("pinned_host", "P('x', None) over (x: 4, y: 2) in pinned_host")
    assert (one.memory, one.sharding, one.spec, one.shard_shape) == (None, None, None, (8, 8))


def test_one_partition_is_the_whole() -> None:
    signature = _signature("func.func @main(%arg0: tensor<10x8xf32>) { return }")
    assert signature.arguments[0].shard_shape == (10, 8)
    assert signature.arguments[0].nbytes_per_device == 320
