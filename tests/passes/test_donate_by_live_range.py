"""On what JAX lowers: the pass's pairs reach `Inspection`, and compiled they take no more than JAX's own."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from case_loader import CASE_NAMES, env, expect
from donation_inspector.ir.entry import entry_function, read_donation
from donation_inspector.ir.importer import import_module
from donation_inspector.passes.check_donated_buffers import check_donated_buffers
from donation_inspector.passes.pipeline import apply_pipeline
from lowered_cases import lower_case

PASS = "donate-by-live-range"
SQUARE = jax.ShapeDtypeStruct((64, 64), jnp.float32)


def crossed(a: Any, b: Any) -> Any:
    return jnp.tanh(b) * 2, jnp.sin(a) + 1


def one_value_twice(a: Any, b: Any) -> Any:
    total = a + b
    return total, total


def reshaped(a: Any) -> Any:
    return jnp.sin(a).reshape(-1)


def test_the_pairs_reach_the_comparison() -> None:
    seen = di.inspect(jax.jit(crossed, donate_argnums=(0, 1)), SQUARE, SQUARE)
    applied = seen.apply(PASS)
    assert applied.pairs == {0: 1, 1: 0}
    assert applied.compilable, applied.why_not
    compared = seen.compare(pipeline=PASS)
    assert compared.variants["pass"].memory.total < compared.variants["jax"].memory.total


def test_each_position_of_one_value_gets_its_own_buffer() -> None:
    applied = di.inspect(jax.jit(one_value_twice, donate_argnums=(0, 1)), SQUARE, SQUARE).apply(PASS)
    assert applied.pairs == {0: 0, 1: 1}
    assert applied.compilable, applied.why_not


def test_pairs_of_different_types_are_taken_where_asked() -> None:
    seen = di.inspect(jax.jit(reshaped, donate_argnums=0), SQUARE)
    assert seen.apply(PASS).pairs == {}
    applied = seen.apply("donate-by-live-range{cross-type=true}")
    assert applied.pairs == {0: 0}
    assert applied.compilable, applied.why_not
    compared = seen.compare(pipeline="donate-by-live-range{cross-type=true}")
    assert compared.variants["pass"].memory.alias == 64 * 64 * 4


@pytest.mark.parametrize("name", [name for name in CASE_NAMES if not env(name)])
def test_on_the_cases(name: str) -> None:
    lowered = lower_case(name)
    after, effect, _ = apply_pipeline(import_module(lowered.module).module, lowered.donation, PASS)
    assert effect.compilable, effect.why_not
    assert set(dict(effect.pairs)) <= lowered.donation.positions
    assert effect.donation.positions == lowered.donation.positions
    entry = entry_function(after)
    check_donated_buffers(entry)
    assert read_donation(entry).aliases == {}


def test_the_crossed_case_is_paired_as_the_best_of_all_is() -> None:
    lowered = lower_case("04_swapped_outputs")
    effect = apply_pipeline(import_module(lowered.module).module, lowered.donation, PASS).effect
    assert dict(effect.pairs) == expect("04_swapped_outputs")["best"]["same_donated_set"]["pairs"]


@pytest.mark.parametrize("name", ["01_adam_step", "18_scan_cond_passthrough", "40_jacobi_pingpong_while"])
def test_reuse_shows_but_is_not_compiled_as_aliases(name: str) -> None:
    lowered = lower_case(name)
    after, effect, _ = apply_pipeline(
        import_module(lowered.module).module, lowered.donation, "reuse-donated-buffers,check-donated-buffers"
    )
    after.verify()
    assert effect.compilable or effect.why_not is not None
