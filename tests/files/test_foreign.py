"""A file from somebody else is data: what it names is shown and not run, and this process says how it is compiled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import damage
import donation_inspector as di
from donation_inspector.cli import main

Json = dict[str, Any]
OLD = Path(__file__).with_name("format1.di")


def edited(sound: Path, path: Path, change: Callable[[Json], None]) -> Path:
    """A saved file with its JSON changed."""
    parts = damage.parts_of(sound)
    state = json.loads(parts["inspection.json"])
    change(state)
    return damage.packed(path, {**parts, "inspection.json": json.dumps(state).encode()})


def ask_everything(inspection: di.Inspection, folder: Path) -> None:
    """All that opening, showing and comparing do."""
    inspection.report()
    inspection.to_dict()
    inspection._repr_mimebundle_()
    inspection.to_html(folder / "page.html")
    inspection.apply()
    inspection.compare()
    inspection.candidates  # noqa: B018
    inspection.keep("params").apply()


# ---- pipelines


@pytest.mark.parametrize(
    "pipeline",
    [
        'mlir-opt{{executable="/usr/bin/touch" arguments="{ran}"}}',
        'cse,mlir-opt{{executable="/usr/bin/touch" arguments="{ran}"}},dce',
        'canonicalize{{executable="/usr/bin/touch" arguments="{ran}"}}',
        'apply-pdl{{pdl-file="{ran}"}}',
        "transform-interpreter",
        "constant-fold-interp",
        "test-transform-dialect-erase-schedule",
        "no-such-pass",
        "cse{{{{{{",
        "",
        "cse," * 5000 + "cse",
    ],
)
def test_a_pipeline_in_a_file_is_told_and_not_run(
    pipeline: str, saved: tuple[di.Inspection, Path], tmp_path: Path
) -> None:
    written = pipeline.format(ran=tmp_path / "ran")
    path = edited(saved[1], tmp_path / "foreign.di", lambda state: state.update(pipeline=written))

    opened = di.load(path)
    ask_everything(opened, tmp_path)

    assert not (tmp_path / "ran").exists()
    assert opened.pipeline == "jax-use-donated-arguments"
    assert any(note.startswith(f"The file names the pipeline {written!r}. It was not run") for note in opened.notes)


@pytest.mark.parametrize(
    "pipeline",
    [
        "jax-use-donated-arguments",
        "canonicalize,cse,jax-use-donated-arguments",
        "donate-by-live-range{cross_type=true}",
    ],
)
def test_passes_that_only_rewrite_the_program_are_run(
    pipeline: str, saved: tuple[di.Inspection, Path], tmp_path: Path
) -> None:
    saved[0].with_pipeline(pipeline).save(tmp_path / "own.di")
    again = di.load(tmp_path / "own.di")
    assert again.pipeline == pipeline
    assert again.notes == saved[0].notes
    assert again.apply().after == saved[0].apply(pipeline).after


def test_what_the_caller_passes_is_run(saved: tuple[di.Inspection, Path], tmp_path: Path) -> None:
    path = edited(saved[1], tmp_path / "foreign.di", lambda state: state.update(pipeline="constant-fold-interp"))
    assert di.load(path).with_pipeline("constant-fold-interp").apply().pipeline == "constant-fold-interp"


# ---- flags, options, callbacks, inputs


def test_flags_options_and_devices_are_this_processs(saved: tuple[di.Inspection, Path], tmp_path: Path) -> None:
    dump = tmp_path / "dump"

    def hostile(state: Json) -> None:
        state["program"] |= {
            "xla_flags": f"--xla_dump_to={dump}",
            "compiler_options": {"xla_dump_to": str(dump)},
            "compile_options": f"--xla_dump_to={dump}",
            "device_ids": [7] * 10_000,
            "device_count": 100_000,
            "bytecode": "",
            "inputs": [{"position": 0, "shape": [1 << 40]}],
            "target": {"name": "x", "platform": "../x", "topology": "x", "config": "x"},
        }
        state["compiled"] = state["measurements"] = state["asked"] = []

    path = edited(saved[1], tmp_path / "foreign.di", hostile)
    opened = di.load(path)
    answer = opened.compare()

    assert not dump.exists()
    assert saved[0].comparison is not None
    for name, variant in saved[0].comparison.variants.items():
        assert answer.variants[name].memory == variant.memory
    assert any("jitted with compiler options (xla_dump_to=" in note for note in opened.notes)


def test_an_older_file_is_read_and_its_compile_options_are_not(tmp_path: Path) -> None:
    old = di.load(OLD)
    assert [argument.path for argument in old.arguments] == ["state['n']", "state['w']", "x"]
    assert old.comparison is not None
    assert old.measurement is not None
    before = {name: variant.memory for name, variant in old.comparison.variants.items()}

    parts = damage.parts_of(OLD)
    state = json.loads(parts["inspection.json"])
    state["compiled"] = state["asked"] = []
    parts |= {"inspection.json": json.dumps(state).encode(), "compile_options.pb": b"\xff" * 1000}
    again = di.load(damage.packed(tmp_path / "old.di", parts))
    assert {name: variant.memory for name, variant in again.compare().variants.items()} == before
    again.save(tmp_path / "new.di")
    assert di.load(tmp_path / "new.di").comparison == again.comparison


def test_compiler_options_are_told_and_not_set(tmp_path: Path) -> None:
    fn = jax.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True})
    di.inspect(fn, jnp.ones(8)).save(tmp_path / "step.di")
    (note,) = di.load(tmp_path / "step.di").notes
    assert note.startswith("The function was jitted with compiler options (xla_cpu_enable_fast_math=True).")


def test_callbacks_are_read_off_the_module(tmp_path: Path) -> None:
    def step(x: Any) -> Any:
        return jax.pure_callback(np.tanh, jax.ShapeDtypeStruct((4,), jnp.float32), x)

    di.inspect(step, jnp.ones(4)).save(tmp_path / "step.di")
    path = edited(tmp_path / "step.di", tmp_path / "foreign.di", lambda state: state["program"].update(callbacks=[]))
    runs = di.load(path).measure(runs=1, timeout=60).variants
    assert {one.status for one in runs.values()} == {"refused"}


# ---- what is run


CALL = """
func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %b = stablehlo.custom_call @{name}(%a) {{api_version = 4 : i32}} : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}}
"""


@pytest.mark.parametrize(
    "name", ["system", "my_kernel", "mosaic_gpu_v2", "triton_kernel_call_ffi", "lapack_spotrf_ffi\\00"]
)
def test_a_custom_call_that_is_not_xlas_own_is_not_run(name: str, tmp_path: Path) -> None:
    quoted = f'"{name}"' if "\\" in name else name
    opened = di.inspect_ir(CALL.format(name=quoted))
    with pytest.raises(di.MeasureError, match=r"calls '.*', which XLA does not answer for"):
        opened.measure(runs=1)
    opened.save(tmp_path / "call.di")
    with pytest.raises(di.MeasureError, match="which XLA does not answer for"):
        di.load(tmp_path / "call.di").measure(runs=1)
    assert opened.report()


def test_measure_of_a_file_says_what_it_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    di.inspect(jnp.linalg.cholesky, jnp.eye(4)).save(tmp_path / "step.di")
    opened = di.load(tmp_path / "step.di")
    assert opened.will_run is not None
    assert "operations, 'lapack_spotrf_ffi'" in opened.will_run
    labels: list[str] = []
    opened.measure(runs=1, progress=lambda _step, _steps, label: labels.append(label))
    assert labels[0] == opened.will_run
    assert di.inspect(jnp.linalg.cholesky, jnp.eye(4)).will_run is None

    assert main(["measure", str(tmp_path / "step.di"), "--runs", "1"]) == 0
    assert f"donation-inspector: runs {opened.will_run}." in capsys.readouterr().err


@pytest.mark.parametrize(
    "body",
    [
        "%b = call @system(%a) : (tensor<8xi8>) -> tensor<8xi8>",
        "%m = memref.alloc() : memref<1xi8>\n  %b = stablehlo.add %a, %a : tensor<8xi8>",
    ],
    ids=["declared", "memref"],
)
def test_the_target_mlir_does_not_leave_the_files_own_arrays(body: str) -> None:
    text = f"""
func.func private @system(tensor<8xi8>) -> tensor<8xi8>
func.func public @main(%a: tensor<8xi8>) -> tensor<8xi8> {{
  {body}
  return %b : tensor<8xi8>
}}
"""
    with pytest.raises(di.MeasureError, match="may reach outside of its own arrays is not run"):
        di.inspect_ir(text).compare("mlir")


# ---- words that would stand in a line of code


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("way", "static"), "static_argnums=__import__('os').system('x')"),
        (("way", "static"), "), print(1"),
        (("way", "others"), "(a+)+$"),
        (("way", "name"), "x; import os"),
        (("way", "positional"), ["a b"]),
        (("signature", "returned"), "__import__('os')"),
        (("signature", "returned"), "(" * 5000),
        (("signature", "returned"), "{7: 900}"),
        (("signature", "arguments", 0, "spec"), "P(open('x'))"),
        (("signature", "arguments", 0, "memory"), "x')"),
    ],
)
def test_words_that_are_no_names_are_damage(
    words: tuple[str | int, ...], value: object, saved: tuple[di.Inspection, Path], tmp_path: Path
) -> None:
    def change(state: Any) -> None:
        for word in words[:-1]:
            state = state[word]
        state[words[-1]] = value

    with pytest.raises(di.IRError, match="is a damaged saved Inspection"):
        di.load(edited(saved[1], tmp_path / "foreign.di", change))
