"""The `Program` of a lowering holds what JAX itself compiles with."""

from __future__ import annotations

import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib.mlir import ir

import case_loader
from donation_inspector.xla import internals
from donation_inspector.xla.lowering import lower
from donation_inspector.xla.program import Program
from lowered_cases import lower_case


def options_that_jax_uses(lowered: jax.stages.Lowered, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """What reaches XLA's compiler in `lowered.compile()`."""
    seen: list[bytes] = []
    from jax._src import compiler

    compile_and_load = compiler.backend_compile_and_load

    def listen(backend: Any, module: Any, devices: Any, options: Any, *rest: Any) -> Any:
        seen.append(options.SerializeAsString())
        return compile_and_load(backend, module, devices, options, *rest)

    monkeypatch.setattr(compiler, "backend_compile_and_load", listen)
    lowered.compile()
    return seen[-1]


@pytest.mark.parametrize("case", ["plain", "options", "mesh", "unspecified", "token"])
def test_compile_options_are_those_of_jax(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("d"))
    options: dict[str, Any] = {
        "plain": {},
        "options": {"compiler_options": {"xla_cpu_enable_fast_math": True}},
        "mesh": {"in_shardings": (split,), "out_shardings": split},
        "unspecified": {"in_shardings": (split,)},
        "token": {},
    }[case]

    def fn(x: Any) -> Any:
        if case == "token":
            jax.debug.print("{}", x, ordered=True)
        return x * 3 + len(case)

    jitted, spec = jax.jit(fn, **options), jax.ShapeDtypeStruct((16, 4), jnp.float32)

    program = lower(jitted, (spec,), {}).program()

    assert program.compile_options == options_that_jax_uses(jitted.lower(spec), monkeypatch)


def test_the_bytecode_is_the_lowered_module() -> None:
    lowered = lower(jnp.sin, (jnp.ones(3),), {})

    with internals.mlir.make_ir_context():
        assert str(ir.Module.parse(lowered.program().bytecode)) == str(lowered.module)


def test_another_module_can_be_packed() -> None:
    lowered = lower(jax.jit(jnp.sin, donate_argnums=0), (jnp.ones(3),), {})
    other = lower(jnp.sin, (jnp.ones(3),), {})

    assert lowered.program(other.module).bytecode == other.program().bytecode
    assert lowered.program().bytecode != other.program().bytecode


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_it_pickles_and_its_inputs_are_the_entry_functions(name: str) -> None:
    lowered = lower_case(name)
    program: Program = pickle.loads(pickle.dumps(lowered.program()))

    assert program == lowered.program()
    positions = {leaf.index: leaf.position for leaf in lowered.signature.arguments if leaf.position is not None}
    assert {i.leaf: i.position for i in program.inputs if i.leaf is not None} == positions
    for given, value in zip(program.inputs, lowered.values(), strict=True):
        if isinstance(value, jax.Array):
            buffer = jax.random.key_data(value) if "key" in given.logical_dtype else value
            assert (given.shape, given.dtype) == (buffer.shape, str(buffer.dtype))


def test_shards_are_those_of_the_array() -> None:
    program = lower_case("22_sharding_changes").program()
    case = case_loader.load("22_sharding_changes").make()

    assert (program.device_count, program.device_ids) == (8, tuple(range(8)))
    for given, array in zip(program.inputs, case["args"], strict=True):
        assert given.shards is not None
        whole = np.asarray(array)
        for shard in array.addressable_shards:
            part = whole[tuple(slice(*bounds) for bounds in given.shards[shard.device.id])]
            assert part.shape == shard.data.shape


def test_callbacks_and_registered_custom_calls_are_named() -> None:
    assert lower_case("26_pure_callback_host_step").program().callbacks == ("make.<locals>.host",)
    assert set(lower_case("32_linalg_custom_calls").program().custom_calls) >= {"lapack_spotrf_ffi"}
    assert lower_case("01_adam_step").program().custom_calls == ()
