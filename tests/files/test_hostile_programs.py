"""Programs that no compiler would make: one error or shown, whatever they say of sizes, devices and places."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import donation_inspector as di

HUGE = "tensor<4611686018427387904xf64>"
PROGRAMS = {
    "huge": f"func.func public @main(%a: {HUGE}) -> {HUGE} {{ return %a : {HUGE} }}",
    "huge within": """func.func public @main(%a: tensor<f32>) -> tensor<f32> {
      %b = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<4611686018427387904xf32>
      return %a : tensor<f32> }""",
    "aliased nowhere": """func.func public @main(
      %a: tensor<4xf32> {tf.aliasing_output = -7 : i32}, %b: tensor<4xf32> {tf.aliasing_output = 99999999999 : i64}
      ) -> tensor<4xf32> { return %a : tensor<4xf32> }""",
    "no tiles": """module attributes {mhlo.num_partitions = 4 : i32} {
      func.func public @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[0,0]0}"}) -> tensor<4xf32> {
      return %a : tensor<4xf32> } }""",
    "many devices": """module attributes {mhlo.num_partitions = 2000000000 : i32} {
      func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> } }""",
    "large mesh": """module { sdy.mesh @mesh = <["x"=9223372036854775807, "y"=9223372036854775807]>
      func.func public @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
      return %a : tensor<4xf32> } }""",
    "high rank": f"func.func public @main(%a: tensor<{'1x' * 3000}f32>) -> tensor<f32> {{ %b = "
    "stablehlo.constant dense<0.0> : tensor<f32>\n return %b : tensor<f32> }",
    "endless": """func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @main(%a) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32> }""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_one_error_or_is_shown(name: str, tmp_path: Path) -> None:
    with contextlib.suppress(di.IRError):
        inspection = di.inspect_ir(PROGRAMS[name])
        assert inspection.report()
        assert inspection.donate(*(whole.name for whole in inspection.wholes)).report()
        inspection.save(tmp_path / "program.di")
        assert di.load(tmp_path / "program.di").report()


def test_what_cannot_be_is_told() -> None:
    with pytest.raises(di.IRError, match="no devices have so many together"):
        di.inspect_ir(PROGRAMS["huge within"]).report()
    notes = " ".join(di.inspect_ir(PROGRAMS["aliased nowhere"]).notes)
    assert "tf.aliasing_output = -7, but there is no result -7" in notes
    assert "tf.aliasing_output = 99999999999 : i64, which is not the number of a result" in notes
    with pytest.raises(di.CompileError, match="2000000000 × 1 devices"):
        di.inspect_ir(PROGRAMS["many devices"]).compare()
