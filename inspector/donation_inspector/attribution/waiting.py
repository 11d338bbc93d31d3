"""Donated buffers that hold nothing at the peak, while a temporary of the same size has memory of its own.

A donated argument's buffer is its result's in the end. What is computed from it in between, and is read by something
else before that result is written, gets memory of its own: a whole copy more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from donation_inspector.attribution.describe import at, primitive
from donation_inspector.attribution.peak import Contributor, Peak
from donation_inspector.attribution.role import Role
from donation_inspector.units import format_bytes

_WORTH = 0.1
"""The share of the peak from which on it is told."""

_EMPTY = 0.99
"""The share of a buffer that is as good as all of it: XLA puts a loop's counter or the like into one that is empty."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An argument whose buffer waits for its result at the peak; `beside` is the temporary that would fit there."""

    path: str
    beside: Contributor


def find_waiting(peak: Peak, donated: Collection[str]) -> tuple[Waiting, ...]:
    """Each of the donated arguments whose buffer waits, with a temporary of its own; most bytes first."""
    temporaries = [one for one in peak.contributors if one.buffer is not None and one.path is None]
    found: list[Waiting] = []
    for idle in peak.contributors:
        if idle.role is not Role.IDLE_ARGUMENTS or idle.path not in donated or idle.nbytes < _WORTH * peak.nbytes:
            continue
        beside = next((one for one in temporaries if _EMPTY * one.nbytes <= idle.nbytes <= one.nbytes), None)
        if beside is not None and idle.path is not None:
            temporaries.remove(beside)
            found.append(Waiting(idle.path, beside))
    return tuple(found)


def sentence(waiting: Waiting) -> str:
    """Which buffer waits and what lies beside it, with what may avoid it."""
    beside = waiting.beside
    what = " at ".join(word for word in (primitive(beside.op_name), at(beside.source)) if word) or "a temporary"
    return (
        f"{waiting.path}'s buffer is empty then and waits for its result, while {what} takes "
        f"{format_bytes(beside.nbytes)} of its own, which XLA does not update in place. Two jitted functions, split "
        "behind that value and donating each, may do without."
    )
