"""The contract with the front end: complete, honest about what is unknown, and the same as the Inspection says."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import donation_inspector as di
from donation_inspector import payload
from donation_inspector.labels import type_label


def f(params: Any, unread: Any, x: Any) -> Any:  # noqa: ARG001
    return {"w": params["w"] * x.sum(), "v": params["v"] + 1}


@pytest.fixture
def inspection() -> di.Inspection:
    square = jax.ShapeDtypeStruct((32, 32), jnp.float32)
    return di.inspect(jax.jit(f, donate_argnums=(0, 2)), {"w": square, "v": square}, square, jnp.ones(4, jnp.bfloat16))


def test_json_parts_are_json_and_columns_are_as_long_as_they_say(inspection: di.Inspection) -> None:
    once, current = payload.once(inspection), payload.current(inspection, 3)
    program, state = once["program"], current["state"]
    for part in (program, state):
        json.dumps(part, allow_nan=False)
    ranges = len(program["rangeNames"].split("\n"))
    assert ranges == len(inspection.live_ranges) == len(program["rangeSources"].split("\n"))
    assert len(once["ranges"]) == 4 * 4 * ranges
    assert len(once["range_bytes"]) == 8 * ranges
    assert len(current["ends"]) == 4 * ranges
    assert len(current["curve"]) == len(once["baseline_curve"]) == 8 * program["operations"]
    assert state["revision"] == 3
    assert all(len(program["arguments"][name]) == 4 for name in program["arguments"])
    assert all(len(state[name]) == 4 for name in ("verdicts", "results", "reasons"))


def test_columns_say_what_the_inspection_says(inspection: di.Inspection) -> None:
    once, current = payload.once(inspection), payload.current(inspection, 0)
    start, kind, line, leaf = np.frombuffer(once["ranges"], "<i4").reshape(4, -1)
    end, size = np.frombuffer(current["ends"], "<i4"), np.frombuffer(once["range_bytes"], "<f8")
    lines, kinds = once["ir"].split("\n"), once["program"]["kinds"]
    for row, live in enumerate(inspection.live_ranges):
        assert (start[row], end[row], kinds[kind[row]], size[row]) == (live.start, live.end, live.kind, live.nbytes)
        if live.kind == "argument":
            assert inspection.arguments[leaf[row]].path == live.value
            assert "func.func public @main" in lines[line[row]]
        else:
            assert leaf[row] == -1
            assert lines[line[row]].strip().startswith(live.value.split("#")[0].split(":")[0])
    curve = np.frombuffer(current["curve"], "<f8")
    assert np.array_equal(curve, inspection.program_memory.bytes)
    assert curve.max() == current["state"]["peak"]["bytes"] == curve[current["state"]["peak"]["at"]]


def test_dropped_arguments_cannot_be_toggled(inspection: di.Inspection) -> None:
    program = payload.once(inspection)["program"]
    assert [(whole["name"], whole["togglable"]) for whole in program["wholes"]] == [
        ("params", True),
        ("unread", False),
        ("x", True),
    ]
    assert program["arguments"]["dropped"] == [False, False, True, False]
    assert program["arguments"]["whole"] == [0, 0, 1, 2]


def test_unknown_sizes_are_null_and_nan_never_zero() -> None:
    dynamic = di.inspect_ir("""
module {
  func.func public @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
""")
    once, current = payload.once(dynamic), payload.current(dynamic, 0)
    assert once["program"]["arguments"]["nbytes"] == [None]
    assert once["program"]["arguments"]["label"] == ["f32[?,4]"]
    assert np.isnan(np.frombuffer(once["range_bytes"], "<f8")).all()
    assert current["state"]["unknown"] == 2


@pytest.mark.parametrize(
    ("dtype", "shape", "label"),
    [
        ("float32", (2, 3), "f32[2,3]"),
        ("bfloat16", (), "bf16[]"),
        ("uint8", (0,), "u8[0]"),
        ("complex64", (None, 2), "c64[?,2]"),
        ("bool", (1,), "bool[1]"),
        ("float8_e4m3fn", (1,), "float8_e4m3fn[1]"),
        ("key<fry>", (4,), "key<fry>[4]"),
        ("int4", (8,), "i4[8]"),
    ],
)
def test_types_are_written_short(dtype: str, shape: tuple[int | None, ...], label: str) -> None:
    assert type_label(dtype, shape) == label
