"""How much work something is, counted and not timed: the same on every machine, however busy it is."""

import sys
from collections.abc import Callable
from math import log
from types import FrameType
from typing import Any


def lines_run(work: Callable[[], Any]) -> int:
    """The lines of Python that `work` runs in this thread, each turn of a loop or of a comprehension anew."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:  # noqa: ARG001
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(lines_at: Callable[[int], int], size: int) -> float:
    """The exponent with which the work grows from `size` over twice to four times that: 1 is linear, 2 is quadratic.

    What does not depend on the size falls out, as it is in all three counts.
    """
    small, middle, large = (lines_at(size * factor) for factor in (1, 2, 4))
    return log((large - middle) / (middle - small), 2)
