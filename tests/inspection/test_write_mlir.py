"""From a function to `xdsl-opt` and back: the pass on the written text makes what `apply` shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import donation_inspector as di
from case_loader import CASE_NAMES
from donation_inspector.ir.entry import read_donation
from inspection.test_cases import inspect_case
from ir.shell import xdsl_opt, xdsl_opt_from_the_shell
from workloads.gpt_train_step import make

REAL = "jax-use-donated-arguments"
AND_ALIASES = f"{REAL},materialize-to-aliasing-output"


@pytest.mark.parametrize("name", [name for name in CASE_NAMES if name != "31_unrolled_200_layers"])
def test_the_pass_from_the_shell_makes_what_apply_shows(name: str, tmp_path: Path) -> None:
    inspection = inspect_case(name)
    inspection.write_mlir(tmp_path / "written.mlir")
    passed = di.inspect_ir(xdsl_opt(tmp_path / "written.mlir", "-p", REAL))
    assert passed.ir == inspection.apply().after


def test_what_is_donated_now_is_written(tmp_path: Path) -> None:
    inspection = inspect_case("01_adam_step")
    inspection = inspection.keep(*(whole.name for whole in inspection.wholes))
    inspection.write_mlir(tmp_path / "written.mlir")
    assert "tf.aliasing_output" not in (tmp_path / "written.mlir").read_text()
    donated = inspection.donate(inspection.candidates[0].path)
    donated.write_mlir(tmp_path / "written.mlir")
    assert di.inspect_ir(tmp_path / "written.mlir").donation == donated.donation
    # the program that all of them share is as it was lowered
    assert read_donation(donated._subject.func) == read_donation(inspect_case("01_adam_step")._subject.func)


def test_it_compiles_and_keeps_the_names(tmp_path: Path) -> None:
    inspection = inspect_case("03_kv_cache_batch_ints")
    inspection.write_mlir(tmp_path / "written.mlir")
    printed = xdsl_opt(tmp_path / "written.mlir", "-p", AND_ALIASES, "--print-debuginfo")
    passed = di.inspect_ir(printed)
    assert passed.donation == inspection.apply().donation
    kept = [
        argument.path
        for argument in inspection.arguments
        if argument.index in inspection._subject.leaf_of_argument.values()
    ]
    assert [argument.path for argument in passed.arguments] == kept
    theirs, ours = passed.compare().variants["jax"].memory, inspection.compare().variants["pass"].memory
    assert theirs is not None
    assert theirs == ours


def test_a_gpt_step_from_the_shell(tmp_path: Path) -> None:
    step, params, opt_state, ids = make(12, 64)
    inspection = di.inspect(jax.jit(step, donate_argnums=(0, 1)), params, opt_state, ids)
    inspection.write_mlir(tmp_path / "written.mlir")
    passed = di.inspect_ir(xdsl_opt_from_the_shell(tmp_path / "written.mlir", "-p", REAL))
    applied = inspection.apply()
    assert len(applied.pairs) > 100
    assert passed.ir == applied.after


def sharded_step() -> di.Inspection:
    """SGD with momentum on weights that are split over both axes of a mesh of eight devices."""
    mesh = Mesh([[jax.devices()[4 * row + column] for column in range(4)] for row in range(2)], ("data", "model"))
    weights = NamedSharding(mesh, PartitionSpec(None, "model"))
    batch = NamedSharding(mesh, PartitionSpec("data", None))

    def step(w: Any, m: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            hidden = jax.lax.with_sharding_constraint(
                jnp.tanh(x @ w), NamedSharding(mesh, PartitionSpec("data", "model"))
            )
            return jnp.max(hidden) + jnp.mean(hidden**2)

        m = 0.9 * m + jax.grad(loss)(w)
        return w - 0.1 * m, m

    jitted = jax.jit(
        step, donate_argnums=(0, 1), in_shardings=(weights, weights, batch), out_shardings=(weights, weights)
    )
    shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    return di.inspect(jitted, shape, shape, shape)


@pytest.mark.parametrize("pipeline", [REAL, "donate-by-live-range"])
def test_a_sharded_step_from_the_shell(pipeline: str, tmp_path: Path) -> None:
    inspection = sharded_step()
    inspection.write_mlir(tmp_path / "written.mlir")
    written = (tmp_path / "written.mlir").read_text()
    assert '"sdy.mesh"' in written
    assert "sdy.sharding_constraint" in written
    passed = di.inspect_ir(xdsl_opt_from_the_shell(tmp_path / "written.mlir", "-p", pipeline))
    applied = inspection.apply(pipeline)
    assert dict(applied.pairs) == {0: 0, 1: 1}
    assert passed.ir == applied.after
    sizes = [argument.nbytes_per_device for argument in inspection.arguments]
    assert [argument.nbytes_per_device for argument in passed.arguments] == sizes == [4096, 4096, 8192]
