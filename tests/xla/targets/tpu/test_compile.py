"""Programs for a TPU that is not here, through the child process that compiles them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from donation_inspector.errors import CompileError, TraceError
from donation_inspector.xla import lowering, modules
from donation_inspector.xla.compile import Compiled, compile_variants
from donation_inspector.xla.hlo.buffers import read_buffers
from donation_inspector.xla.process import environment
from donation_inspector.xla.program import Program
from donation_inspector.xla.targets import resolve, tpu

MIB = 1 << 20
MATRIX = jax.ShapeDtypeStruct((4096, 4096), jnp.float32)
BYTES = 4096 * 4096 * 4


def packed(fn: Callable[..., Any], *args: Any, spec: str = "tpu:v5e", donate: tuple[int, ...] = ()) -> Program:
    lowered = lowering.lower(jax.jit(fn, donate_argnums=donate), args, {})
    target = resolve(spec, platform=lowered.platform, devices=lowered.devices)
    return lowered.for_platform(target.platform).program(target=target)


def compiled(fn: Callable[..., Any], *args: Any, spec: str = "tpu:v5e", donate: tuple[int, ...] = ()) -> Compiled:
    return compile_variants({"program": packed(fn, *args, spec=spec, donate=donate)}, hlo=True)["program"]


def step(w: Any, g: Any) -> Any:
    return w - 0.1 * g, (w * g).sum()


def on(mesh: Any, *axes: Any) -> Any:
    return jax.ShapeDtypeStruct(MATRIX.shape, MATRIX.dtype, sharding=NamedSharding(mesh, P(*axes)))


@pytest.fixture(autouse=True)
def never_here() -> Any:
    """libtpu is loaded in a child alone."""
    yield
    assert "libtpu.so" not in Path("/proc/self/maps").read_text()


def test_one_device() -> None:
    answers = compile_variants(
        {"none": packed(step, MATRIX, MATRIX), "jax": packed(step, MATRIX, MATRIX, donate=(0,))}, hlo=True
    )
    for answer, aliased in ((answers["none"], {}), (answers["jax"], {0: 0})):
        assert (answer.status, answer.error) == ("ok", None)
        assert answer.input_output_alias == aliased
        assert answer.memory is not None
        assert answer.hlo is not None
        assert answer.seconds is not None
        assert answer.seconds > 0
        memory = answer.memory
        assert (memory.argument, memory.alias, memory.temp) == (2 * BYTES, BYTES * len(aliased), 0)
        # the table of pointers and the padded scalar besides
        assert 0 < memory.output - BYTES < 4096
        # of the 16 KB that are needed while the code is made one of both tells
        assert abs(read_buffers(answer.hlo).reserved - memory.total) < 1 << 15


def test_a_mesh_is_laid_on_the_chips() -> None:
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
    program = packed(step, on(mesh, "x", "y"), on(mesh, "x", "y"), donate=(0,))
    assert (program.target.name, program.mesh_shape, program.device_ids) == ("tpu:v5e:2x4", (4, 2), tuple(range(8)))
    answer = compile_variants({"program": program})["program"]
    assert answer.status == "ok"
    assert answer.hlo is None
    assert answer.memory is not None
    assert (answer.memory.argument, answer.memory.alias) == (2 * BYTES // 8, BYTES // 8)


def test_an_abstract_mesh_needs_no_devices() -> None:
    mesh = AbstractMesh((16, 16), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
    program = packed(step, on(mesh, "x", "y"), on(mesh, "x", "y"), donate=(0,))
    assert program.target.name == "tpu:v5e:16x16"
    answer = compile_variants({"program": program})["program"]
    assert answer.status == "ok"
    assert answer.memory is not None
    assert (answer.memory.argument, answer.memory.alias) == (2 * BYTES // 256, BYTES // 256)


def test_part_of_a_topology() -> None:
    answer = compiled(step, MATRIX, MATRIX, spec="tpu:v5e:4x4", donate=(0,))
    assert (answer.status, answer.input_output_alias) == ("ok", {0: 0})


def test_two_at_once() -> None:
    programs = packed(step, MATRIX, MATRIX), packed(step, MATRIX, MATRIX, donate=(0,))
    answers: dict[int, Compiled] = {}
    # each waits for the other before it starts
    together = threading.Barrier(2)

    def run(number: int) -> None:
        together.wait()
        answers[number] = compile_variants({"program": programs[number]})["program"]

    threads = [threading.Thread(target=run, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(answers[number].status, answers[number].error) for number in (0, 1)] == [("ok", None)] * 2
    assert [answers[number].input_output_alias for number in (0, 1)] == [{}, {0: 0}]


def test_what_does_not_fit_has_its_buffers() -> None:
    wide = jax.ShapeDtypeStruct((32768, 32768), jnp.float32)
    program = packed(lambda x, y: (jnp.sin(x @ y)[::-1] + 1, jnp.cos(x) @ x), wide, wide, donate=(0,))
    answer = compile_variants({"program": program}, hlo=True)["program"]
    assert answer.status == "does not fit"
    assert answer.memory is not None
    assert answer.hlo is not None
    assert answer.input_output_alias == {0: 0}
    assert answer.memory.alias == 4 << 30
    assert read_buffers(answer.hlo).reserved == answer.memory.total
    # XLA's own words: what it takes, and what there is
    assert answer.error == (
        "tpu:v5e:1x1 is too small: Ran out of memory on HBM, the total memory required for HLO temporaries "
        f"({answer.memory.total / 2**30:.2f}G) exceeds available HBM (15.75G)."
    )
    assert answer.capacity == int(15.75 * 2**30)
    # without the HloProto being asked for the memory is known all the same
    plain = compile_variants({"program": program})["program"]
    assert (plain.status, plain.memory, plain.hlo) == ("does not fit", answer.memory, None)


@pytest.mark.parametrize("name", tpu.GENERATIONS)
def test_the_capacity_is_where_xla_draws_the_line(name: str) -> None:
    """A program fits that leaves 1 MiB of it, for its code; one that takes it all does not."""
    capacity = tpu.GENERATIONS[name].capacity
    assert capacity % MIB == 0

    def sized(nbytes: int) -> Program:
        # as large an argument as result, in blocks of 4 KiB
        return packed(lambda x: x + 1, jax.ShapeDtypeStruct((nbytes // 2 // 512, 128), jnp.float32), spec=f"tpu:{name}")

    answers = compile_variants({"below": sized(capacity - MIB), "all": sized(capacity)})
    below, whole = answers["below"], answers["all"]
    assert (below.status, below.error) == ("ok", None)
    assert below.memory is not None
    assert below.memory.total == capacity - MIB
    assert whole.status == "does not fit"
    assert whole.capacity == pytest.approx(capacity, abs=0.01 * 2**30)
    assert resolve(f"tpu:{name}", platform="cpu", devices=1).capacity == capacity


def test_a_callback_is_refused_in_words() -> None:
    def talks(x: Any) -> Any:
        jax.debug.print("{}", x[0, 0])
        return x + 1

    with pytest.raises(TraceError) as raised:
        packed(talks, MATRIX)
    assert str(raised.value) == (
        "talks cannot be lowered for tpu: it calls back into Python (jax.debug.print, jax.pure_callback, io_callback), "
        "and JAX lowers that for a device that is here alone. Leave the call out for this target."
    )


def test_a_lowering_alone_is_taken_as_it_is() -> None:
    target = resolve("tpu:v5e", platform="cpu", devices=1)
    plain = lowering.lower(jax.jit(step, donate_argnums=0).lower(MATRIX, MATRIX), (), {})
    factors = lowering.lower(jax.jit(jnp.linalg.cholesky).lower(MATRIX), (), {})
    assert factors.for_platform("tpu") is factors
    answers = compile_variants(
        {
            "plain": plain.for_platform("tpu").program(target=target),
            "cholesky": factors.program(target=target),
            "function": packed(jnp.linalg.cholesky, jax.ShapeDtypeStruct((128, 128), jnp.float32)),
        }
    )
    # a Cholesky is LAPACK's on a CPU, and XLA's own on a TPU
    assert (answers["function"].status, answers["function"].error) == ("ok", None)
    assert (answers["plain"].status, answers["plain"].input_output_alias) == ("ok", {0: 0})
    assert answers["cholesky"].status == "refused"
    assert answers["cholesky"].error == (
        "The module calls 'lapack_spotrf_ffi', which tpu:v5e:1x1 does not have: it was lowered for another platform. "
        "Give the function and its arguments, and it is lowered for this one."
    )


def test_a_file_is_taken_as_it_is() -> None:
    lowered = lowering.lower(jax.jit(step, donate_argnums=0), (MATRIX, MATRIX), {})
    target = resolve("tpu:v5e:2x2", platform="cpu", devices=1)
    program = modules.pack_module(lowered.module, "file", lowered.signature.arguments, target)
    assert compile_variants({"file": program})["file"].input_output_alias == {0: 0}
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    eight = lowering.lower(jax.jit(step), (on(mesh, "x"), on(mesh, "x")), {})
    with pytest.raises(CompileError, match="eight is a program for 8 devices; tpu:v5e:2x2 has 4"):
        modules.pack_module(eight.module, "eight", eight.signature.arguments, target)


def test_the_order_on_the_chips_is_jaxs_own() -> None:
    """In a process that has libtpu: the devices of `jax.make_mesh` for this topology."""
    script = (
        "import jax, math\n"
        "from donation_inspector.xla.targets import resolve, tpu\n"
        "from donation_inspector.xla.targets.layout import lay\n"
        "for spec, shape in (('tpu:v5e:2x4', (4, 2)), ('tpu:v5e:4x4', (4, 4)), ('tpu:v5e:4x4', (16,)),\n"
        "                    ('tpu:v5p:2x2x2', (2, 4)), ('tpu:v4:2x2x2', (2, 2, 2)), ('tpu:v6e:4x4', (4, 4))):\n"
        "    target = resolve(spec, platform='cpu', devices=1)\n"
        "    devices = tpu.devices(target)\n"
        "    assert len(devices) == target.devices, spec\n"
        "    names = tuple(f'axis{i}' for i in range(len(shape)))\n"
        "    types = (jax.sharding.AxisType.Auto,) * len(shape)\n"
        "    mesh = jax.make_mesh(shape, names, axis_types=types, devices=devices)\n"
        "    ours = lay(devices, math.prod(shape), shape)\n"
        "    print([d.id for d in ours] == [d.id for d in mesh.devices.flat], ours == devices)\n"
        "devices = tpu.devices(resolve('tpu:v6e:4x4', platform='cpu', devices=1))\n"
        "print(sorted(d.id for d in lay(devices, 16, (2, 8))) == list(range(16)), False)\n"
    )
    env = os.environ | tpu.environment(resolve("tpu:v5e", platform="cpu", devices=4))
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [same for same, _ in lines] == ["True"] * 7
    # rings: not the order of their numbers
    assert "False" in {in_order for _, in_order in lines}


def test_what_the_child_is_given() -> None:
    env = environment(packed(step, MATRIX, MATRIX, spec="tpu:v5e:4x4"))
    assert env["JAX_PLATFORMS"] == "cpu"
    assert env["ALLOW_MULTIPLE_LIBTPU_LOAD"] == "1"
    assert env["TPU_ACCELERATOR_TYPE"] == "v5litepod-16"
    assert "TPU_ACCELERATOR_TYPE" not in environment(lowering.lower(jax.jit(step), (MATRIX, MATRIX), {}).program())
