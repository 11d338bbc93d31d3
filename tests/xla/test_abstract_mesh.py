"""A program for more devices than there are, by a mesh that names none: lowered for the default platform, compiled."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from donation_inspector.errors import CompileError
from donation_inspector.xla import lowering, packing
from donation_inspector.xla.compile import compile_variants
from donation_inspector.xla.targets import Target

MESH = AbstractMesh((16, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
BYTES = 1024 * 1024 * 4 // 64


def step(w: Any, g: Any) -> Any:
    return w - 0.1 * g, g.sum()


def argument(*axes: Any) -> Any:
    return jax.ShapeDtypeStruct((1024, 1024), jnp.float32, sharding=NamedSharding(MESH, P(*axes)))


def lowered(**jit: Any) -> lowering.Lowered:
    return lowering.lower(jax.jit(step, **jit), (argument("x", "y"), argument("x", "y")), {})


def test_it_is_lowered_for_the_default_platform() -> None:
    own = lowered(donate_argnums=0)
    assert (own.devices, own.mesh_shape, own.platform) == (64, (16, 4), "cpu")
    assert [leaf.nbytes_per_device for leaf in own.signature.arguments] == [BYTES, BYTES]
    program = own.program()
    assert (program.device_ids, program.device_count, program.mesh_shape) == (tuple(range(64)), 64, (16, 4))
    assert program.target == Target("cpu", "cpu")


def test_each_donated_set_is_decided_as_jax_lowers_it() -> None:
    results = {"out_shardings": (NamedSharding(MESH, P("x", "y")), NamedSharding(MESH, P()))}
    for donated in ((), (0,), (1,), (0, 1)):
        own = lowered(donate_argnums=donated, **results)
        assert lowering.decide(lowered(**results), frozenset(donated)) == own.donation
        assert own.donation.aliases == ({donated[0]: 0} if donated else {})


def test_a_cpu_child_makes_the_devices() -> None:
    answer = compile_variants({"jax": lowered(donate_argnums=0).program()})["jax"]
    assert (answer.status, answer.error, answer.input_output_alias) == ("ok", None, {0: 0})
    assert answer.memory is not None
    assert (answer.memory.argument, answer.memory.alias) == (2 * BYTES, BYTES)


def test_other_devices_cannot_be_made() -> None:
    facts = lowered()._facts  # pyright: ignore[reportPrivateUsage]
    backend = type("Backend", (), {"platform": "cuda", "device_count": staticmethod(lambda: 2)})
    with pytest.raises(CompileError) as raised:
        packing.pack(dataclasses.replace(facts, backend=backend), lowered().module, "step")
    assert str(raised.value) == ("The program is written for 64 devices; this machine has 2 of platform cuda.")
