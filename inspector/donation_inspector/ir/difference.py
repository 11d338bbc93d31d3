"""The difference between two pretty texts by operation: what only the numbering of values changed is no difference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|(%[\w$.-]+)([#:]\d+)?')
_DEFINITIONS = re.compile(r"\s*(%[\w$.-]+(?::\d+)?(?:, %[\w$.-]+(?::\d+)?)*) = ")
_FARTHEST = 2000
"""Edits that are looked for: beyond, the differing middle counts as replaced."""


@dataclass(frozen=True, slots=True)
class Change:
    """One operation that differs. Lines count from 0; what a side doesn't have is None."""

    kind: Literal["added", "removed", "changed"]
    before_line: int | None
    after_line: int | None
    before: str | None
    after: str | None


def difference(before: Sequence[str], after: Sequence[str]) -> tuple[Change, ...]:
    """What to do to `before` to get `after`, in order.

    An operation that is there in both, with other operands or attributes, is "changed".
    """
    keys: dict[str, int] = {}
    left = [keys.setdefault(_shape(line), len(keys)) for line in before]
    right = [keys.setdefault(_shape(line), len(keys)) for line in after]
    changes: list[Change] = []
    names = _Names()
    line, other = 0, 0
    for mine, theirs in [*_matches(left, right), (len(before), len(after))]:
        changes += _replaced(before, after, range(line, mine), range(other, theirs), names)
        if mine < len(before) and not names.agree(before[mine], after[theirs]):
            changes.append(Change("changed", mine, theirs, before[mine], after[theirs]))
        line, other = mine + 1, theirs + 1
    return tuple(changes)


def _shape(line: str) -> str:
    return _NAME.sub(lambda found: "%" if found.group(1) else found.group(), line)


def _replaced(before: Sequence[str], after: Sequence[str], gone: range, new: range, names: _Names) -> Iterator[Change]:
    """Pairs what stands in one gap by the operation's name; the rest is removed and added."""
    line, other = gone.start, new.start
    while line in gone and other in new and _operation(before[line]) == _operation(after[other]):
        names.agree(before[line], after[other])
        yield Change("changed", line, other, before[line], after[other])
        line, other = line + 1, other + 1
    yield from (Change("removed", index, None, before[index], None) for index in range(line, gone.stop))
    yield from (Change("added", None, index, None, after[index]) for index in range(other, new.stop))


def _operation(line: str) -> str:
    words = _DEFINITIONS.sub("", line).split(None, 1)
    return re.split(r"[(<]", words[0])[0].strip('"') if words else ""


class _Names:
    """Which value of one text stands for which of the other, so far in the order of the lines."""

    def __init__(self) -> None:
        self._forth: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def agree(self, before: str, after: str) -> bool:
        """Whether the two lines use values that stand for each other; what they define from now on does."""
        if before == after and "%" not in before:
            return True
        (defined, used), (defined_after, used_after) = _values(before), _values(after)
        same = len(defined) == len(defined_after) and len(used) == len(used_after)
        # a loop's arguments stand between the values that they start from
        for (mine, part), (theirs, other_part) in zip(used, used_after, strict=False):
            forth, back = self._forth.setdefault(mine, theirs), self._back.setdefault(theirs, mine)
            same = same and forth == theirs and back == mine and part == other_part
        for mine, theirs in zip(defined, defined_after, strict=False):
            self._forth[mine], self._back[theirs] = theirs, mine
        return same


def _values(line: str) -> tuple[list[str], list[tuple[str, str]]]:
    """The values that a line defines (results, arguments of blocks), and those that it uses with the part of a pack."""
    results = _DEFINITIONS.match(line)
    end_of_results = results.end() if results else 0
    defined: list[str] = []
    used: list[tuple[str, str]] = []
    for found in _NAME.finditer(line):
        name = found.group(1)
        if name is None:
            continue
        if found.start() < end_of_results or line.startswith((": ", " = "), found.end()):
            defined.append(name)
        else:
            used.append((name, found.group(2) or ""))
    return defined, used


def _matches(left: Sequence[int], right: Sequence[int]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence, in order (Myers, "An O(ND) Difference Algorithm", 1986)."""
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    pairs = [(index, index) for index in range(start)]
    middle = _shortest_edit(left[start : len(left) - end], right[start : len(right) - end])
    pairs += [(start + mine, start + theirs) for mine, theirs in middle]
    return pairs + [(len(left) - index, len(right) - index) for index in range(end, 0, -1)]


def _shortest_edit(left: Sequence[int], right: Sequence[int]) -> list[tuple[int, int]]:
    width, height = len(left), len(right)
    limit = min(width + height, _FARTHEST)
    zero = limit + 1
    # farthest[zero + k] is how far in `left` a path of so many edits gets on the diagonal k = x - y
    farthest = [0] * (2 * zero + 1)
    trace: list[list[int]] = []
    for edits in range(limit + 1):
        trace.append(farthest[zero - edits - 1 : zero + edits + 2])
        for diagonal in range(-edits, edits + 1, 2):
            below, above = farthest[zero + diagonal - 1], farthest[zero + diagonal + 1]
            x = above if diagonal == -edits or (diagonal != edits and below < above) else below + 1
            y = x - diagonal
            while x < width and y < height and left[x] == right[y]:
                x += 1
                y += 1
            farthest[zero + diagonal] = x
            if x >= width and y >= height:
                return _walk_back(trace, width, height)
    return []


def _walk_back(trace: list[list[int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, 0, -1):
        farthest, middle, diagonal = trace[edits], edits + 1, x - y
        below, above = farthest[middle + diagonal - 1], farthest[middle + diagonal + 1]
        down = diagonal == -edits or (diagonal != edits and below < above)
        start = above if down else below
        start_y = start - (diagonal + 1 if down else diagonal - 1)
        while x > start and y > start_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = start, start_y
    pairs += [(index, index) for index in range(x - 1, -1, -1)]
    return pairs[::-1]
