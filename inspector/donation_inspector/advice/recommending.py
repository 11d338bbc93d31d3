"""From a program and what is donated of it to a `Recommendation`: audit, search, answer."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from donation_inspector.advice import safety
from donation_inspector.advice.donation_code import Line, line_for
from donation_inspector.advice.recommendation import Candidate, Recommendation, Unsafe
from donation_inspector.advice.searching import Pairs, Search, Space
from donation_inspector.analysis import donation as decisions
from donation_inspector.analysis.donation import Verdict
from donation_inspector.analysis.interference import Interference
from donation_inspector.analysis.neighbours import Promise, find_classes
from donation_inspector.common.signature import Donation
from donation_inspector.common.units import format_bytes
from donation_inspector.common.visible import repr_of
from donation_inspector.errors import CompileError
from donation_inspector.questions.compare.ask import NOTHING

if TYPE_CHECKING:
    from donation_inspector.common.progress import Progress
    from donation_inspector.program.subject import Subject
    from donation_inspector.xla.targets import Target

_SHOWN_CHANGES = 3
_HANDED_OVER = 4
"""So many of those with the smallest totals are compiled as they are handed over, at most."""
_LOOKED_AT = 16
"""So many of them are asked for the line that makes their pairs, at most."""


def recommend(
    subject: Subject,
    donated: frozenset[int],
    target: Target,
    *,
    budget: float,
    compiles: int | None,
    progress: Progress,
    cancel: threading.Event | None,
) -> Recommendation:
    """See `Inspection.recommend`; `donated` are leaf indices, none where what could be donated is searched.

    Raises CompileError: a budget or a number of compiles that makes no sense; a file that cannot be compiled here.
    """
    _check(budget, compiles)
    with subject.lock:
        interference = subject.interference
        unsafe, leaves = _audited(subject, donated)
        jax = subject.origin.decide(leaves)
        space = _space(subject, jax, leaves, interference)
        # of a step that donates in part, what else may be donated is searched too
        now = {"now": subject.origin.decide(donated)} if donated and leaves != donated else {}
    names = _Names(subject, space, jax)
    search = Search(subject, target, jax, space, names, progress, cancel)
    search.run(budget, compiles, now)
    donations = {
        "none": subject.undonated,
        "jax": jax,
        **now,
        **{name: space.donation(pairs) for pairs, name in search.tried.items()},
    }
    candidates = {name: names.candidate(name, donation, search) for name, donation in donations.items()}
    offers = _Offers(subject, search, donations, leaves, unsafe)
    none, own, *as_it_is = (offers.of(candidates.pop(name)) for name in ("none", "jax", *now))
    # What stands there now wins a tie; of the others JAX's own pairing, for which no order need be changed.
    best = _best(offers, (*as_it_is, own, none) if donated else (none, own), candidates.values())
    if as_it_is and not _is_worth_it(best, as_it_is[0]):
        best = as_it_is[0]
    more = None
    if best.takes is not None and (compiles is None or len(candidates) < compiles):
        more = _across_types(subject, space, best.donation, leaves, search)
    made = {one.candidate.name: one.candidate for one in (none, own, *as_it_is)} | candidates
    return Recommendation(
        target=target.name,
        pairs=best.candidate.pairs,
        donated=best.candidate.donated,
        total=best.takes,
        baselines={"none": none.total, "jax": own.total},
        tried=len(candidates),
        exhaustive=search.exhaustive,
        searched=search.searched,
        unsafe=unsafe,
        code="" if best.takes is None else best.line.code,
        here=target.here,
        variants=tuple({**made, best.candidate.name: best.candidate}.values()),
        capacity=search.capacity,
        more=more,
        name=best.candidate.name,
    )


@dataclass(frozen=True)
class _Offer:
    """A candidate as a line of code hands it over; `donation` is by position."""

    candidate: Candidate
    line: Line
    donation: Donation

    @property
    def takes(self) -> int | None:
        """What the line takes, None where that is not known or no line makes the pairs."""
        return self.candidate.handed_over

    @property
    def total(self) -> int | None:
        """The same, or where no line makes the pairs what they would take."""
        return self.candidate.total if self.takes is None else self.takes


class _Offers:
    """From candidates to the lines that hand them over, and what XLA makes of these."""

    def __init__(
        self,
        subject: Subject,
        search: Search,
        donations: Mapping[str, Donation],
        leaves: frozenset[int],
        unsafe: Sequence[Unsafe],
    ) -> None:
        self._subject, self._search, self._donations, self._leaves = subject, search, donations, leaves
        self._unsafe = frozenset(leaf for one in unsafe for leaf in one.leaves)

    def line(self, candidate: Candidate) -> Line:
        """The code that makes its pairs, or comes nearest to them."""
        with self._subject.lock:
            return line_for(self._subject, candidate.donated, candidate.pairs)

    def of(self, candidate: Candidate, line: Line | None = None) -> _Offer:
        """With what the line takes, where it makes the candidate's pairs."""
        line = line or self.line(candidate)
        donation = self._donations.get(candidate.name, line.made)
        if line.given is None:
            # a file: what it says of donation is what is compiled
            return _Offer(
                replace(candidate, handed_over=candidate.total), line, self._donations.get(candidate.name, line.made)
            )
        result = self._search.handed_over(line.given) if line.exact else None
        if result is None or result.memory is None:
            return _Offer(candidate, line, donation)
        fits = self._search.has_room(result)
        return _Offer(replace(candidate, handed_over=result.memory.total, fits=fits), line, line.made)

    def nearest(self, line: Line) -> _Offer | None:
        """The line that makes other pairs than those wanted, as what it is; None where it donates what is unsafe."""
        arguments, results = self._subject.leaf_of_argument, self._subject.leaf_of_result
        donated = frozenset(arguments[position] for position in line.made.positions if position in arguments)
        more, values = donated - self._leaves, self._subject.origin.values()
        if donated & self._unsafe or safety.audit_arrays(self._subject.signature, values, more):
            return None
        pairs = {
            arguments[a]: results[r] for a, r in sorted(line.made.aliases.items()) if a in arguments and r in results
        }
        total, fits = self._search.total(line.made), self._search.fits(line.made)
        return self.of(Candidate("nearest", pairs, donated, total, fits), replace(line, exact=True))


def _best(offers: _Offers, as_it_is: Sequence[_Offer], tried: Iterable[Candidate]) -> _Offer:
    """Of those with the smallest totals the one that takes least once it is handed over."""
    nearest = {one.line.given: one.line for one in as_it_is if not one.line.exact}
    best, left = min(as_it_is, key=_takes), _HANDED_OVER
    for candidate in itertools.islice(sorted(tried, key=_total), _LOOKED_AT):
        if not left or _total(candidate) >= _takes(best):
            break
        line = offers.line(candidate)
        if line.exact:
            left -= 1
            best = min(best, offers.of(candidate, line), key=_takes)
        else:
            nearest.setdefault(line.given, line)
    found = [offers.nearest(line) for line in itertools.islice(nearest.values(), _HANDED_OVER)]
    return min([best, *(one for one in found if one is not None)], key=_takes)


def _is_worth_it(best: _Offer, now: _Offer) -> bool:
    """Whether it takes a hundredth less than what stands there now: for less nobody changes a line."""
    return best.takes is None or now.takes is None or 100 * (now.takes - best.takes) >= now.takes


def _total(candidate: Candidate) -> float:
    return math.inf if candidate.total is None else candidate.total


def _takes(offer: _Offer) -> float:
    return math.inf if offer.takes is None else offer.takes


def _check(budget: object, compiles: object) -> None:
    # a NaN fails every comparison
    if isinstance(budget, bool) or not (isinstance(budget, int | float) and budget >= 0):
        raise CompileError(f"budget={repr_of(budget)} is no time: give seconds, 0 to compile no candidate")
    if isinstance(compiles, bool) or not (compiles is None or (isinstance(compiles, int) and compiles >= 0)):
        raise CompileError(f"compiles={repr_of(compiles)} is no number of candidates: give 0 or more, or None")


def _audited(subject: Subject, donated: frozenset[int]) -> tuple[tuple[Unsafe, ...], frozenset[int]]:
    """What is unsafe, and the leaves to search: those chosen; else those that the function donates, and what a free
    result would take and is not unsafe."""
    signature, values = subject.signature, subject.origin.values()
    chosen = safety.audit_arrays(signature, values, donated)
    if donated and donated != frozenset(leaf.index for leaf in signature.arguments if leaf.donated):
        return chosen, donated
    own = subject.origin.decide(donated) if donated else NOTHING
    nothing = frozenset[int]()
    now, _ = decisions.verdicts(signature, own, donated=donated, warned=nothing, replaced=subject.replaced or {})
    candidates = frozenset(one.index for one in decisions.candidates(now))
    unsafe = (*chosen, *safety.audit_arrays(signature, values, candidates))
    if subject.replaced is not None:
        certain = {leaf for one in unsafe for leaf in one.leaves}
        unsafe += safety.passed_again(signature, subject.replaced, candidates - certain)
    safe = candidates - {leaf for one in unsafe for leaf in one.leaves}
    donation = subject.origin.decide(donated | safe)
    warned = subject.origin.warned(donated | safe, donation)
    arguments, _ = decisions.verdicts(signature, donation, donated=donated | safe, warned=warned)
    taken = {one.index for one in arguments if one.verdict is Verdict.ALIASED or one.advised is not None}
    return unsafe, donated | (taken & safe)


def _space(subject: Subject, jax: Donation, leaves: frozenset[int], interference: Interference | None) -> Space:
    signature = subject.signature
    classes = find_classes(signature, _positions(subject, leaves)) if interference is not None else ()
    results_of = {argument: one.results for one in classes for argument in one.arguments}
    # of other classes, as where one device's part is the same and the whole is not: JAX's pair stays
    fixed = {a: r for a, r in jax.aliases.items() if r not in results_of.get(a, ())}
    left = (one.without(fixed.keys(), frozenset(fixed.values())) for one in classes)
    classes = tuple(one for one in left if one.most)
    members = {argument for one in classes for argument in one.arguments}
    promise = None if interference is None else Promise(interference, classes)
    return Space(classes, promise, fixed, jax.donors - members)


def _positions(subject: Subject, leaves: frozenset[int]) -> frozenset[int]:
    arguments = subject.signature.arguments
    return frozenset(leaf.position for leaf in arguments if leaf.index in leaves and leaf.position is not None)


def _across_types(subject: Subject, space: Space, best: Donation, leaves: frozenset[int], search: Search) -> str | None:
    """What pairs of other shape or dtype would save besides the best; None where that is nothing."""
    if space.promise is None:
        return None
    aliases = space.promise.across_types(subject.signature, _positions(subject, leaves), best.aliases)
    added = sorted(aliases.items() - best.aliases.items())
    if not added:
        return None
    wider = Donation(aliases, frozenset(best.donors - aliases.keys()))
    search.also("across types", wider)
    across, total = search.total(wider), search.total(best)
    if across is None or total is None or across >= total:
        return None
    results = {leaf.position: leaf.path for leaf in subject.signature.results}
    first = ", ".join(f"{subject.argument_paths[a]} → {results[r]}" for a, r in added[:_SHOWN_CHANGES])
    more = f", {len(added) - _SHOWN_CHANGES} more" if len(added) > _SHOWN_CHANGES else ""
    return (
        f"{format_bytes(total - across)} less would be taken with pairs of other shape or dtype, which no JAX API "
        f"makes: {first}{more}."
    )


class _Names:
    """Pairings in the user's words: what is other than in JAX's own."""

    def __init__(self, subject: Subject, space: Space, jax: Donation) -> None:
        self._subject, self._space = subject, space
        self._jax = dict(jax.aliases)
        self._live_range = None if space.promise is None else frozenset(space.promise.by_live_range().items())
        self._given: set[str] = set()

    def __call__(self, pairs: Pairs) -> str:
        """A name that no other pairing has."""
        name = "donate-by-live-range" if pairs == self._live_range else self._differences(dict(pairs))
        if name in self._given:
            name = f"{name} (no. {len(self._given) + 1})"
        self._given.add(name)
        return name

    def _differences(self, pairs: Mapping[int, int]) -> str:
        results = {leaf.position: leaf.path for leaf in self._subject.signature.results}
        changed = [
            f"{path} kept" if position not in pairs else f"{path} → {results[pairs[position]]}"
            for position, path in self._subject.argument_paths.items()
            if position not in self._space.aliases and pairs.get(position) != self._jax.get(position)
        ]
        more = f", {len(changed) - _SHOWN_CHANGES} more" if len(changed) > _SHOWN_CHANGES else ""
        return f"jax, but {', '.join(changed[:_SHOWN_CHANGES])}{more}"

    def candidate(self, name: str, donation: Donation, search: Search) -> Candidate:
        """What was compiled, by flat index."""
        arguments, results = self._subject.leaf_of_argument, self._subject.leaf_of_result
        pairs = {
            arguments[a]: results[r] for a, r in sorted(donation.aliases.items()) if a in arguments and r in results
        }
        donated = frozenset(arguments[position] for position in donation.positions if position in arguments)
        return Candidate(name, pairs, donated, search.total(donation), search.fits(donation))
