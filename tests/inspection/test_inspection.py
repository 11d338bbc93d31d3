"""Inspection: immutable, told by JAX, light on the caller's memory, and clear when something is wrong."""

from __future__ import annotations

import gc
import pathlib
import sys
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from xdsl.transforms.canonicalize import CanonicalizePass

import donation_inspector as di
from donation_inspector.program.origins import HeldInput

A = jax.ShapeDtypeStruct((64, 64), jnp.float32)


def train(params: Any, state: Any, batch: Any) -> Any:
    m = 0.9 * state["m"] + batch.sum() * params["w"]
    return {"w": params["w"] - m, "b": params["b"] * 2}, {"m": m}, m.sum()


PARAMS = {"w": A, "b": jax.ShapeDtypeStruct((64,), jnp.float32)}
STATE = {"m": A}
BATCH = jax.ShapeDtypeStruct((8, 64), jnp.float32)


@pytest.fixture
def plain() -> di.Inspection:
    return di.inspect(train, PARAMS, STATE, BATCH)


def _outcomes(inspection: di.Inspection) -> list[tuple[str, str, int | None]]:
    return [(one.path, str(one.verdict), one.result) for one in inspection.arguments]


def test_donate_and_keep_give_new_inspections_as_jax_would_lower_them(plain: di.Inspection) -> None:
    before = _outcomes(plain)
    donated = plain.donate("params", "state['m']")
    fresh = di.inspect(jax.jit(train, donate_argnums=(0, 1)), PARAMS, STATE, BATCH)
    assert _outcomes(donated) == _outcomes(fresh)
    assert _outcomes(plain) == before
    assert _outcomes(donated.keep("params", "state")) == before
    assert donated.donate("params").arguments == donated.arguments


def test_candidates_are_what_could_be_donated_most_bytes_first(plain: di.Inspection) -> None:
    assert [one.path for one in plain.candidates] == ["params['w']", "state['m']", "params['b']"]
    assert [one.path for one in plain.donate("params").candidates] == ["state['m']"]
    assert plain.donate("params", "state").candidates == ()


def test_the_curve_falls_by_what_is_donated(plain: di.Inspection) -> None:
    donated = plain.donate("params", "state")
    assert len(donated.program_memory.bytes) == len(plain.program_memory.bytes)
    assert donated.program_memory.peak < plain.program_memory.peak
    assert np.all(donated.program_memory.bytes <= plain.program_memory.bytes)
    assert donated.program_memory.live_at(donated.program_memory.peak_at)


def test_an_unusable_argument_keeps_its_buffer_in_the_curve(plain: di.Inspection) -> None:
    unusable = plain.donate("batch")
    assert unusable.arguments[-1].verdict is di.Verdict.UNUSABLE
    assert np.array_equal(unusable.program_memory.bytes, plain.program_memory.bytes)
    assert any("batch float32[8,64]" in note for note in unusable.notes)


def test_apply_is_the_real_pass_and_shows_its_text(plain: di.Inspection) -> None:
    applied = plain.donate("params", "state").apply()
    assert dict(applied.pairs) == {0: 0, 1: 1, 2: 2}
    assert applied.before.count("tf.aliasing_output") == 3
    assert "tf.aliasing_output" not in applied.after
    assert applied.after.count("materialize_in_destination") == 3
    assert [change.kind for change in applied.diff].count("added") == 3
    assert applied.compilable
    assert plain.apply().pairs == {}


def test_another_pipeline_runs_on_the_whole_module(plain: di.Inspection) -> None:
    donated = plain.donate("params", "state")
    whole = donated.apply("jax-use-donated-arguments,materialize-to-aliasing-output")
    assert dict(whole.pairs) == dict(donated.apply().pairs)
    assert whole.compilable
    assert whole.after.count("tf.aliasing_output") == 3
    dropped = donated.apply("jax-use-donated-arguments{remove-matched-outputs=true}")
    assert not dropped.compilable
    assert dropped.why_not is not None
    assert "drops results" in dropped.why_not


def test_a_pipeline_that_does_not_exist_names_the_near_ones(plain: di.Inspection) -> None:
    with pytest.raises(di.PassError, match="'jax-use-donated-arguments'"):
        plain.apply("jax-use-donated-argument")
    assert plain.apply().pairs == {}


def test_a_path_that_does_not_exist_names_the_near_ones(plain: di.Inspection) -> None:
    with pytest.raises(di.PathError, match=r"no argument 'param'; near it: params"):
        plain.donate("param")


@pytest.mark.parametrize("path", [0, None, ["params"], PARAMS])
def test_what_is_no_path_is_told(plain: di.Inspection, path: Any) -> None:
    with pytest.raises(di.PathError, match=r"a path is text.*of type \w+; the arguments are params, state, batch"):
        plain.donate(path)


@pytest.mark.parametrize("pipeline", [42, [42], ["canonicalize"], b"canonicalize", CanonicalizePass])
def test_what_is_no_pipeline_is_told(plain: di.Inspection, pipeline: Any) -> None:
    with pytest.raises(di.PassError, match=r"A pipeline is text.*of type \w+"):
        plain.apply(pipeline)
    with pytest.raises(di.PassError, match=r"A pipeline is text"):
        plain.with_pipeline(pipeline).report()


def test_a_target_that_is_not_here_is_told(plain: di.Inspection) -> None:
    with pytest.raises(di.CompileError, match=r"There is no target 'moon'.*: cpu, tpu:v4"):
        plain.compare("moon")


@pytest.mark.parametrize(
    ("inputs", "runs", "timeout"),
    [
        ("imaginary", 1, 1.0),
        ("real", 0, 1.0),
        ("real", 1, 0.0),
        ("real", 2.5, 1.0),
        ("real", "3", 1.0),
        ("real", 1, float("nan")),
        ("real", 1, "1"),
    ],
)
def test_measure_refuses_arguments_that_make_no_sense(
    plain: di.Inspection, inputs: str, runs: Any, timeout: Any
) -> None:
    with pytest.raises(di.MeasureError):
        plain.measure(inputs, runs, timeout)


def test_looking_does_not_keep_big_arrays_alive() -> None:
    big = jnp.ones((1024, 1024))
    inspection = di.inspect(lambda x: x * 2, big)
    seen = weakref.ref(big)
    inspection.report()
    del big
    gc.collect()
    assert seen() is None
    assert inspection.arguments[0].nbytes == 4 * 1024 * 1024


def test_an_input_is_gone_when_it_was_donated_or_let_go() -> None:
    small, shape = jnp.ones(4), jax.ShapeDtypeStruct((4,), jnp.float32)
    held = HeldInput(small)
    assert held.value() is small
    assert HeldInput(shape).value() is None
    assert HeldInput(3).value() == 3
    small.delete()
    assert held.value() is None


def test_program_text_is_escaped_in_html(tmp_path: pathlib.Path) -> None:
    def f(tree: Any) -> Any:
        return tree["<script>alert(1)</script>"].sum()

    inspection = di.inspect(f, {"<script>alert(1)</script>": A}).donate("tree")
    inspection.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "http:" not in page
    assert "https:" not in page


def test_the_summary_is_the_same_every_time(plain: di.Inspection) -> None:
    from donation_inspector.present import report

    again = di.inspect(train, PARAMS, STATE, BATCH)
    assert report.summary(plain) == report.summary(again)
    assert report.static_html(plain) == report.static_html(again)
    assert "Nothing is donated; 33.0 KB of arguments could be." in report.summary(plain)
    assert 'train = jax.jit(train, donate_argnames=("params", "state"))' in report.summary(plain)


def test_a_file_can_be_donated_too() -> None:
    text = jax.jit(train).lower(PARAMS, STATE, BATCH).as_text()
    inspection = di.inspect_ir(text)
    assert inspection.jaxpr is None
    everything = [argument.path for argument in inspection.arguments]
    as_jax = di.inspect(train, PARAMS, STATE, BATCH).donate("params", "state", "batch")
    donated = inspection.donate(*everything)
    assert [one.result for one in donated.arguments] == [one.result for one in as_jax.arguments]
    assert donated.apply().pairs == as_jax.apply().pairs


def test_a_file_that_is_not_there_is_one_message(tmp_path: pathlib.Path) -> None:
    with pytest.raises(di.IRError, match="cannot be read: No such file"):
        di.inspect_ir(tmp_path / "missing.mlir")


@pytest.mark.parametrize("source", [42, None, ["module {}"], len])
def test_what_is_no_source_is_one_message(source: Any) -> None:
    with pytest.raises(di.IRError, match="is no MLIR text, bytecode or path"):
        di.inspect_ir(source)


def test_a_name_that_no_file_can_have_is_one_message() -> None:
    with pytest.raises(di.IRError, match=r"cannot be read: embedded null byte\. Give MLIR text, bytecode or a file"):
        di.inspect_ir("a\0b")


def test_jax_is_not_said_to_warn_about_a_file() -> None:
    text = jax.jit(train).lower(PARAMS, STATE, BATCH).as_text()
    of_file, of_function = di.inspect_ir(text), di.inspect(train, PARAMS, STATE, BATCH)
    unusable = of_file.donate(of_file.arguments[-1].path).arguments[-1]
    assert unusable.verdict is di.Verdict.UNUSABLE
    assert "warns" not in unusable.reason
    assert "warns" in of_function.donate("batch").arguments[-1].reason


def test_without_anywidget_a_notebook_shows_the_static_report(
    plain: di.Inspection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "donation_inspector.present.widget", raising=False)
    bundle = plain._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert "Nothing is donated" in bundle["text/plain"]
