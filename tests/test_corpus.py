"""The table pass × program: on files whose pairs and bytes can be counted by hand."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.transforms.jax_use_donated_arguments import JaxUseDonatedArguments
from xdsl.utils.exceptions import DiagnosticException

import donation_inspector as di
from donation_inspector.checks import corpus
from donation_inspector.checks.corpus import Row
from donation_inspector.cli import main
from donation_inspector.errors import IRError, PassError
from donation_inspector.ir import source
from donation_inspector.passes.materialize_to_aliasing_output import MaterializeToAliasingOutput
from donation_inspector.questions.compare import ask as compiling
from donation_inspector.xla.results import Compiled

REAL = "jax-use-donated-arguments"
AND_ALIASES = f"{REAL},materialize-to-aliasing-output"
NOTHING = "canonicalize"

# 1024 bytes each: 3072 in all, of which donation saves one
ADD = """
func.func public @main(%a: tensor<256xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<256xf32>) -> tensor<256xf32> {
  %0 = stablehlo.add %a, %b : tensor<256xf32>
  return %0 : tensor<256xf32>
}
"""
# the real pass writes the one value into both arguments
TWICE = """
func.func public @main(%a: tensor<256xf32> {tf.aliasing_output = 0 : i32},
                       %b: tensor<256xf32> {tf.aliasing_output = 1 : i32}) -> (tensor<256xf32>, tensor<256xf32>) {
  %0 = stablehlo.add %a, %b : tensor<256xf32>
  return %0, %0 : tensor<256xf32>, tensor<256xf32>
}
"""

SORT = """
func.func public @main(%a: tensor<256xf32> {tf.aliasing_output = 0 : i32}) -> tensor<256xf32> {
  %0 = "stablehlo.sort"(%a) <{dimension = 0 : i64}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<256xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}
"""


def silent(_step: int, _steps: int, _label: str) -> None:
    return None


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    programs = tmp_path / "programs"
    (programs / "deeper").mkdir(parents=True)
    (programs / "add.mlir").write_text(ADD)
    (programs / "twice.mlir").write_text(TWICE)
    (programs / "cut.mlir").write_text(ADD[:-20])
    (programs / "notes.txt").write_text("no program")
    (programs / "deeper" / "add.mlirbc").write_bytes(source.bytecode(source.parse(ADD)))
    # as it was saved, and not as the file of the program has it
    di.inspect_ir(ADD).keep("arg0").save(programs / "kept.di")
    return programs


def by_program(rows: tuple[Row, ...], pipeline: str) -> dict[str, Row]:
    return {row.program: row for row in rows if row.pipeline == pipeline}


def test_each_pipeline_on_each_program(folder: pathlib.Path) -> None:
    said: list[tuple[int, int]] = []
    answer = corpus.run(
        folder, [REAL, NOTHING], compile=True, progress=lambda step, steps, _: said.append((step, steps))
    )
    names = ["add.mlir", "cut.mlir", "deeper/add.mlirbc", "kept.di", "twice.mlir"]
    assert [(row.program, row.pipeline) for row in answer.rows] == [(n, p) for n in names for p in (REAL, NOTHING)]
    assert said == [(step, 10) for step in range(1, 11)]
    real, nothing = by_program(answer.rows, REAL), by_program(answer.rows, NOTHING)
    for name in ("add.mlir", "deeper/add.mlirbc"):
        assert real[name].pairs == 1
        assert dict(real[name].totals) == {"none": 3072, "jax": 2048, "pass": 2048}
        assert nothing[name].pairs == 0
        assert dict(nothing[name].totals) == {"none": 3072, "jax": 2048, "pass": 3072}
    assert real["kept.di"].pairs == 0
    assert dict(real["kept.di"].totals) == {"none": 3072, "jax": 3072, "pass": 3072}
    for row in (real["cut.mlir"], nothing["cut.mlir"]):
        assert "no valid MLIR" in (row.refused or "")
        assert (row.pairs, dict(row.totals)) == (None, {})
    assert len(real["twice.mlir"].diagnostics) > 0
    assert not answer.complete


def test_the_table_and_its_sums(folder: pathlib.Path) -> None:
    (folder / "twice.mlir").unlink()
    lines = str(corpus.run(folder, [REAL, NOTHING], compile=True, progress=silent)).splitlines()
    cells = [line.split() for line in lines]
    assert cells[0] == ["program", "pipeline", "pairs", "diagnostics", "none", "jax", "pass"]
    assert cells[1] == ["add.mlir", REAL, "1", "0", "3.1", "KB", "2.0", "KB", "2.0", "KB"]
    assert lines[3].startswith(f"cut.mlir           {REAL}  refused: This is no valid MLIR")
    assert cells[10] == ["pipeline", "programs", "refused", "pairs", "diagnostics", "none", "jax", "pass"]
    # 3 × 3072, 2 × 2048 + 3072
    assert cells[11] == [REAL, "4", "1", "2", "0", "9.2", "KB", "7.2", "KB", "7.2", "KB"]
    assert cells[12][-2:] == ["9.2", "KB"]


class OneResultOnly(ModulePass):
    """Of somebody's own: it fails where a function returns two."""

    name = "one-result-only"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        if any(len(func.function_type.outputs) > 1 for func in op.ops if isinstance(func, FuncOp)):
            raise DiagnosticException("two results")


def test_sums_are_of_the_same_programs(folder: pathlib.Path) -> None:
    """A pipeline that fails on a program isn't the better for it."""
    answer = corpus.run(folder, [REAL, [JaxUseDonatedArguments(), OneResultOnly()]], compile=True, progress=silent)
    refused = by_program(answer.rows, f"{REAL},one-result-only")["twice.mlir"].refused
    assert refused is not None
    assert refused.startswith("The pass 'one-result-only' failed: two results")
    assert None not in by_program(answer.rows, REAL)["twice.mlir"].totals.values()
    sums = [line.split() for line in str(answer).splitlines() if line.startswith(REAL)]
    assert [cells[5:7] for cells in sums] == [["9.2", "KB"], ["9.2", "KB"]]


def test_what_has_no_total_says_why_and_yet_the_pipeline_ran(tmp_path: pathlib.Path) -> None:
    (tmp_path / "add.mlir").write_text(ADD)
    (tmp_path / "dynamic.mlir").write_text(ADD.replace("256x", "?x"))
    (tmp_path / "unknown.mlir").write_text(
        ADD.replace("%0 = stablehlo.add %a, %b :", '%0 = "acme.add"(%a, %b) :').replace(
            ": tensor<256xf32>\n  return", ": (tensor<256xf32>, tensor<256xf32>) -> tensor<256xf32>\n  return"
        )
    )
    dropping = f"{REAL}{{remove_matched_outputs=true}}"
    answer = corpus.run(tmp_path, [REAL, dropping], compile=True, progress=silent)
    real, dropped = by_program(answer.rows, REAL), by_program(answer.rows, dropping)
    assert dict(dropped["add.mlir"].totals) == {"none": 3072, "jax": 2048, "pass": None}
    assert "drops results" in (dropped["add.mlir"].why_not or "")
    assert dict(real["dynamic.mlir"].totals) == {}
    assert "dynamic shape" in (real["dynamic.mlir"].why_not or "")
    assert set(real["unknown.mlir"].totals.values()) == {None}
    assert "none: XLA refused" in (real["unknown.mlir"].why_not or "")
    line = str(answer).splitlines()[2].split()
    assert line[4:12] == ["3.1", "KB", "2.0", "KB", "unknown", "it", "drops", "results"]
    assert answer.complete


def test_after_ctrl_c_there_is_what_was_finished(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(programs: dict[str, object], **_: object) -> dict[str, Compiled]:
        return {name: Compiled("cancelled", error="Interrupted.") for name in programs}

    def stop(step: int, _steps: int, _label: str) -> None:
        if step == 2:
            raise KeyboardInterrupt

    answer = corpus.run(folder, [REAL], compile=False, progress=stop)
    assert [row.program for row in answer.rows] == ["add.mlir", "cut.mlir"]
    assert (answer.finished, answer.complete) == (False, False)
    assert str(answer).endswith("Interrupted: the rest was not tried.")
    monkeypatch.setattr(compiling, "compile_variants", interrupted)
    answer = corpus.run(folder, [REAL], compile=True, progress=silent)
    assert (answer.rows, answer.finished) == ((), False)


def test_allocations_and_copies_where_they_can_be_counted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "add.mlir").write_text(ADD)
    (tmp_path / "sort.mlir").write_text(SORT)
    answer = corpus.run(tmp_path, [REAL, NOTHING], compile=False, bufferize=True, progress=silent)
    real, nothing = by_program(answer.rows, REAL), by_program(answer.rows, NOTHING)
    assert (real["add.mlir"].allocations, real["add.mlir"].copies) == (0, 0)
    # nobody says where the result goes, so it has a buffer of its own
    assert (nothing["add.mlir"].allocations, nothing["add.mlir"].copies) == (1, 0)
    assert (real["sort.mlir"].allocations, real["sort.mlir"].copies) == (None, None)
    assert "no linalg for stablehlo.sort" in (real["sort.mlir"].not_run or "")
    cells = [line.split() for line in str(answer).splitlines()]
    assert cells[0] == ["program", "pipeline", "pairs", "diagnostics", "allocations", "copies"]
    assert cells[1] == ["add.mlir", REAL, "1", "0", "0", "0"]
    assert cells[3][:8] == ["sort.mlir", REAL, "1", "0", "unknown", "unknown", "The", "target"]
    # summed up is what is known for every pipeline: add.mlir
    assert cells[6:9] == [
        ["pipeline", "programs", "refused", "pairs", "diagnostics", "allocations", "copies"],
        [REAL, "2", "0", "2", "0", "0", "0"],
        [NOTHING, "2", "0", "0", "2", "1", "0"],
    ]
    rows = answer.to_dict()["rows"]
    assert rows[0]["mlir"] == {"allocations": 0, "copies": 0, "not_run": None}
    assert rows[2]["mlir"] == {"allocations": None, "copies": None, "not_run": real["sort.mlir"].not_run}
    assert answer.complete


def test_an_operation_that_jaxlib_does_not_know_is_a_row_like_the_others(tmp_path: pathlib.Path) -> None:
    """jaxlib's passes end the process where a region of one uses a value that they replace."""
    (tmp_path / "add.mlir").write_text(ADD)
    (tmp_path / "region.mlir").write_text(
        """func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32>, tensor<4xf32>) {
          %0 = "acme.twice"(%a) : (tensor<4xf32>) -> tensor<4xf32>
          %1 = "acme.map"(%0) ({
            %2 = "acme.twice"(%a) : (tensor<4xf32>) -> tensor<4xf32>
            "acme.yield"(%2) : (tensor<4xf32>) -> ()
          }) : (tensor<4xf32>) -> tensor<4xf32>
          func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
        }"""
    )
    answer = corpus.run(tmp_path, ["donate-by-live-range"], compile=False, bufferize=True, progress=silent)
    add, region = answer.rows
    assert add.copies == 0
    assert region.refused is None
    assert "no linalg for acme.map, acme.twice, acme.yield: jaxlib does not know" in (region.not_run or "")


def test_without_mlirs_tools_the_table_says_how_to_get_them(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "add.mlir").write_text(ADD)
    monkeypatch.setenv("PATH", "")
    answer = corpus.run(tmp_path, [REAL], compile=False, bufferize=True, progress=silent)
    assert not answer.bufferized
    assert str(answer).splitlines()[-1].startswith("No allocations and copies: The target 'mlir' needs mlir-opt")
    assert answer.to_dict()["rows"][0]["mlir"] is None


def test_nothing_is_begun_that_cannot_be_done(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(PassError, match="no pass 'jax-use'"):
        corpus.run(folder, [REAL, "jax-use"], compile=True, progress=silent)
    with pytest.raises(IRError, match="is no folder"):
        corpus.run(folder / "add.mlir", [REAL], compile=True, progress=silent)
    (tmp_path / "empty").mkdir()
    with pytest.raises(IRError, match=r"no \.mlir, \.mlirbc, \.di file in"):
        corpus.run(tmp_path / "empty", [REAL], compile=True, progress=silent)


def test_the_command(folder: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    # the whole line, not what a narrow terminal has of it
    monkeypatch.setenv("COLUMNS", "300")
    written = folder / "corpus.json"
    arguments = ["corpus", str(folder), "-p", REAL, "-p", NOTHING, "--no-compile", "--json", str(written)]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].split() == ["program", "pipeline", "pairs", "diagnostics"]
    assert "twice.mlir, canonicalize, 10 of 10" in captured.err
    data = json.loads(written.read_text())
    assert data["pipelines"] == [REAL, NOTHING]
    assert data["rows"][0] == {
        "program": "add.mlir",
        "pipeline": REAL,
        "refused": None,
        "pairs": 1,
        "diagnostics": {"count": 0, "first": None},
        "why_not": None,
        "total": None,
        "mlir": None,
    }
    assert data["rows"][2]["diagnostics"] is None
    (folder / "cut.mlir").unlink()
    assert main(arguments) == 0
    assert main([*arguments[:-1], str(folder)]) == 1
    assert "cannot be written: Is a directory" in capsys.readouterr().err


class Untouched(ModulePass):
    """Of somebody's own, which xdsl-opt does not know."""

    name = "untouched"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Does nothing."""


def test_from_python_with_passes_as_objects(tmp_path: pathlib.Path) -> None:
    (tmp_path / "add.mlir").write_text(ADD)
    made = di.corpus(tmp_path, [REAL, Untouched(), [Untouched(), MaterializeToAliasingOutput()]])
    assert [(row.pipeline, row.pairs, row.refused) for row in made.rows] == [
        (REAL, 1, None),
        ("untouched", 0, None),
        ("untouched,materialize-to-aliasing-output", 0, None),
    ]


def test_the_shell_takes_a_class(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "add.mlir").write_text(ADD)
    assert main(["corpus", str(tmp_path), "--no-compile", "-p", f"{__name__}:Untouched"]) == 0
    assert "untouched" in capsys.readouterr().out
    assert main(["corpus", str(tmp_path), "--no-compile", "-p", f"{__name__}:ADD"]) == 1
    assert "is no ModulePass class" in capsys.readouterr().err
