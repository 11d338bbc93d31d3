"""Compiles pairings in the order of promise until all are compiled, nothing gets better, or the budget is over."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from donation_inspector.analysis.neighbours import EqualBuffers, Promise, count_pairings
from donation_inspector.common.parallel_jobs import workers
from donation_inspector.common.signature import Donation
from donation_inspector.program.subject import donation_key
from donation_inspector.questions.compare.ask import (
    compile_donations,
    compile_handed_over,
    known,
    known_handed_over,
)

if TYPE_CHECKING:
    from donation_inspector.common.progress import Progress
    from donation_inspector.program.as_generated import HandedOver
    from donation_inspector.program.subject import Subject
    from donation_inspector.xla.results import Compiled
    from donation_inspector.xla.targets import Target

_ALL_UP_TO = 64
"""So many pairings are all compiled where no number of compiles is given."""
_FIRST_ROUND, _ROUND = 4, 8
_PATIENCE = 2
"""Rounds of neighbours in which nothing got better, until the search ends."""

Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Space:
    """All pairings within the classes. `aliases` and `donors`, what JAX makes of other arguments, stay in each.

    `promise` is None where nothing is known of what may share a buffer; there are no classes then.
    """

    classes: tuple[EqualBuffers, ...]
    promise: Promise | None
    aliases: Mapping[int, int]
    donors: frozenset[int]

    def donation(self, pairs: Pairs) -> Donation:
        """A pairing as it is compiled."""
        return Donation({**self.aliases, **dict(pairs)}, self.donors)

    def pairs(self, donation: Donation) -> Pairs | None:
        """The pairing that a donation is; None for one that is not in here."""
        pairs = frozenset(donation.aliases.items() - self.aliases.items())
        if len({result for _, result in pairs}) < len(pairs):
            # a file may contradict itself
            return None
        return pairs if donation_key(self.donation(pairs)) == donation_key(donation) else None


class Search:
    """One search: `tried` are the pairings compiled besides none and JAX's own, in order, with their names."""

    def __init__(
        self,
        subject: Subject,
        target: Target,
        jax: Donation,
        space: Space,
        name_of: Callable[[Pairs], str],
        progress: Progress,
        cancel: threading.Event | None,
    ) -> None:
        self.jax, self.space = jax, space
        self.tried: dict[Pairs, str] = {}
        self.exhaustive = False
        self._subject, self._target, self._name_of = subject, target, name_of
        self._progress, self._cancel = progress, cancel
        self._steps = 0
        self._deadline = math.inf
        self._ended: str | None = None
        self._stopped = False
        self._why_not: str | None = None
        self._baselines = {pairs for one in (subject.undonated, jax) if (pairs := space.pairs(one)) is not None}

    def total(self, donation: Donation) -> int | None:
        """XLA's total in bytes a device; None where it made no module, or was not asked."""
        result = known(self._subject, donation, self._target)
        return None if result is None or result.memory is None else result.memory.total

    def fits(self, donation: Donation) -> bool | None:
        """Whether a device has the memory for it; None where its total or the capacity is unknown."""
        result = known(self._subject, donation, self._target)
        return None if result is None else self.has_room(result)

    def has_room(self, result: Compiled) -> bool | None:
        """The same of what XLA made."""
        if result.status == "does not fit":
            return False
        capacity = self.capacity
        return None if result.memory is None or not capacity else result.memory.total <= capacity

    @property
    def capacity(self) -> int | None:
        """Bytes that one device of the target has for a program, as asked for or as XLA says; None where unknown."""
        results = (known(self._subject, donation, self._target) for donation in (self.jax, self._subject.undonated))
        said = (result.capacity for result in results if result is not None)
        return self._target.capacity or next(filter(None, said), None)

    @property
    def size(self) -> int:
        """How many different donations there are in all, none and JAX's own among them."""
        others = len({donation_key(self._subject.undonated), donation_key(self.jax)}) - len(self._baselines)
        return count_pairings(self.space.classes) + others

    @property
    def searched(self) -> str:
        """What was done, in words."""
        if self._why_not:
            return f"not searched: {self._why_not}"
        if self.exhaustive:
            return f"best of all {self.size}"
        if not self.tried:
            return f"not searched: {self._ended or 'no candidate was asked for'}"
        return f"best of {len(self.tried)} tried" + (f", {self._ended}" if self._ended else "")

    def run(self, budget: float, compiles: int | None, now: Mapping[str, Donation]) -> None:
        """Compile none, JAX's own and `now`, then candidates: for `budget` seconds, `compiles` of them at most."""
        self._compile({"none": self._subject.undonated, "jax": self.jax, **now}, hlo=True)
        promise, untried = self.space.promise, count_pairings(self.space.classes) - len(self._baselines)
        seconds = self._seconds()
        if promise is None:
            self._why_not = "the function is not one block that returns"
        elif self._ended or compiles == 0:
            return
        elif untried == 0:
            self.exhaustive = True
        elif seconds >= budget:
            self._why_not = f"one compile takes {seconds:.{0 if seconds >= 10 else 1}f} s"
        else:
            self._deadline, over = time.monotonic() + budget, f"the {budget:g} s are over"
            most = math.inf if compiles is None else compiles
            few = untried <= (_ALL_UP_TO if compiles is None else compiles)
            if few and untried * seconds <= budget * workers():
                self._try(map(_frozen, promise.ranked()), untried, over)
                self.exhaustive = len(self.tried) == untried
            else:
                self._climb(promise, most, over)

    def also(self, name: str, donation: Donation) -> None:
        """Compile one that is no candidate, where the search went through."""
        if not self._ended and not self._why_not:
            self._compile({name: donation})

    def handed_over(self, given: HandedOver) -> Compiled | None:
        """The program as a line of code gives it to JAX; None where that is not known, as after a stop."""
        if self._stopped:
            return known_handed_over(self._subject, given, self._target)
        before, self._steps = self._steps, self._steps + 1

        def told(done: int, _steps: int, label: str) -> None:
            self._progress(before + done, self._steps, label)

        with self._stopping():
            return compile_handed_over(self._subject, given, self._target, progress=told, cancel=self._cancel)
        return None

    def _seconds(self) -> float:
        """What one compile takes, by those made so far."""
        made = [known(self._subject, donation, self._target) for donation in (self._subject.undonated, self.jax)]
        return max((one.seconds or 0 for one in made if one is not None), default=0)

    def _climb(self, promise: Promise, most: float, over: str) -> None:
        """From round to round the neighbours of the best so far."""
        first = promise.by_live_range()
        starts = map(_frozen, itertools.chain([first, promise.cheapest()], promise.neighbours(first)))
        self._try(starts, min(_FIRST_ROUND, most), over)
        waited = 0
        while not self._ended and waited < _PATIENCE and len(self.tried) < most:
            before, tried = self._best(), len(self.tried)
            self._try(self._nearby(promise), min(_ROUND, most - len(self.tried)), over)
            if len(self.tried) == tried:
                return
            waited = 0 if self._best() < before else waited + 1

    def _best(self) -> float:
        return min(map(self._rank, {*self._baselines, *self.tried}), default=math.inf)

    def _rank(self, pairs: Pairs) -> float:
        total = self.total(self.space.donation(pairs))
        return math.inf if total is None else total

    def _nearby(self, promise: Promise) -> Iterator[Pairs]:
        """Those around the best, then those around the next."""
        for pairs in sorted([*self._baselines, *self.tried], key=self._rank):
            yield from map(_frozen, promise.neighbours(dict(pairs)))

    def _try(self, pairings: Iterable[Pairs], most: float, over: str) -> None:
        """Compile the first few that were not tried."""
        names: dict[Pairs, str] = {}
        for pairs in pairings:
            if len(names) >= most:
                break
            if pairs not in self._baselines and pairs not in self.tried and pairs not in names:
                names[pairs] = self._name_of(pairs)
        self._compile({name: self.space.donation(pairs) for pairs, name in names.items()})
        if self._ended is None and time.monotonic() >= self._deadline:
            self._ended = over
        for pairs, name in names.items():
            # One whose compile kills the process was tried as well, unless it was ended from here.
            if self._ended is None or known(self._subject, self.space.donation(pairs), self._target) is not None:
                self.tried[pairs] = name

    def _compile(self, donations: Mapping[str, Donation], *, hlo: bool = False) -> None:
        before, self._steps = self._steps, self._steps + len(donations)

        def told(done: int, _steps: int, label: str) -> None:
            self._progress(before + done, self._steps, label)

        left = None if math.isinf(self._deadline) else max(0.0, self._deadline - time.monotonic())
        with self._stopping():
            compile_donations(
                self._subject, donations, self._target, progress=told, cancel=self._cancel, timeout=left, hlo=hlo
            )

    @contextmanager
    def _stopping(self) -> Generator[None]:
        """Ctrl-C and `cancel` end the search, not the answer."""
        try:
            yield
        except KeyboardInterrupt:
            self._ended, self._stopped = "interrupted", True
        if not self._stopped and self._cancel is not None and self._cancel.is_set():
            self._ended, self._stopped = "cancelled", True


def _frozen(pairing: Mapping[int, int]) -> Pairs:
    return frozenset(pairing.items())
