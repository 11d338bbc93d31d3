"""What the programs are called with: the caller's own bits, or generated values that are safe."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import case_loader
from donation_inspector.errors import MeasureError
from donation_inspector.xla import values as values_module
from donation_inspector.xla.generate import generated
from donation_inspector.xla.lowering import lower
from donation_inspector.xla.measure import measure_variants
from lowered_cases import lower_case
from small_programs import add, program


def sha256(array: Any) -> str:
    """Of the bits that a user sees."""
    return hashlib.sha256(np.ascontiguousarray(np.asarray(array)).reshape(-1).view(np.uint8).data).hexdigest()


def hashes(fn: Any, *arguments: Any) -> tuple[str, ...]:
    lowered = lower(jax.jit(fn), arguments, {})
    answer = measure_variants({"none": lowered.program()}, lowered.values(), runs=1)["none"]
    assert (answer.status, answer.error) == ("ok", None)
    assert answer.output_hashes is not None
    return answer.output_hashes


def test_every_dtype_reaches_the_child_bit_for_bit() -> None:
    bits = np.arange(256, dtype=np.uint8).reshape(16, 16)
    with jax.enable_x64(True):
        arrays: list[Any] = [
            jnp.asarray(bits.view(dtype))
            for dtype in (
                np.float16, np.float32, np.float64, np.complex64, np.int8, np.int64, np.uint16,
                ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
            )
        ]  # fmt: skip
        arrays += [
            jnp.asarray((bits & 1).astype(bool)),
            jnp.asarray((bits % 16 - 8).astype(ml_dtypes.int4)),
            jnp.asarray(np.float32([np.nan, -np.inf, -0.0])),
            jnp.zeros((0, 3)),
            jnp.float32(3.5),
        ]
        # a value that passes through unchanged, and one that is computed: both come from the bits given
        out = hashes(lambda *xs: tuple(jnp.flip(x, 0) if x.ndim else x for x in xs), *arrays)
        expected = tuple(sha256(np.flip(np.asarray(x), 0) if x.ndim else x) for x in arrays)
    assert out == expected


def test_keys_and_numbers_reach_the_child() -> None:
    key = jax.random.key(7)
    out = hashes(lambda key, scale: jax.random.normal(key, (64,)) * scale, key, 2.0)
    assert out == (sha256(jax.jit(lambda key: jax.random.normal(key, (64,)) * 2.0)(key)),)


def test_a_numpy_view_and_a_reference_reach_the_child() -> None:
    every_other = np.arange(64, dtype=np.float32).reshape(8, 8)[:, ::2]
    assert hashes(lambda a: a + 1, every_other) == (sha256(every_other + 1),)
    closed_over = jax.new_ref(jnp.asarray(every_other))
    assert sha256(every_other * 2) in hashes(lambda a: closed_over[...] * a, 2.0)


def test_a_reference_that_is_an_argument_reaches_the_child() -> None:
    values = np.arange(32, dtype=np.float32).reshape(8, 4)
    reference = jax.new_ref(jnp.asarray(values))

    def double(ref: Any) -> Any:
        ref[...] *= 2
        return ref[...].sum()

    assert sha256(values * 2) in hashes(double, reference)
    assert np.array_equal(reference[...], values)


@pytest.mark.parametrize(
    "name", ["13_typed_prng_keys", "22_sharding_changes", "32_linalg_custom_calls", "42_layouts_differ"]
)
def test_real_inputs_give_the_results_of_the_function(name: str) -> None:
    lowered = lower_case(name)
    answer = measure_variants({"jax": lowered.program()}, lowered.values(), runs=1)["jax"]
    assert (answer.status, answer.error) == ("ok", None)
    case = case_loader.load(name).make()
    results = jax.tree.leaves(jax.jit(case["fn"])(*case["args"], **case["kwargs"]))
    plain = [jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in results]
    assert answer.output_hashes == tuple(sha256(x) for x in plain)


def test_results_of_many_devices_are_put_together_and_the_peak_counts_all_devices() -> None:
    lowered = lower_case("22_sharding_changes")
    answer = measure_variants({"jax": lowered.program()}, None, runs=1)["jax"]
    assert answer.predicted == 8 * case_loader.expect("22_sharding_changes")["total_donated"]


DTYPES = [
    "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "complex64",
    "complex128", "int4", "uint4", "int8", "int32", "int64", "uint8", "uint32", "bool",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_generated_values_are_safe(dtype: str) -> None:
    with jax.enable_x64(True):
        make = jax.jit(partial(generated, shape=(64, 33), dtype=dtype, is_key=False))
        array = np.asarray(make(np.uint32(3)))
        again, other = np.asarray(make(np.uint32(3))), np.asarray(make(np.uint32(4)))
    assert array.dtype == jnp.dtype(dtype)
    assert array.shape == (64, 33)
    assert sha256(array) == sha256(again) != sha256(other)
    parts = [array.real, array.imag] if array.dtype.kind == "c" else [array]
    for part in parts:
        wide = part.astype(np.float64)
        if jnp.issubdtype(part.dtype, jnp.floating):
            assert wide.min() >= 0.5
            assert wide.max() < 1
            assert len(np.unique(wide)) >= min(4, 2 ** jnp.finfo(part.dtype).nmant)
            assert 0.7 < wide.mean() < 0.8 or jnp.finfo(part.dtype).nmant < 4
        else:
            assert set(np.unique(wide)) == {0.0, 1.0} if dtype != "int4" else set(np.unique(wide)) <= {0.0, 1.0}
            assert 0.4 < wide.mean() < 0.6


def test_generated_values_are_the_same_in_every_process() -> None:
    good = program(add, (64,), (64,))
    answers = measure_variants({"a": good, "b": good}, None, runs=1)
    make = partial(generated, shape=(64,), dtype="float32", is_key=False)
    expected = sha256(np.asarray(make(jnp.uint32(0))) + np.asarray(make(jnp.uint32(1))))
    assert answers["a"].output_hashes == answers["b"].output_hashes == (expected,)


def test_what_does_not_fit_the_program_is_said_before_anything_runs() -> None:
    good = program(add, (8,), (8,))
    ones = jnp.ones((8,))
    with pytest.raises(MeasureError, match="takes 2 arguments and 1 values were given"):
        measure_variants({"a": good}, [ones])
    with pytest.raises(MeasureError, match=r"Argument 1 is float32\[4\], the program takes float32\[8\]"):
        measure_variants({"a": good}, [ones, jnp.ones((4,))])
    gone = jnp.ones((8,))
    gone.delete()
    with pytest.raises(MeasureError, match=r"Argument 0 .* was deleted"):
        measure_variants({"a": good}, [gone, ones])


def test_inputs_that_do_not_fit_the_temporary_directory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs(tempfile.gettempdir())
    monkeypatch.setattr(values_module.os, "statvfs", lambda _: os.statvfs_result([*full[:4], 0, *full[5:10]]))
    with pytest.raises(MeasureError, match=r"The real inputs need 8.2 KB in .*, which has 0 B; set TMPDIR"):
        measure_variants({"a": program(add, (8,), (8,))}, [jnp.ones((8,))] * 2)


def test_real_inputs_are_neither_changed_nor_donated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    a, b = jnp.ones((512, 512)), jnp.full((512, 512), 2.0)
    variants = {"none": program(add, (512, 512), (512, 512)), "jax": program(add, (512, 512), (512, 512), donate=(0,))}
    answers = measure_variants(variants, [a, b], runs=2)
    assert (
        answers["none"].output_hashes == answers["jax"].output_hashes == (sha256(np.full((512, 512), 3.0, np.float32)),)
    )
    assert not a.is_deleted()
    assert sha256(a) == sha256(np.ones((512, 512), np.float32))
    assert answers["jax"].peak is not None
    # two arrays of 1 MB at once, not three: the donated input was really the compiled program's to take
    assert answers["jax"].peak < 2.3e6 < 3 * 2**20 * 0.9 < (answers["none"].peak or 0)
    assert list(tmp_path.iterdir()) == []
