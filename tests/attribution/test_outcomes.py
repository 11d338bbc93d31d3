"""Why a copy, and what aliasing an argument saves: held to the cases' facts, to XLA's totals and to XLA itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import case_loader
from attribution.compiled import CASES, PROGRAMS, compiled
from donation_inspector.attribution.copies import Kind
from donation_inspector.attribution.outcomes import Aliasing, AliasOutcome, explain_aliases

SAVES_NOTHING = {
    "04_swapped_outputs": {"a": "from_a = jnp.sin(a) + 1.0", "b": "from_b = jnp.tanh(b) * 2.0"},
    "05_reshape_donation": {"a": "return jnp.sin(a).reshape(d, d, d, d)"},
    "20_read_after_update_copies": {"x": "old = x[0, 0]"},
    "27_big_closure_constant": {"x": "return jnp.tanh(x @ W) + x"},
    "29_exported_call": {"state": "return jnp.tanh(state @ state.T) + x.sum(), x.mean(0)"},
    "42_layouts_differ": {"x": "return x * 2 + 1"},
}
"""The argument that is aliased for nothing, and the user's line that still needs its old value."""


def explain(name: str) -> Aliasing:
    donating = compiled(name)
    return explain_aliases(compiled(name, "none").buffers, donating.buffers, donating.signature)


def by_path(name: str) -> dict[str, AliasOutcome]:
    arguments = compiled(name).signature.arguments
    return {arguments[index].path: outcome for index, outcome in explain(name).outcomes.items()}


def line_of(case: str, text: str) -> int:
    lines = Path(str(case_loader.load(case).__file__)).read_text().splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if line.strip() == text]
    return found


@pytest.mark.parametrize("case", SAVES_NOTHING)
def test_the_interfering_use_is_named(case: str) -> None:
    outcomes = by_path(case)

    assert set(outcomes) == set(SAVES_NOTHING[case])
    for path, text in SAVES_NOTHING[case].items():
        outcome, line = outcomes[path], line_of(case, text)
        assert outcome.saves_nothing
        assert outcome.sentence.startswith("Aliased, saves nothing: ")
        assert f"({case}.py:{line}) " in outcome.sentence
        assert {copy.reader.source.line for copy in outcome.copies if copy.reader.source} == {line}
        assert outcome.advice


@pytest.mark.parametrize("case", SAVES_NOTHING)
def test_its_bytes_are_those_by_which_the_temporaries_grew(case: str) -> None:
    facts = case_loader.expect(case)
    grown = facts["mem_donated"]["temp"] - facts["mem_plain"]["temp"]
    aliasing = explain(case)

    assert aliasing.grown == grown
    assert aliasing.unpinned == 0
    assert aliasing.aliased == facts["mem_donated"]["alias"]
    assert sum(outcome.nbytes for outcome in aliasing.outcomes.values()) == grown


@pytest.mark.parametrize("name", PROGRAMS)
def test_savings_add_up_to_xlas_totals(name: str) -> None:
    aliasing = explain(name)
    saved = [outcome.saved for outcome in aliasing.outcomes.values()]

    total = compiled(name, "none").memory.total - compiled(name).memory.total
    assert aliasing.aliased - aliasing.grown == total
    if None in saved:
        # temporaries grew for no copy's sake: whose doing it is only another compile could tell
        assert aliasing.unpinned > 0
        return
    assert sum(known for known in saved if known is not None) - aliasing.unpinned == pytest.approx(total, abs=64)


@pytest.mark.parametrize("case", CASES)
def test_what_saves_nothing_can_be_kept_for_nothing(case: str) -> None:
    """XLA itself: compiled without that one pair, the program takes no more."""
    program = compiled(case)
    for path, outcome in by_path(case).items():
        if outcome.saves_nothing:
            without = compiled(case, f"without {program.position(path)}")
            assert without.memory.total - program.memory.total <= 64, path


KINDS = {
    "04_swapped_outputs": {Kind.KEPT, Kind.MOVED},
    "05_reshape_donation": {Kind.MOVED},
    "20_read_after_update_copies": {Kind.KEPT},
    "27_big_closure_constant": {Kind.DISPLACED},
    "29_exported_call": {Kind.DISPLACED},
    "42_layouts_differ": {Kind.MOVED},
}


@pytest.mark.parametrize("case", KINDS)
def test_kinds_are_what_xla_did(case: str) -> None:
    """A copy is a copy instruction of XLA's own module; a displaced value is none, and nothing of it is copied."""
    program = compiled(case)
    outcomes = explain(case).outcomes.values()

    assert {copy.kind for outcome in outcomes for copy in outcome.copies} == KINDS[case]
    flow = program.flow
    for outcome in outcomes:
        for copy in outcome.copies:
            assert copy.nbytes == copy.buffer.nbytes
            if copy.kind is Kind.KEPT:
                assert copy.buffer.opcode == "copy"
            if copy.kind is Kind.MOVED:
                assert [taken.opcode for taken in flow.copies(copy.buffer)] == ["copy"]
            if copy.kind is Kind.DISPLACED:
                assert flow.copies(copy.buffer) == []


def test_swapped_results_are_told_to_swap() -> None:
    outcomes = by_path("04_swapped_outputs")

    for argument, other, result in (("a", "[1]", "[0]"), ("b", "[0]", "[1]")):
        assert outcomes[argument].advice == (
            f"Worth a try: return {other} in the place of {result}, so that it takes over the buffer of {argument}; "
            "compare tells whether it helps."
        )


def test_another_shape_and_another_layout_are_called_so() -> None:
    shape, layout = by_path("05_reshape_donation")["a"], by_path("42_layouts_differ")["x"]

    assert "as float32[256,256] and makes, as float32[16,16,16,16]" in shape.sentence
    assert shape.advice.startswith("Return it as float32[256,256]")
    assert "in another layout" in layout.sentence
    assert "layout of x" in layout.advice


def test_what_is_in_place_has_no_copies() -> None:
    for name in ("elementwise", "24_complex_fft"):
        for path, outcome in by_path(name).items():
            assert outcome.saved == outcome.nbytes, path
            assert outcome.advice == ""
    assert all(not outcome.copies for outcome in explain("elementwise").outcomes.values())


def test_nothing_is_explained_where_nothing_is_donated() -> None:
    aliasing = explain("gradients alone")

    assert aliasing.outcomes == {}
    assert (aliasing.aliased, aliasing.grown, aliasing.unpinned) == (0, 0, 0)


def test_a_copy_that_is_made_without_donation_too_is_not_aliasings() -> None:
    plain = compiled("30_pallas_input_output_aliases", "none").flow
    assert [copy.opcode for copy in plain.copies(plain.arguments[0])] == ["copy"]

    (outcome,) = explain("30_pallas_input_output_aliases").outcomes.values()
    assert {copy.kind for copy in outcome.copies} == {Kind.MOVED}
