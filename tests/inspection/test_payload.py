"""The contract with the front end: complete, honest about what is unknown, and the same as the Inspection says."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import donation_inspector as di
from donation_inspector.common.labels import type_label
from donation_inspector.present import payload, payload_buffers


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
    assert len(once["ranges"]) == 4 * 5 * ranges
    assert len(once["range_bytes"]) == 8 * ranges
    assert len(current["ends"]) == 4 * sum(live.kind == "argument" for live in inspection.live_ranges)
    assert len(once["baseline_curve"]) == 8 * program["operations"]
    assert state["revision"] == 3
    assert all(len(program["arguments"][name]) == 4 for name in program["arguments"])
    assert all(len(state[name]) == 4 for name in ("verdicts", "results", "reasons"))


def test_results_are_called_as_the_reasons_call_them(inspection: di.Inspection) -> None:
    named = payload.once(inspection)["program"]["results"]["path"]

    assert named == ["result ['v']", "result ['w']"]
    aliased = [argument for argument in inspection.arguments if argument.result is not None]
    assert [named[argument.result] in argument.reason for argument in aliased] == [True, True]


def test_columns_say_what_the_inspection_says(inspection: di.Inspection) -> None:
    once, current = payload.once(inspection), payload.current(inspection, 0)
    start, kind, line, leaf, end = np.frombuffer(once["ranges"], "<i4").reshape(5, -1).copy()
    ends, size = np.frombuffer(current["ends"], "<i4"), np.frombuffer(once["range_bytes"], "<f8")
    end[: len(ends)] = ends
    lines, kinds = once["ir"].split("\n"), once["program"]["kinds"]
    for row, live in enumerate(inspection.live_ranges):
        assert (start[row], end[row], kinds[kind[row]], size[row]) == (live.start, live.end, live.kind, live.nbytes)
        if live.kind == "argument":
            assert inspection.arguments[leaf[row]].path == live.value
            assert "func.func public @main" in lines[line[row]]
        else:
            assert leaf[row] == -1
            assert lines[line[row]].strip().startswith(live.value.split("#")[0].split(":")[0])
    at, freed = np.frombuffer(current["freed"], "<f8").reshape(2, -1)
    curve = np.frombuffer(once["baseline_curve"], "<f8").copy()
    for start_of, end_of, less in zip(at.astype(int), [*at[1:].astype(int), len(curve)], freed, strict=True):
        curve[start_of:end_of] -= less
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


def update(state: dict[str, jax.Array], x: jax.Array) -> dict[str, jax.Array]:
    return {"m": state["m"] * 0.9 + jnp.tanh(x), "v": jnp.sort(state["v"], axis=0) + x.sum()}


@pytest.fixture(scope="module")
def compared() -> di.Inspection:
    square = jnp.ones((64, 64))
    inspection = di.inspect(jax.jit(update, donate_argnums=0), {"m": square, "v": square}, square)
    inspection.compare()
    return inspection


def test_buffers_are_xlas_own_as_far_as_they_are_read(compared: di.Inspection) -> None:
    unread = payload.current(compared, 0)
    assert unread["xla_curves"] == b""
    assert [row["buffers"] for row in unread["comparison"]["variants"]] == [None] * 3

    answer = compared.comparison
    assert answer is not None
    layouts = payload_buffers.read(compared, answer, {})
    assert payload_buffers.read(compared, answer, layouts) == {}
    made = payload.current(compared, 0, layouts)
    found = made["comparison"]
    json.dumps(found, allow_nan=False)
    rows = {row["name"]: row for row in found["variants"]}
    assert rows["none"]["buffers"] != rows["jax"]["buffers"]
    assert rows["jax"]["buffers"] == rows["pass"]["buffers"]  # one program, read and sent once
    assert len(found["buffers"]) == 2
    columns = np.frombuffer(made["xla_curves"], "<f8")
    assert len(columns) == 3 * sum(one["points"] for one in found["buffers"])
    for name in ("none", "jax"):
        buffers, row = answer.variants[name].buffers, found["buffers"][rows[name]["buffers"]]
        assert buffers is not None
        before = 3 * sum(one["points"] for one in found["buffers"][: rows[name]["buffers"]])
        times, needed, held = columns[before : before + 3 * row["points"]].reshape(3, -1)
        assert np.array_equal(needed, buffers.needed[times.astype(int)])
        assert np.array_equal(held, buffers.held[times.astype(int)])
        assert row["instructions"].split("\n") == [buffers.schedule[int(time)] for time in times]
        assert (row["peak"], row["peakAt"], row["reserved"]) == (buffers.peak, buffers.peak_at, buffers.reserved)
        assert row["peakInstruction"] == buffers.schedule[buffers.peak_at]
        assert sum(one["bytes"] for one in row["classes"]) == buffers.peak
        assert sum(one["bytes"] for one in row["contributors"]) + row["more"]["bytes"] == buffers.peak
        sizes = [one["bytes"] for one in row["contributors"]]
        assert sizes == sorted(sizes, reverse=True)
        labels = {one["label"] for one in row["contributors"]}
        assert "x" in labels  # whether the others' old or new values are there is each XLA's own
        assert all(label for label in labels)
        assert {one["class"] for one in row["contributors"]} <= set(payload.once(compared)["program"]["classes"])


def swapped(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    return b + 1, a * 2


def test_an_alias_that_saves_nothing_has_its_verdict_and_its_copies() -> None:
    square = jnp.ones((256, 256))
    inspection = di.inspect(jax.jit(swapped, donate_argnums=(0, 1)), square, square * 2)
    answer = inspection.compare()
    assert payload.current(inspection, 0)["state"]["verdicts"] == ["aliased", "aliased"]  # nothing is read yet
    made = payload.current(inspection, 0, payload_buffers.read(inspection, answer, {}))
    assert made["state"]["verdicts"] == [str(argument.verdict) for argument in answer.arguments]
    assert "aliased, saves nothing" in made["state"]["verdicts"]
    found = made["comparison"]
    none, jax_ = (found["buffers"][row["buffers"]] for row in found["variants"][:2])
    assert none["copies"] == []
    assert any(one["source"].startswith("test_payload.py:") for one in jax_["contributors"])
    assert {row["argument"] for row in jax_["copies"]} == {
        inspection.arguments[index].path for index, one in answer.outcomes.items() if one.copies
    }
    for row in jax_["copies"]:
        outcome = next(
            one for one in answer.outcomes.values() if inspection.arguments[one.argument].path == row["argument"]
        )
        assert row["bytes"] == sum(copy.nbytes for copy in outcome.copies) > 0
        assert (row["sentence"], row["advice"]) == (outcome.sentence, outcome.advice)


def test_every_compared_target_has_its_rows(compared: di.Inspection) -> None:
    found = payload.current(compared, 0)["comparison"]
    assert (found["target"], found["here"], found["capacity"]) == ("cpu", True, None)
    assert [(row["target"], row["variant"], row["saved"]) for row in found["targets"]] == [
        ("cpu", name, compared.comparison.saved(name)) for name in ("none", "jax", "pass")
    ]
    assert any(target["here"] for target in payload.once(compared)["program"]["available"])


@pytest.mark.parametrize("length", [0, 1, 4000, 4001, 9_999, 123_457])
def test_fewer_points_keep_both_peaks_and_where_they_are(length: int) -> None:
    needed, held = np.random.default_rng(length).integers(0, 1 << 40, (2, length))
    times = payload_buffers.points(needed, held)
    assert len(times) <= 4000
    assert (np.diff(times) > 0).all()
    if length:
        assert times[0] >= 0
        assert times[-1] < length
        assert {held.argmax(), needed.argmax()} <= set(times.tolist())
    if length <= 4000:
        assert len(times) == length


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
