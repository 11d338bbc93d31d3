"""Small programs whose allocations and copies can be counted by hand, held to JAX."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import donation_inspector as di
from donation_inspector.bufferized.values import UPSTREAM, Bufferization, Bufferized
from donation_inspector.cli import main
from donation_inspector.errors import CompileError
from donation_inspector.ir.entry import entry_function

PLACED = "donate-by-live-range"


def run(fn: Callable[..., Any], *arguments: Any, donate: tuple[int, ...] = (0,), pipeline: Any = None) -> Bufferization:
    return di.inspect(jax.jit(fn, donate_argnums=donate), *arguments).compare("mlir", pipeline)


def counts(one: Bufferized) -> tuple[int | None, ...]:
    assert one.error is None
    assert one.outputs_close
    return one.allocations, one.frees, one.copies, one.copied, one.peak


def test_an_update_in_place() -> None:
    """Donated, the row is written where it is; not donated, the array is copied first and stays what it was."""

    def write(cache: Any, row: Any) -> Any:
        return lax.dynamic_update_slice(cache, row, (3, 0))

    cache, row = jnp.arange(800.0).reshape(100, 8), jnp.ones((1, 8))
    answer = run(write, cache, row, pipeline=PLACED)
    row_copied = 8 * 4
    # the row goes into the array as a copy; results of the program are its own to allocate
    assert counts(answer.variants["none"]) == (1, 0, 2, 3200 + row_copied, 3200)
    assert counts(answer.variants["pass"]) == (0, 0, 1, row_copied, 0)
    assert dict(answer.variants["pass"].reused) == {0: (0,)}
    assert answer.variants["pass"].total == 3200 + 32


def test_control_flow() -> None:
    """Loops, branches, barriers and unsigned integers reach MLIR in its own words, and mean what they mean in JAX."""

    def steps(x: Any, which: Any, seed: Any) -> Any:
        x = lax.fori_loop(0, 5, lambda i, a: a * 1.5 + i, x)
        branches = [jnp.negative, lambda a: a + 1, lambda a: a * 2]
        x = sum(lax.switch(which[i], branches, x) for i in range(4))
        x = lax.cond(x.sum() > 0, lambda a: a - 1, lambda a: a + 1, lax.optimization_barrier(x))
        return x, (seed >> 1) + seed // 3, jax.random.bits(jax.random.key(0), (3,))

    x, seed = jnp.linspace(-1, 1, 16), np.array([2**32 - 5, 7], np.uint32)
    answer = run(steps, x, jnp.array([0, 1, 9, -1], jnp.int32), seed, pipeline=PLACED)
    none = answer.variants["none"]
    assert (none.status, none.outputs_close) == ("ok", True), answer
    assert all(one.outputs_close in (True, None) for one in answer.variants.values())


def test_no_value_is_too_odd() -> None:
    """Infinities, NaN, bf16, booleans, empty and scalar arrays, constants of the program."""
    table = np.arange(3 * 2048, dtype=np.float32).reshape(3, 2048) - 1

    def odd(x: Any, flags: Any, half: Any, empty: Any) -> Any:
        masked = jnp.where(flags, x, -jnp.inf)
        return masked, ~flags, half * 3, empty + 1, masked.max(), jnp.sqrt(table[:, :4])

    x = jnp.array([1.0, np.nan, 3.0])
    half = jnp.array([1.5, 2.25], jnp.bfloat16)
    answer = run(odd, x, jnp.array([True, True, False]), half, jnp.zeros((0, 3)), donate=(0, 1, 2), pipeline=PLACED)
    for one in answer.variants.values():
        assert (one.status, one.error) == ("ok", None)
        assert one.outputs_close
        assert one.max_error == 0


def test_from_the_shell(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file, whose inputs are generated; xDSL's own pass, which is the default, is told once."""
    program = tmp_path / "add.mlir"
    program.write_text(
        """
        func.func public @main(%a: tensor<256xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<256xf32>)
            -> tensor<256xf32> {
          %0 = stablehlo.add %a, %b : tensor<256xf32>
          return %0 : tensor<256xf32>
        }
        """
    )
    assert main(["inspect", str(program), "--target", "mlir"]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("bufferized "))
    assert [line.split() for line in lines[start + 1 : start + 3]] == [
        ["none", "1", "0", "0", "B", "1.0", "KB", "3.1", "KB", "as", "JAX's"],
        [UPSTREAM, "0", "0", "0", "B", "0", "B", "2.0", "KB", "as", "JAX's"],
    ]
    assert (
        lines[start + 3] == "Measured without XLA: bufferized by MLIR and called once on this CPU; inputs: generated."
    )


@dataclass(frozen=True)
class Swap(ModulePass):
    """Returns the results in the wrong order."""

    name: ClassVar[str] = "swap"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        terminator = entry_function(op).body.block.last_op
        assert terminator is not None
        terminator.operands = list(reversed(terminator.operands))


@dataclass(frozen=True)
class Fail(ModulePass):
    name: ClassVar[str] = "fail"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        raise RuntimeError("no idea")


def test_a_pass_that_is_wrong_is_seen_and_one_that_fails_is_told() -> None:
    def two(a: Any, b: Any) -> Any:
        return a + 1, b * 2

    arguments = jnp.ones(4), jnp.full(4, 3.0)
    wrong = run(two, *arguments, pipeline=Swap())
    assert wrong.variants["pass"].outputs_close is False
    # 6 where 2 is right
    assert wrong.variants["pass"].max_error == 4
    assert wrong.rows()[2][-1] == "NOT JAX's, off by 4"
    assert wrong.variants["none"].outputs_close
    failed = run(two, *arguments, pipeline=Fail()).variants["pass"]
    assert (failed.status, failed.allocations) == ("refused", None)
    assert failed.error is not None
    assert failed.error.splitlines()[0] == "The pass 'fail' failed: RuntimeError: no idea"


def test_cross_type_pairs_are_refused_with_the_reason() -> None:
    answer = run(
        lambda a: lax.bitcast_convert_type(a, jnp.int32) + 1, jnp.ones(8), pipeline=f"{PLACED}{{cross-type=true}}"
    )
    refused = answer.variants["pass"]
    assert refused.status == "refused"
    assert refused.error is not None
    assert "bufferization has no way to take a buffer for one of another type" in refused.error
    assert answer.variants["none"].status == "ok"
    assert f"pass: {refused.error}" in repr(answer)


@pytest.mark.parametrize(
    ("fn", "arguments", "why"),
    [
        (jnp.linalg.cholesky, (jnp.eye(4),), "no linalg for stablehlo.custom_call (@lapack_spotrf_ffi)"),
        (lambda a: a.at[a.astype(int)].set(0), (jnp.ones(4),), "no linalg for stablehlo.scatter"),
        (lambda a: a + 1, (jnp.ones(4, jnp.int4),), "whole bytes, and argument 0 is tensor<4xi4>"),
    ],
)
def test_what_does_not_go_this_way_is_told(fn: Any, arguments: Any, why: str) -> None:
    with pytest.raises(CompileError, match="The target 'mlir'") as told:
        di.inspect(fn, *arguments).compare("mlir")
    assert why in str(told.value)


def test_dynamic_shapes_several_devices_and_a_device_size_are_told() -> None:
    dynamic = "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }"
    with pytest.raises(CompileError, match="static shapes and whole bytes, and argument 0 is tensor<"):
        di.inspect_ir(dynamic).compare("mlir")
    one = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    two = f"module attributes {{mhlo.num_partitions = 2 : i32}} {{ {one} }}"
    with pytest.raises(CompileError, match="runs on one device, and module is for 2"):
        di.inspect_ir(two).compare("mlir")
    with pytest.raises(CompileError, match="fits='24GB' is for a device"):
        di.inspect(jnp.sin, jnp.ones(2)).compare("mlir", fits="24GB")  # pyright: ignore
    with pytest.raises(CompileError, match="ask for it alone"):
        di.inspect(jnp.sin, jnp.ones(2)).compare(["mlir", "cpu"])
