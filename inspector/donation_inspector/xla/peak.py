"""In the child: the memory that one call takes, as the operating system sees it.

A call's peak is the process's highest resident memory during the call (VmHWM, reset just before it) above its resident
memory while no buffer of the program exists. Two things would blur that by tens of megabytes, and are held still:

* The runtime lets go of buffers a moment after a call has finished. The baseline is read once it stays the same, and
  the lowest one of all runs counts.
* Compiled code takes work space from malloc while it runs (a matrix multiplication of 2048 x 2048 packs its operands
  in 11 MB) that XLA's own figures leave out. malloc is told to keep what it frees below a size that no large buffer of
  the program has, so that after another call this space is part of the baseline, and is reported as `workspace`.
  Where malloc then holds so much that one of the program's buffers could be in it, this is given up: all that malloc
  can give back is given back before each call, and the peak contains the work space.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence

from donation_inspector.xla import memory

_SETTLED_SECONDS = 0.06
_PATIENCE_SECONDS = 2.0
_SLACK = 64 * 1024
_SMALL_SHARE = 0.005
_SMALLEST_LIMIT = 1024 * 1024


def settled(at_most: int | None, *, trim: bool) -> int | None:
    """Resident bytes once they stay the same and, where given, are at most `at_most`; None where unknown.

    Waits two seconds at most. `trim` gives freed memory back to the system first.
    """
    gc.collect()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    since = time.monotonic()
    last: int | None = None
    while True:
        if trim:
            memory.trim()
        now = memory.resident()
        if now is None:
            return None
        if last is None or now < last - _SLACK:
            since = time.monotonic()
        last = now if last is None else min(now, last)
        steady = time.monotonic() - since >= _SETTLED_SECONDS
        if time.monotonic() >= deadline or (steady and (at_most is None or now <= at_most + _SLACK)):
            return now
        time.sleep(_SETTLED_SECONDS / 10)


def workspace_limit(sizes: Sequence[int]) -> int | None:
    """The size below which freed memory may be kept: buffers smaller than it are at most 0.5 % of all bytes.

    None where the program's buffers are so small that they could not be told from work space.
    """
    small = 0
    budget = _SMALL_SHARE * sum(sizes)
    for size in sorted(sizes):
        small += size
        if small > budget:
            return size if size >= _SMALLEST_LIMIT else None
    return None


class Meter:
    """Baselines of the calls in this process."""

    def __init__(self) -> None:
        self.baseline: int | None = None
        self.workspace: int | None = None

    def learn_workspace(self, sizes: Sequence[int], call: Callable[[], object]) -> None:
        """Make the work space of `call` part of the baseline, where the program's buffers (`sizes`) allow it."""
        limit = workspace_limit(sizes)
        before = settled(None, trim=True)
        if limit is None or before is None or not memory.keep_freed(below=limit):
            return
        call()
        after = settled(None, trim=False)
        if after is not None and after - before < limit:
            self.baseline, self.workspace = after, max(0, after - before)
        else:
            memory.keep_freed(below=0)

    def rest(self) -> None:
        """Wait until no buffer is alive; to be called before the inputs of a call are made."""
        now = settled(self.baseline, trim=self.workspace is None)
        if now is not None:
            self.baseline = now if self.baseline is None else min(now, self.baseline)

    def start(self) -> bool:
        """Count the peak from here, the inputs included; False where the system cannot."""
        if self.workspace is None:
            memory.trim()
        return memory.reset_peak()
