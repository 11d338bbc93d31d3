"""The 30 cases through the public face: every leaf's verdict and result, and XLA's figures, as JAX itself gave them."""

from __future__ import annotations

import re
from typing import Any

import jax
import pytest

import donation_inspector as di
from case_loader import CASE_NAMES, expect, load

VERDICTS = {
    "buffer_donor": di.Verdict.DONOR,
    "unusable": di.Verdict.UNUSABLE,
    "not donated": di.Verdict.NOT_DONATED,
    "dropped (unused)": di.Verdict.UNUSED,
}


def inspect_case(name: str) -> di.Inspection:
    case = load(name).make()
    return di.inspect(jax.jit(case["fn"], **case["jit_kwargs"]), *case["args"], **case.get("kwargs", {}))


def _outcome(text: str) -> tuple[di.Verdict, int | None]:
    aliased = re.fullmatch(r"aliased to output (\d+)", text)
    return (di.Verdict.ALIASED, int(aliased[1])) if aliased else (VERDICTS[text], None)


@pytest.mark.parametrize("name", CASE_NAMES)
def test_verdict_and_result_of_every_leaf(name: str) -> None:
    inspection, facts = inspect_case(name), expect(name)
    found = [(argument.verdict, argument.result) for argument in inspection.arguments]
    assert found == [_outcome(one["outcome"]) for one in facts["inputs"]]
    assert [(list(a.shape), a.dtype, a.donated) for a in inspection.arguments] == [
        (one["shape"], one["dtype"], one["donated"]) for one in facts["inputs"]
    ]
    assert [(list(r.shape), r.dtype) for r in inspection.results] == [
        (o["shape"], o["dtype"]) for o in facts["outputs"]
    ]
    assert all(argument.reason for argument in inspection.arguments)
    taken = {result.argument: result.index for result in inspection.results if result.argument is not None}
    assert taken == {a.index: a.result for a in inspection.arguments if a.result is not None}


@pytest.mark.parametrize("name", CASE_NAMES)
def test_donating_the_same_again_changes_nothing(name: str) -> None:
    """`keep` everything, `donate` it again: JAX's outcome comes back, so a toggle tells what a lowering would."""
    inspection = inspect_case(name)
    donated = [argument.path for argument in inspection.arguments if argument.donated]
    again = inspection.keep(*[argument.path for argument in inspection.arguments]).donate(*donated)
    assert again.arguments == inspection.arguments
    assert again.donation == inspection.donation


@pytest.mark.parametrize("name", ["04_swapped_outputs", "08_one_value_returned_twice", "26_pure_callback_host_step"])
def test_compiled_figures_are_xlas(name: str) -> None:
    comparison = inspect_case(name).compare()
    case = load(name).make()
    donating = case["jit_kwargs"]
    stripped = {option: value for option, value in donating.items() if not option.startswith("donate")}
    for variant, options in (("none", stripped), ("jax", donating)):
        lowered = jax.jit(case["fn"], **options).lower(*case["args"], **case.get("kwargs", {}))
        stats = lowered.compile().memory_analysis()
        assert _figures(comparison.variants[variant]) == {
            "arg": stats.argument_size_in_bytes,
            "out": stats.output_size_in_bytes,
            "alias": stats.alias_size_in_bytes,
            "temp": stats.temp_size_in_bytes,
        }
    assert dict(comparison.variants["jax"].input_output_alias) == expect(name)["xla_alias"]
    assert comparison.variants["jax"].missing_pairs == ()
    none, made = comparison.variants["none"].memory, comparison.variants["pass"].memory
    assert none is not None
    assert made is not None
    assert comparison.compiled_saved == none.total - made.total


def _figures(variant: Any) -> dict[str, int]:
    memory = variant.memory
    return {"arg": memory.argument, "out": memory.output, "alias": memory.alias, "temp": memory.temp}
