"""AnswerCache: the one place where answers are kept, keyed by question, and bounded.

There are three. What is asked of one program, as it is donated, dies with that program (`Subject.answers`). What XLA
made of a module is kept by the module's own content for as long as the process lives (`COMPILED`): the same cell run
again makes another program of the same content. Executables, for `measure`, lie on disk without a name (`EXECUTABLES`).
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sized
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from donation_inspector.xla.kept_executable import KeptExecutable
from donation_inspector.xla.results import Compiled

T = TypeVar("T")


@dataclass(frozen=True)
class Question(Generic[T]):
    """What an answer of type T is kept under; each kind of question is a subclass with the fields that tell it."""


@dataclass(frozen=True)
class CompiledContent(Question[Compiled]):
    """What XLA makes of a program of this content (`xla.program.fingerprint`)."""

    fingerprint: str


@dataclass(frozen=True)
class ExecutableOf(Question[KeptExecutable]):
    """The executable that XLA made of a program of this content, ready to be loaded by another process."""

    fingerprint: str


class AnswerCache:
    """Answers by question. Those that were asked for longest ago go once all together are too many, or too large.

    The size of an answer is that of the `parts` that it is put in with, in bytes; a part that several answers share
    counts once. An answer is never refused for its size: it stays until the next one comes. Any thread may ask.
    """

    def __init__(self, limit: int, most: int = 4096) -> None:
        """`limit` is in bytes, `most` in answers."""
        self._limit, self._most = limit, most
        self._answers: OrderedDict[Question[Any], tuple[Any, tuple[Sized, ...]]] = OrderedDict()
        self._holders: Counter[int] = Counter()
        self._lock = threading.RLock()
        self.nbytes = 0

    def get(self, question: Question[T]) -> T | None:
        """The answer, None where there is none any more, or never was."""
        with self._lock:
            if question not in self._answers:
                return None
            self._answers.move_to_end(question)
            return cast(T, self._answers[question][0])

    def put(self, question: Question[T], answer: T, *parts: Sized) -> None:
        """Keep an answer in place of an earlier one."""
        with self._lock:
            self.drop(question)
            self._answers[question] = answer, parts
            for part in parts:
                self._holders[id(part)] += 1
                if self._holders[id(part)] == 1:
                    self.nbytes += len(part)
            while len(self._answers) > 1 and (self.nbytes > self._limit or len(self._answers) > self._most):
                self.drop(next(iter(self._answers)))

    def drop(self, question: Question[Any]) -> None:
        """Forget an answer; nothing where there is none."""
        with self._lock:
            _, parts = self._answers.pop(question, (None, ()))
            for part in parts:
                self._holders[id(part)] -= 1
                if self._holders[id(part)] == 0:
                    del self._holders[id(part)]
                    self.nbytes -= len(part)

    def of_kind(self, kind: type[Question[T]]) -> Iterator[tuple[Any, T]]:
        """The questions of one kind with their answers, the one asked for longest ago first."""
        with self._lock:
            found = [(question, answer) for question, (answer, _) in self._answers.items()]
        return ((question, answer) for question, answer in found if isinstance(question, kind))

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._answers.clear()
            self._holders.clear()
            self.nbytes = 0


COMPILED = AnswerCache(256 << 20)
"""What XLA made of modules, by content: a HloProto counts with its bytes, and is read to about eight times these."""
EXECUTABLES = AnswerCache(1 << 30, most=64)
"""Executables on disk, by content."""
