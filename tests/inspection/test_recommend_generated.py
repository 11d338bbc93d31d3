"""`recommend` on programs that nobody looked at: never worse than what JAX does, and mostly the best there is.

The best there is comes from compiling every pairing, listed here without the search's help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import jax
import pytest

import donation_inspector as di
from donation_inspector.common.signature import Donation, Leaf
from donation_inspector.ir.exporter import with_donation
from donation_inspector.program.origins import FromFunction
from donation_inspector.program.subject import Subject
from donation_inspector.questions.compare import ask as compiling
from donation_inspector.xla.program import Program
from generated_steps import Generated, generate
from xla_in_process import QUICKLY, InProcess

TUNED_ON = range(160)
"""Programs that were looked at while the order of candidates was chosen."""
JUDGED_ON = range(20_000, 20_200)
"""Programs that it is judged by, and that were not."""
SAMPLE = JUDGED_ON[:24]
COMPILES = 8


@dataclass(frozen=True)
class Outcome:
    seed: int
    recommendation: di.Recommendation
    best: int
    equal_bits: bool
    taken: int | None
    """What the code takes, by XLA's account of a `di.jit` that JAX itself lowered; None where the order stays."""

    @property
    def written(self) -> int | None:
        """What the pairs take in the program as it is written, in whose order every pairing is listed."""
        return next(one.total for one in self.recommendation.variants if one.name == self.recommendation.name)


def pairings(arguments: Sequence[Leaf], results: Sequence[Leaf]) -> Iterator[dict[int, int]]:
    """Every way to give results the buffers of arguments of their type, by position."""
    if not arguments:
        yield {}
        return
    first, *others = arguments
    for pairs in pairings(others, results):
        yield pairs
        for result in results:
            if (result.shape, result.dtype) == (first.shape, first.dtype) and result.position not in pairs.values():
                assert first.position is not None
                assert result.position is not None
                yield {first.position: result.position, **pairs}


def outcome(seed: int, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    generated, xla = generate(seed), InProcess()
    monkeypatch.setattr(compiling, "compile_variants", xla.compile_variants)
    step = jax.jit(generated.function, keep_unused=True, compiler_options=QUICKLY)
    origin = FromFunction(step, generated.arguments, {})
    # chosen, and so searched alone: every pairing of these is listed below
    chosen = frozenset(range(generated.donated))
    found = di.Inspection(Subject(origin), chosen).recommend("cpu", compiles=COMPILES)

    def program(pairs: Mapping[int, int]) -> Program:
        return origin.program(with_donation(origin.module, Donation(pairs)), None)

    arguments, results = origin.signature.arguments[: generated.donated], origin.signature.results
    compiled = [xla.compile(program(pairs)) for pairs in pairings(arguments, results)]
    best = min(one.memory.total for one in compiled if one.memory is not None)
    # with `keep_unused` flat indices are positions
    equal_bits = xla.hashes(program({})) == xla.hashes(program(found.pairs))
    return Outcome(seed, found, best, equal_bits, _taken(generated, found))


def _taken(generated: Generated, found: di.Recommendation) -> int | None:
    if found.name in found.baselines:
        return None
    made = di.jit(generated.function, pairs=dict(found.pairs), keep_unused=True, compiler_options=QUICKLY)
    memory = made.lower(*generated.arguments).compile().memory_analysis()
    results = memory.output_size_in_bytes - memory.alias_size_in_bytes
    return memory.argument_size_in_bytes + results + memory.temp_size_in_bytes


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(SAMPLE, id="sample"),
        pytest.param(JUDGED_ON, id="all", marks=[pytest.mark.exhaustive, pytest.mark.timeout(1800)]),
    ],
)
def outcomes(request: pytest.FixtureRequest) -> list[Outcome]:
    with pytest.MonkeyPatch.context() as patched:
        return [outcome(seed, patched) for seed in request.param]


def test_the_programs_judged_by_are_others_than_those_tuned_on() -> None:
    assert not set(TUNED_ON) & set(JUDGED_ON)


def test_none_is_above_jax_or_no_donation(outcomes: list[Outcome]) -> None:
    for one in outcomes:
        total, (none, jax_own) = one.recommendation.total, one.recommendation.baselines.values()
        assert total is not None
        assert none is not None
        assert jax_own is not None
        assert total <= min(none, jax_own), one
        assert one.written is not None
        assert one.best <= one.written <= min(none, jax_own), one


def test_nine_in_ten_are_the_best_there_is_after_eight_compiles(outcomes: list[Outcome]) -> None:
    assert all(one.recommendation.tried <= COMPILES for one in outcomes)
    missed = [one.seed for one in outcomes if one.written != one.best]
    assert len(missed) <= len(outcomes) // 10, missed


def test_jax_alone_would_not_pass(outcomes: list[Outcome]) -> None:
    """The programs are worth judging by: what stands there already is the best in fewer than nine of ten."""
    best = [one for one in outcomes if one.best in one.recommendation.baselines.values()]
    assert len(best) < 0.9 * len(outcomes)


def test_the_first_candidate_alone_is_the_best_in_three_of_four(outcomes: list[Outcome]) -> None:
    """Most of it is known before anything is compiled."""
    first = [[known.total for known in one.recommendation.variants[:3]] for one in outcomes]
    best = [totals for totals, one in zip(first, outcomes, strict=True) if one.best in totals]
    assert len(best) >= 0.75 * len(outcomes)


def test_what_all_says_is_the_best_there_is(outcomes: list[Outcome]) -> None:
    exhaustive = [one for one in outcomes if one.recommendation.exhaustive]
    assert exhaustive
    for one in exhaustive:
        assert one.best == min(known.total for known in one.recommendation.variants if known.total is not None), one


def test_what_is_handed_over_takes_what_is_said_and_less_than_what_stands_there(outcomes: list[Outcome]) -> None:
    ordered = [one for one in outcomes if one.taken is not None]
    assert len(ordered) > len(outcomes) // 5
    for one in ordered:
        # a pairing without some arguments needs no order where JAX makes it by itself
        assert one.recommendation.total == one.taken, one
        assert one.taken < min(known for known in one.recommendation.baselines.values() if known is not None), one


def test_outputs_are_equal_to_the_bit(outcomes: list[Outcome]) -> None:
    assert [one.seed for one in outcomes if not one.equal_bits] == []
