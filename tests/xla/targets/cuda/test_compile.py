"""Programs for a GPU that is not here, through the child process that compiles them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from donation_inspector.xla import lowering
from donation_inspector.xla.compile import Compiled, compile_variants
from donation_inspector.xla.hlo.buffers import read_buffers
from donation_inspector.xla.targets import cuda, resolve

N = 512
MATRIX = jax.ShapeDtypeStruct((N, N), jnp.float32)
BYTES = N * N * 4


def compiled(fn: Callable[..., Any], *args: Any, spec: str = "cuda:h100", donate: tuple[int, ...] = ()) -> Compiled:
    lowered = lowering.lower(jax.jit(fn, donate_argnums=donate), args, {}).for_platform("cuda")
    target = resolve(spec, platform="cpu", devices=lowered.devices)
    return compile_variants({"program": lowered.program(target=target)}, hlo=True)["program"]


def pair(a: Any, b: Any) -> Any:
    return jnp.tanh(b) * 2, jnp.sin(a) + 1


def adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def matrices(memory: Any) -> tuple[float, ...]:
    """argument, output, alias and temp in whole matrices; what is smaller (a tuple's table) rounds away."""
    return tuple(round(nbytes / BYTES, 3) for nbytes in (memory.argument, memory.output, memory.alias, memory.temp))


@pytest.mark.parametrize("name", [one.name for one in cuda.listed()])
def test_every_gpu_that_we_bring_compiles(name: str) -> None:
    answer = compiled(lambda a, b: (jnp.tanh(a @ b), jnp.exp(b)), MATRIX, MATRIX, spec=name, donate=(0, 1))
    assert (answer.status, answer.error) == ("ok", None)
    assert answer.memory is not None
    argument, output, alias, _ = matrices(answer.memory)
    assert (argument, output, alias) == (2, 2, 2)
    assert answer.hlo is not None
    assert read_buffers(answer.hlo).reserved == answer.memory.total


def test_what_donation_saves_on_a_gpu() -> None:
    none = compiled(adam, MATRIX, MATRIX, MATRIX, MATRIX)
    donated = compiled(adam, MATRIX, MATRIX, MATRIX, MATRIX, donate=(0, 1, 2))
    assert none.memory is not None
    assert donated.memory is not None
    assert matrices(none.memory) == (4, 3, 0, 0)
    assert matrices(donated.memory) == (4, 3, 3, 0)
    assert none.memory.total - donated.memory.total == 3 * BYTES
    assert donated.input_output_alias == {0: 0, 1: 1, 2: 2}


def test_aliasing_across_makes_a_copy() -> None:
    answer = compiled(pair, MATRIX, MATRIX, donate=(0, 1))
    assert answer.input_output_alias == {0: 0, 1: 1}
    assert answer.memory is not None
    assert matrices(answer.memory) == (2, 2, 2, 1)


def test_libraries_that_are_not_here_are_called_by_name_alone() -> None:
    def solved(a: Any) -> Any:
        return jnp.linalg.cholesky(a @ a.T), jnp.fft.fft(a), jnp.linalg.eigh(a)

    answer = compiled(solved, MATRIX, donate=(0,))
    assert (answer.status, answer.error) == ("ok", None)
    assert b"cusolver_potrf_ffi" in (answer.hlo or b"")


def test_a_program_larger_than_the_gpu_is_laid_out_all_the_same() -> None:
    large = jax.ShapeDtypeStruct((25, 2**30), jnp.float32)
    answer = compiled(lambda a: jnp.tanh(a) + 1, large)
    capacity = resolve("cuda:h100", platform="cpu", devices=1).capacity
    assert answer.status == "ok"
    assert answer.memory is not None
    assert capacity is not None
    assert answer.memory.total == 200 * 2**30 > capacity
    assert answer.hlo is not None
    assert read_buffers(answer.hlo).peak == answer.memory.total


@pytest.mark.parametrize("abstract", [False, True])
def test_a_sharded_program_is_one_devices(abstract: bool) -> None:
    mesh: Any = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    if abstract:
        # two hosts, of which the second has four to spare
        mesh = AbstractMesh((3, 4), ("x", "y"))
    array = jax.ShapeDtypeStruct((1536, 1024), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec("x", "y")))
    answer = compiled(lambda a, b: ((a + b) / a.sum(), a @ b.T), array, array, donate=(0,))
    assert (answer.status, answer.error) == ("ok", None)
    assert answer.memory is not None
    each = 1536 * 1024 * 4 // mesh.size
    assert (answer.memory.argument, answer.memory.alias) == (2 * each, each)


OWN = """
gpu_device_info {
  cuda_compute_capability { major: 9 }
  device_memory_size: 84942979072
  core_count: 132
  fpus_per_core: 128
  clock_rate_ghz: 1.98
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  shared_memory_per_core: 233472
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  threads_per_core_limit: 2048
  threads_per_block_limit: 1024
  threads_per_warp: 32
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  runtime_version: "12.8.0"
  name: "NVIDIA H100 80GB HBM3"
  cub_version: "3.1.2"
}
platform_name: "CUDA"
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def test_a_config_as_xla_writes_it_where_the_gpu_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.txtpb"
    path.write_text(OWN)
    # a sort large enough for CUB, for which this config tells XLA to ask CUDA's runtime
    answer = compiled(jnp.sort, jax.ShapeDtypeStruct((2**20,), jnp.float32), spec=f"cuda:{path}")
    assert (answer.status, answer.error) == ("ok", None)


def test_a_config_that_xla_cannot_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.txtpb"
    path.write_text(OWN + "}")
    answer = compiled(pair, MATRIX, MATRIX, spec=f"cuda:{path}")
    assert answer.status == "refused"
    assert answer.error is not None
    assert f"cuda:{path}" in answer.error
    assert "GpuTargetConfigProto" in answer.error
