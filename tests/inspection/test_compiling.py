"""Compare and measure through the public face: equal variants once, answers kept, failures reported."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.present.headline import measured_sentence
from donation_inspector.questions.measure.answer import MeasuredVariant, Measurement
from small_programs import TWO_FOR_ONE_RESULT

Steps = list[tuple[int, int, str]]


def _sgd() -> di.Inspection:
    def step(w: jax.Array, x: jax.Array) -> jax.Array:
        return w - 0.1 * jnp.tanh(x).sum() * w

    return di.inspect(jax.jit(step, donate_argnums=0), jnp.ones((256, 256)), jnp.ones(8))


def test_equal_variants_are_compiled_once_and_kept() -> None:
    inspection, steps = _sgd(), Steps()
    assert inspection.comparison is None
    comparison = inspection.compare(progress=lambda *step: steps.append(step))
    assert {label for _, _, label in steps} == {"none", "jax = pass"}
    assert comparison.variants["jax"].memory == comparison.variants["pass"].memory
    assert dict(comparison.variants["jax"].input_output_alias) == {0: 0}
    assert comparison.compiled_saved == 256 * 256 * 4
    steps.clear()
    kept = inspection.keep("w")
    assert kept.compare(progress=lambda *step: steps.append(step)).compiled_saved == 0
    assert steps == []
    assert kept.donate("w").comparison == comparison


def test_a_cancelled_comparison_reports_and_the_next_one_goes_on() -> None:
    inspection, cancel = _sgd(), threading.Event()
    cancel.set()
    comparison = inspection.compare(cancel=cancel)
    assert {variant.status for variant in comparison.variants.values()} == {"cancelled"}
    assert comparison.compiled_saved is None
    assert inspection.compare().compiled_saved == 256 * 256 * 4


def test_what_xla_refuses_is_part_of_the_answer() -> None:
    comparison = di.inspect_ir(TWO_FOR_ONE_RESULT).compare()
    assert comparison.variants["none"].memory is not None
    assert comparison.variants["jax"].status == "refused"
    assert comparison.variants["jax"].error
    assert comparison.compiled_saved is not None


def test_measure_runs_real_inputs_and_compares_outputs() -> None:
    inspection = _sgd()
    measurement = inspection.measure(runs=2)
    assert inspection.measurement is measurement
    assert measurement.inputs == "real"
    assert measurement.outputs_equal is True
    assert {variant.status for variant in measurement.variants.values()} == {"ok"}
    assert "Measured: " in inspection.report()


def test_a_host_callback_is_refused_with_the_reason() -> None:
    def host(x: jax.Array) -> jax.Array:
        return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    inspection = di.inspect(jax.jit(host, donate_argnums=0), jnp.ones(8))
    assert inspection.compare().variants["jax"].memory is not None
    measurement = inspection.measure()
    assert {variant.status for variant in measurement.variants.values()} == {"refused"}
    assert all("callback" in (variant.error or "") for variant in measurement.variants.values())
    assert measurement.measured_saved is None


def test_measured_savings_are_what_no_donation_peaks_higher() -> None:
    peaks = {"none": 1000, "jax": 600, "pass": 1300}
    ran = {name: MeasuredVariant(name, peak, None, None, None, "ok", None) for name, peak in peaks.items()}
    found = Measurement("cpu", "real", 1, ran, True)
    assert (found.saved("none"), found.saved("jax"), found.measured_saved) == (0, 400, -300)
    assert measured_sentence(found).startswith("Measured: donation saves 400 B at the peak; all outputs are bit-equal")
    swapped = dataclasses.replace(found, variants={**ran, "jax": ran["pass"]}, outputs_equal=False)
    assert measured_sentence(swapped).startswith("Measured: donation costs 300 B more at the peak; the outputs differ")


@pytest.mark.parametrize("pipeline", ["jax-use-donated-arguments{remove-matched-outputs=true}"])
def test_a_pipeline_that_is_not_compilable_says_why(pipeline: str) -> None:
    comparison = _sgd().compare(pipeline=pipeline)
    assert comparison.variants["pass"].memory is None
    assert "drops results" in (comparison.variants["pass"].error or "")
    assert comparison.variants["jax"].memory is not None


def test_the_variants_hold_xlas_own_buffers() -> None:
    comparison = _sgd().compare()
    for variant in comparison.variants.values():
        assert variant.memory is not None
        assert variant.buffers is not None
        assert variant.buffers.reserved == variant.memory.total
        assert max(variant.buffers.held) == variant.buffers.peak == variant.buffers.held[variant.buffers.peak_at]
        assert len(variant.buffers.needed) == len(variant.buffers.schedule)
    none, jax_ = comparison.variants["none"].buffers, comparison.variants["jax"].buffers
    assert none is not None
    assert jax_ is not None
    assert jax_.peak < none.peak


def test_a_module_that_cannot_be_read_takes_nothing_else_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    inspection = _sgd()
    comparison = inspection.compare()

    def broken(_data: bytes) -> None:
        raise KeyError("a field that XLA no longer writes")

    monkeypatch.setattr("donation_inspector.xla.hlo.buffers.read_buffers", broken)
    with pytest.raises(di.CompileError, match=r"cannot be read \(KeyError: .*no longer writes.*totals hold"):
        _ = comparison.variants["jax"].buffers
    assert comparison.arguments == inspection.arguments
    report = inspection.report()
    assert "cannot be read (KeyError" in report
    assert "Donation saves 262 KB" in report


def test_equal_variants_share_what_is_read_of_them() -> None:
    inspection = _sgd()
    comparison = inspection.compare()
    assert comparison.variants["jax"].buffers is comparison.variants["pass"].buffers
    assert inspection.comparison is comparison
    assert inspection.keep("w").donate("w").comparison is comparison


def test_a_reference_is_written_in_place_whatever_is_donated() -> None:
    @jax.jit
    def write(cache: Any, row: Any, at: Any) -> Any:
        cache[at] = row
        return cache[...].sum()

    args = jax.new_ref(jnp.zeros((64, 32))), jnp.ones(32), 3
    inspection = di.inspect(write, *args)
    found = inspection.compare()
    none, jax_ = found.variants["none"].memory, found.variants["jax"].memory
    memory = write.lower(*args).compile().memory_analysis()

    assert none == jax_
    assert none.alias == memory.alias_size_in_bytes == 64 * 32 * 4
    assert inspection.recommend(compiles=2).baselines["none"] == none.total
