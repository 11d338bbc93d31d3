"""What is kept, for how long, and how large it is said to be."""

from __future__ import annotations

from dataclasses import dataclass

from donation_inspector.program.answer_cache import AnswerCache, Question


@dataclass(frozen=True)
class Named(Question[str]):
    name: str


@dataclass(frozen=True)
class Numbered(Question[str]):
    name: str


def test_a_question_is_its_kind_and_its_fields() -> None:
    cache = AnswerCache(100)
    cache.put(Named("a"), "named")
    assert cache.get(Named("a")) == "named"
    assert cache.get(Numbered("a")) is None
    cache.put(Numbered("a"), "numbered")
    assert [*cache.of_kind(Named)] == [(Named("a"), "named")]


def test_the_one_asked_for_longest_ago_goes_first() -> None:
    cache = AnswerCache(100)
    for name in ("a", "b", "c"):
        cache.put(Named(name), name, bytes(30))
    assert cache.get(Named("a")) == "a"
    cache.put(Named("d"), "d", bytes(30))
    assert [cache.get(Named(name)) for name in "abcd"] == ["a", None, "c", "d"]
    assert cache.nbytes == 90


def test_what_answers_share_counts_once_and_for_as_long_as_one_has_it() -> None:
    cache, shared = AnswerCache(100), bytes(60)
    cache.put(Named("a"), "a", shared)
    cache.put(Named("b"), "b", shared, bytes(10))
    assert cache.nbytes == 70
    cache.drop(Named("a"))
    assert cache.nbytes == 70
    cache.put(Named("b"), "other", bytes(5))
    assert (cache.nbytes, cache.get(Named("b"))) == (5, "other")


def test_the_latest_stays_however_large_and_there_are_never_too_many() -> None:
    cache = AnswerCache(100, most=2)
    cache.put(Named("huge"), "huge", bytes(1000))
    assert cache.get(Named("huge")) == "huge"
    for name in ("a", "b", "c"):
        cache.put(Named(name), name)
    assert [cache.get(Named(name)) for name in ("huge", "a", "b", "c")] == [None, None, "b", "c"]
    cache.clear()
    assert (cache.nbytes, cache.get(Named("c"))) == (0, None)
