"""Saved in one process and read in another: the same program, verdicts, answers; no arrays, and nothing that runs."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import jax
import msgspec
import pytest

import donation_inspector as di
from case_loader import CASE_NAMES, load
from donation_inspector.common.signature import Ignored, Implicit, Leaf, Signature
from donation_inspector.files import saved_format
from donation_inspector.frameworks.ways import Way
from donation_inspector.present import report
from donation_inspector.questions.measure.answer import MeasuredVariant, Measurement
from donation_inspector.questions.verify.answer import DonatedArgument, Outcome
from donation_inspector.xla.results import Memory, Status
from donation_inspector.xla.targets import Target


def inspected(name: str) -> di.Inspection:
    case = load(name).make()
    return di.inspect(jax.jit(case["fn"], **case["jit_kwargs"]), *case["args"], **case["kwargs"])


def test_it_reads_as_it_was_written(saved: tuple[di.Inspection, Path]) -> None:
    step, path = saved
    again = di.load(path)
    assert report.summary(again) == report.summary(step)
    assert (again.ir, again.jaxpr, again.name) == (step.ir, step.jaxpr, step.name)
    assert (again.arguments, again.results, again.notes) == (step.arguments, step.results, step.notes)
    assert again.comparison == step.comparison
    assert again.measurement == step.measurement
    assert again.apply().pairs == step.apply().pairs


def test_what_was_compiled_is_there_with_its_buffers(saved: tuple[di.Inspection, Path]) -> None:
    step, path = saved
    before, after = step.comparison, di.load(path).comparison
    assert before is not None
    assert after is not None
    for name, variant in before.variants.items():
        assert after.variants[name].peak == variant.peak


def test_a_toggle_back_to_the_functions_own_set_is_jaxs(saved: tuple[di.Inspection, Path]) -> None:
    again = di.load(saved[1])
    kept = again.keep("params")
    assert not kept.donation.positions
    assert kept.notes == saved[0].keep("params").notes


def test_a_set_that_jax_was_not_asked_about_says_so(saved: tuple[di.Inspection, Path]) -> None:
    asked = di.load(saved[1]).donate("x")
    assert any("JAX was not asked about this donated set" in note for note in asked.notes)
    assert asked.compare().variants["none"].memory is not None


def test_another_process_compiles_and_runs_it(saved: tuple[di.Inspection, Path], tmp_path: Path) -> None:
    step, path = saved
    code = (
        "import sys; from donation_inspector.cli import main; "
        "raise SystemExit(main(['measure', sys.argv[1], '--runs', '1', '--html', sys.argv[2]]))"
    )
    page = tmp_path / "page.html"
    run = subprocess.run(
        [sys.executable, "-c", code, str(path), str(page)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "Measured: donation " in run.stdout
    assert "inputs: generated" in run.stdout
    assert step.comparison is not None
    none = step.comparison.variants["none"].memory
    assert none is not None
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("name", CASE_NAMES[::3])
def test_a_case_is_the_same_program_again(name: str, tmp_path: Path) -> None:
    step = inspected(name)
    step.save(tmp_path / "case.di")
    again = di.load(tmp_path / "case.di")
    assert again.arguments == step.arguments
    assert again.results == step.results
    assert again.apply().after == step.apply().after


@pytest.mark.parametrize(
    "name", ["06_same_array_twice", "13_typed_prng_keys", "29_exported_call", "22_sharding_changes"]
)
def test_a_saved_case_compiles_to_the_same_figures(name: str, tmp_path: Path) -> None:
    step = inspected(name)
    step.save(tmp_path / "case.di")
    before, after = step.compare(), di.load(tmp_path / "case.di").compare()
    for variant, memory in ((one, one.memory) for one in before.variants.values()):
        assert after.variants[variant.name].memory == memory, variant.name
        assert after.variants[variant.name].status == variant.status


def test_a_file_of_mlir_can_be_saved_too(tmp_path: Path) -> None:
    text = "func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> { return %arg0 : tensor<8xf32> }"
    step = di.inspect_ir(text).donate("arg0")
    step.save(tmp_path / "file.di")
    assert di.load(tmp_path / "file.di").arguments == step.arguments


def _other_format(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inspection.json", json.dumps({"format": 99, "versions": {"donation-inspector": "9.9"}}))


def _empty_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w"):
        pass


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda _path: None, "cannot be read"),
        (lambda path: path.write_text("module {}"), "is no saved Inspection"),
        (_empty_zip, "is no saved Inspection"),
        (_other_format, r"has format 99 of donation_inspector.*9\.9"),
    ],
)
def test_another_file_is_told(make: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "some.di"
    make(path)
    with pytest.raises(di.IRError, match=words):
        di.load(path)


def test_a_place_that_cannot_be_written_is_told(saved: tuple[di.Inspection, Path], tmp_path: Path) -> None:
    with pytest.raises(di.DonationInspectorError, match="cannot be written"):
        saved[0].save(tmp_path / "no" / "such" / "folder.di")


MIRRORS = [
    *((saved_format.SavedLeaf, Leaf), (saved_format.SavedImplicit, Implicit), (saved_format.SavedSignature, Signature)),
    *((saved_format.SavedWay, Way), (saved_format.SavedTarget, Target), (saved_format.SavedMemory, Memory)),
    *((saved_format.SavedRun, MeasuredVariant), (saved_format.SavedArgument, DonatedArgument)),
    (saved_format.SavedAnswer, Measurement),
]


@pytest.mark.parametrize(("written", "ours"), MIRRORS, ids=lambda one: one.__name__)
def test_the_format_has_every_field(written: Any, ours: Any) -> None:
    assert {field.name for field in msgspec.structs.fields(written)} == {field.name for field in fields(ours)}


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        (saved_format.Status, Status),
        (saved_format.SavedLeaf.__annotations__["ignored"], Ignored),
        (saved_format.SavedArgument.__annotations__["outcome"], Outcome),
    ],
    ids=["status", "ignored", "outcome"],
)
def test_the_format_has_every_word(written: Any, ours: Any) -> None:
    written = eval(written, vars(saved_format)) if isinstance(written, str) else written
    words = [get_args(part) or (part,) for part in get_args(written)]
    assert {word for group in words for word in group} - {type(None)} == set(get_args(ours))
