"""Compare for devices that are not here: several at once, what fits, what does not, and what stays on this machine."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

import donation_inspector as di

SIDE = 4096
MATRIX = SIDE * SIDE * 4


def adam(p: Any, m: Any, v: Any, g: Any) -> tuple[Any, Any, Any]:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def inspection(side: int = SIDE, **sharding: Any) -> di.Inspection:
    array = jax.ShapeDtypeStruct((side, side), jnp.float32, **sharding)
    return di.inspect(jax.jit(adam, donate_argnums=(0, 1, 2)), *[array] * 4)


@pytest.fixture(scope="module")
def several() -> tuple[di.Inspection, Any, list[tuple[int, int, str]], set[str]]:
    step, steps, threads = inspection(), list[tuple[int, int, str]](), set[str]()

    def progress(*said: Any) -> None:
        steps.append(said)
        threads.add(threading.current_thread().name)

    return step, step.compare([None, "tpu:v5e", "tpu:v6e"], progress=progress), steps, threads


def test_several_targets_give_one_comparison_each(several: Any) -> None:
    _, comparisons, _, _ = several
    assert list(comparisons) == ["cpu", "tpu:v5e:1x1", "tpu:v6e:1x1"]
    assert comparisons["tpu:v5e"] is comparisons["tpu:v5e:1x1"]
    for comparison in comparisons.values():
        assert comparison.compiled_saved == 3 * MATRIX
        assert comparison.variants["none"].memory.argument == 4 * MATRIX
    with pytest.raises(KeyError, match="none of the targets here: cpu, tpu:v5e:1x1"):
        comparisons["tpu:v4"]


def test_what_was_not_run_says_so(several: Any) -> None:
    step, comparisons, _, _ = several
    assert [one.here for one in comparisons.values()] == [True, False, False]
    assert "not run" in repr(comparisons["tpu:v5e"])
    assert "not run" not in repr(comparisons["cpu"])
    step.compare("tpu:v5e")
    assert "compiled for tpu:v5e:1x1, not run; it fits" in step.report()


def test_a_capacity_that_is_known_says_what_fits(several: Any) -> None:
    _, comparisons, _, _ = several
    here, there = comparisons["cpu"].variants["jax"], comparisons["tpu:v5e"].variants["jax"]
    assert (here.fits, here.over) == (None, None)
    assert (there.fits, there.over) == (True, 0)
    rows = repr(comparisons).splitlines()
    assert rows[0].split() == ["target", "compiled", "total", "saved", "fits"]
    assert [row.split()[-1] for row in rows[1:]] == ["unknown"] * 3 + ["yes"] * 6


def test_progress_counts_all_targets_and_comes_from_one_thread(several: Any) -> None:
    _, _, steps, threads = several
    assert [step for step, _, _ in steps] == [1, 2, 3, 4, 5, 6]
    assert {total for _, total, _ in steps} == {6}
    assert threads == {threading.current_thread().name}


def test_a_toggle_keeps_what_each_target_answered(several: Any) -> None:
    step, _, _, _ = several
    assert len(step.keep("p").donate("p").comparisons) == 3
    assert len(step.keep("p").comparisons) == 0


def test_fits_is_any_amount_for_any_target() -> None:
    step = inspection(256)
    small = step.compare(fits="1 MB")
    none, jax_ = small.variants["none"], small.variants["jax"]
    assert none.memory is not None
    assert jax_.memory is not None
    assert (none.fits, none.over) == (False, none.memory.total - 1_000_000)
    assert (jax_.fits, jax_.over) == (False, jax_.memory.total - 1_000_000)
    assert "it does not fit: " in step.report()
    enough = step.compare(fits=jax_.memory.total)
    assert [variant.fits for variant in enough.variants.values()] == [False, True, True]
    assert "of a device, and only with donation" in step.report()


@pytest.mark.parametrize("fits", ["many", "", 0, -1])
def test_an_amount_that_is_none_is_told(fits: Any) -> None:
    with pytest.raises(di.CompileError, match="is no amount of memory: write it as '24GB'"):
        inspection(8).compare(fits=fits)


def test_a_program_that_does_not_fit_has_all_its_views() -> None:
    side = 40_960
    step = inspection(side)
    comparison = step.compare("tpu:v5e")
    none, jax_ = comparison.variants["none"], comparison.variants["jax"]
    assert {variant.status for variant in comparison.variants.values()} == {"does not fit"}
    assert comparison.compiled_saved == 3 * side * side * 4
    assert none.over is not None
    assert jax_.over is not None
    assert none.over - jax_.over == 3 * side * side * 4
    assert dict(jax_.input_output_alias) == {0: 0, 1: 1, 2: 2}
    assert jax_.missing_pairs == ()
    assert jax_.peak is not None
    assert sum(size for _, size in jax_.peak.classes) == jax_.peak.nbytes >= 4 * side * side * 4
    assert "it does not fit: 9.9 GB over the 16.9 GB of a device" in step.report()
    assert "over by 9.9 GB" in step.report()


def test_a_mesh_that_is_nowhere_is_laid_on_the_topology() -> None:
    mesh = AbstractMesh((16, 16), ("x", "y"))
    step = inspection(8 * SIDE, sharding=NamedSharding(mesh, PartitionSpec("x", "y")))
    comparison = step.compare("tpu:v5e")
    assert comparison.target == "tpu:v5e:16x16"
    assert comparison.variants["none"].memory is not None
    assert comparison.variants["none"].memory.argument == 4 * (64 * MATRIX // 256)
    # The results' sharding is left to XLA: JAX pairs nothing, and XLA reuses the donors all the same.
    assert {one.verdict for one in comparison.arguments[:3]} == {di.Verdict.DONOR}
    assert all("XLA reused it for " in one.reason for one in comparison.arguments[:3])
    assert "on each of 256 devices" in step.report()


def test_what_is_too_small_or_unknown_is_told() -> None:
    mesh = AbstractMesh((16, 16), ("x", "y"))
    step = inspection(SIDE, sharding=NamedSharding(mesh, PartitionSpec("x", "y")))
    with pytest.raises(di.CompileError, match="tpu:v5e:2x2 has 4 devices, the program runs on 256"):
        step.compare("tpu:v5e:2x2")
    with pytest.raises(di.CompileError, match=r"There is no target 'tpu:v9'.*tpu:v4"):
        step.compare(["tpu:v5e", "tpu:v9"])


def test_a_cancelled_comparison_of_several_is_an_answer() -> None:
    cancel = threading.Event()
    cancel.set()
    comparisons = inspection(128).compare([None, "tpu:v5e"], cancel=cancel)
    statuses = {variant.status for one in comparisons.values() for variant in one.variants.values()}
    assert statuses == {"cancelled"}


def test_targets_are_listed_with_their_memory() -> None:
    listed = di.targets()
    by_name = {one.name: one for one in listed}
    assert by_name["cpu"].here
    assert not by_name["tpu:v5e"].here
    assert by_name["tpu:v5e"].available
    assert repr(listed).splitlines()[0].split() == ["target", "device", "memory", "what", "is", "done"]
    for name in ("tpu:v5e", "tpu:v6e"):
        assert inspection(8).compare(name).target.startswith(name)


def test_the_donation_that_saves_most_on_a_tpu() -> None:
    def returned_last(p: Any, m: Any, v: Any, g: Any) -> tuple[Any, Any, Any]:
        updated, m, v = adam(p, m, v, g)
        return m, v, updated

    array = jax.ShapeDtypeStruct((SIDE, SIDE), jnp.float32)
    step = di.inspect(jax.jit(returned_last, donate_argnums=(0, 1, 2)), *[array] * 4)
    found = step.recommend("tpu:v5e", compiles=2)
    scalars = 4096
    assert found.target == "tpu:v5e:1x1"
    assert found.total is not None
    assert 4 * MATRIX <= found.total < 4 * MATRIX + scalars
    assert found.searched == "best of 2 tried"
    assert "not run" in repr(found)
    assert step.recommendation is found
