"""Two summaries compared: exactly what was changed between them, ranked by bytes."""

from __future__ import annotations

import copy
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.common.tables import Table
from donation_inspector.present.differences import KINDS, Difference, SummaryError, between, read
from donation_inspector.present.report import plain

Json = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> Json:
    def step(params: Any, state: Any, batch: Any) -> Any:
        state = {name: 0.9 * value + batch.sum() for name, value in state.items()}
        return {name: value - state[name] for name, value in params.items()}, state

    shapes = {"w": jax.ShapeDtypeStruct((256, 64), jnp.float32), "b": jax.ShapeDtypeStruct((64,), jnp.float32)}
    batch = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    inspection = di.inspect(jax.jit(step, donate_argnames=("params", "state")), shapes, shapes, batch)
    inspection.compare()
    return inspection.to_dict()


@pytest.fixture
def other(made: Json) -> Json:
    return copy.deepcopy(made)


def jax_variant(summary: Json) -> Json:
    return summary["comparisons"][0]["variants"]["jax"]


def argument(summary: Json, path: str) -> Json:
    return next(one for one in summary["arguments"] if one["path"] == path)


def test_nothing_changed_is_the_same(made: Json, other: Json) -> None:
    found = between(made, other)
    assert found.same
    assert plain(found.blocks()) == "step\n\nNothing is different."


def test_another_version_of_jax_is_told_and_is_no_difference(made: Json, other: Json) -> None:
    other["versions"]["jax"] = "0.11.0"
    other["comparisons"][0]["variants"]["jax"]["seconds"] += 1.0
    found = between(made, other)
    assert found.same
    assert found.context == (("jax", made["versions"]["jax"], "0.11.0"),)
    assert f"step · jax {made['versions']['jax']} → 0.11.0" in plain(found.blocks())


def test_totals_and_their_parts(made: Json, other: Json) -> None:
    memory = jax_variant(other)["memory"]
    memory["temp"] += 1000
    memory["total"] += 1000
    temp, total = memory["temp"], memory["total"]
    assert between(made, other).found == (
        Difference("total", "cpu, jax", total - 1000, total, 1000),
        Difference("part", "cpu, jax: temp", temp - 1000, temp, 1000),
    )


def test_the_pass_is_told_apart_where_it_makes_another_program(made: Json, other: Json) -> None:
    for name, more in (("jax", 10), ("pass", 10)):
        other["comparisons"][0]["variants"][name]["memory"]["total"] += more
    assert [one.what for one in between(made, other).found] == ["cpu, jax"]
    other["comparisons"][0]["variants"]["pass"]["memory"]["total"] += 5
    assert [one.what for one in between(made, other).found] == ["cpu, pass", "cpu, jax"]


def test_arguments_are_matched_by_path_and_ranked_by_bytes(made: Json, other: Json) -> None:
    other["arguments"].reverse()
    for path in ("params['b']", "params['w']"):
        argument(other, path)["verdict"] = "unusable"
    other["arguments"] = [one for one in other["arguments"] if one["path"] != "batch"]
    other["arguments"].append({**argument(other, "state['b']"), "path": "rng"})
    assert [(one.what, one.before, one.after, one.nbytes) for one in between(made, other).found] == [
        ("params['w']", "aliased", "unusable", 256 * 64 * 4),
        ("params['b']", "aliased", "unusable", 256),
        ("batch", "not donated", None, 256),
        ("rng", None, "aliased", 256),
    ]


def test_a_type_that_changed(made: Json, other: Json) -> None:
    argument(other, "params['w']").update(dtype="bfloat16", nbytes=256 * 64 * 2)
    assert between(made, other).found == (
        Difference("argument", "params['w']: type", "f32[256,64]", "bf16[256,64]", -256 * 64 * 2),
    )


def test_what_xla_says_of_an_argument_is_compared_on_one_target(made: Json, other: Json) -> None:
    made = copy.deepcopy(made)
    made["comparisons"][0]["arguments"] = []
    said = {"path": "state['w']", "verdict": "aliased, saves nothing", "reason": ""}
    other["comparisons"][0]["arguments"] = [said]
    [found] = between(made, other).found
    assert (found.what, found.before, found.after) == ("state['w'] (cpu)", "aliased", "aliased, saves nothing")
    other["comparisons"][0]["target"] = "tpu:v5e"
    assert between(made, other).found == ()


def test_contributors_are_matched_without_their_lines(made: Json, other: Json) -> None:
    peak = jax_variant(other)["peak"]
    for one in peak["contributors"]:
        one["source"] = "step.py:99"
    largest = peak["contributors"][0]
    peak["contributors"].append({**largest, "role": "activations kept for the backward pass", "path": None})
    peak["contributors"][-1].update(op_name="jit(step)/transpose(jvp())/dot_general", nbytes=5000)
    largest["nbytes"] -= 70
    assert [(one.kind, one.what, one.before, one.after, one.nbytes) for one in between(made, other).found] == [
        ("peak", "cpu, activations kept for the backward pass dot_general", 0, 5000, 5000),
        ("peak", f"cpu, {largest['role']} {largest['path']}", largest["nbytes"] + 70, largest["nbytes"], -70),
    ]


def test_what_does_not_fit_any_more_comes_before_the_bytes(made: Json, other: Json) -> None:
    for summary, fits, capacity in ((made := copy.deepcopy(made), True, 10**6), (other, False, 10**5)):
        jax_variant(summary).update(fits=fits, capacity=capacity)
    jax_variant(other)["memory"]["total"] += 1
    found = between(made, other).found
    assert [(one.what, one.before, one.after) for one in found[:2]] == [
        ("cpu: memory", 10**6, 10**5),
        ("cpu, jax: fits", "yes", "no"),
    ]
    assert [KINDS.index(one.kind) for one in found] == sorted(KINDS.index(one.kind) for one in found)


def test_a_variant_that_crashes_now_is_an_outcome_and_unknown_bytes_are_not_compared(made: Json, other: Json) -> None:
    jax_variant(other).update(status="crashed", memory=None, peak=None)
    other["program_memory"]["peak"] = None
    peak = made["program_memory"]["peak"]
    assert between(made, other).found == (
        Difference("outcome", "cpu, jax", "ok", "crashed"),
        Difference("total", "live at once, predicted in program order", peak, None),
    )
    text = plain(between(made, other).blocks())
    assert "unknown" in text


def test_a_measured_peak_differs_where_the_runs_lie_apart(made: Json, other: Json) -> None:
    made = copy.deepcopy(made)
    row = {"predicted": 100, "seconds": 0.1, "status": "ok", "error": None}
    for summary, peak, spread in ((made, 100, [98, 105]), (other, 110, [104, 115])):
        variants = {"jax": {**row, "peak": peak, "spread": spread}, "none": {**row, "peak": None, "spread": None}}
        summary["measurement"] = {"target": "cpu", "variants": variants}
    assert between(made, other).same
    other["measurement"]["variants"]["jax"]["spread"] = [106, 115]
    assert between(made, other).found == (Difference("measured", "cpu, jax: peak", 100, 110, 10),)


def test_diagnostics_come_and_go(made: Json, other: Json) -> None:
    other["applied"]["diagnostics"].append({"severity": "warning", "code": "several-blocks", "message": "Skipped."})
    new = Difference("diagnostic", "warning: Skipped.", None, "told")
    assert between(made, other).found == (new,)
    assert between(other, made).found == (Difference("diagnostic", "warning: Skipped.", "told", None),)


def test_what_only_one_was_compiled_or_measured_for_is_a_note(made: Json, other: Json) -> None:
    other["comparisons"][0]["target"] = "tpu:v5e"
    other["measurement"] = {"target": "cpu", "variants": {}}
    found = between(made, other)
    assert found.same
    assert found.notes == (
        "cpu is compiled in the first alone: not compared.",
        "tpu:v5e is compiled in the second alone: not compared.",
        "Only the second is measured: not compared.",
    )
    assert "note: tpu:v5e is compiled" in plain(found.blocks())


def test_a_long_list_is_cut_for_people_alone(made: Json, other: Json) -> None:
    row = argument(other, "batch")
    other["arguments"] += [{**row, "path": f"more[{number}]", "nbytes": number} for number in range(25)]
    found = between(made, other)
    table = next(block for block in found.blocks() if isinstance(block, Table))
    assert [len(table.rows), table.rows[0][0]] == [20, "more[24]"]
    assert "and 5 more" in found.blocks()
    assert len(found.to_dict()["differences"]) == 25
    assert json.loads(json.dumps(found.to_dict()))["differences"][0]["what"] == "more[24]"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("[1]", "is JSON of another kind"),
        ('{"format": 1}', "is JSON of another kind"),
        ('{"format": 9, "arguments": []}', "has format 9, and this one reads 1"),
    ],
)
def test_another_file_is_refused_with_what_to_give(text: str, words: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(SummaryError, match=words) as raised:
        read(path)
    assert "--json" in str(raised.value)


def test_one_path_twice_is_two_arguments(made: Json, other: Json) -> None:
    other["arguments"].append({**argument(other, "batch"), "verdict": "donated"})
    assert [one.what for one in between(made, other).found] == ["batch (number 2)"]
