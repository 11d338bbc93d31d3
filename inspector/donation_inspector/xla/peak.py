"""The memory that one call takes: as the operating system sees it on a CPU, as the runtime counts it elsewhere.

On a CPU, in a process of its own, a call's peak is the process's highest resident memory during the call (VmHWM, reset
just before it) above its resident memory while no buffer of the program exists. Two things would blur that by tens of
megabytes, and are held still:

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
from typing import Any, Protocol

from donation_inspector.common.units import total_bytes
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


class Meter(Protocol):
    """What one call takes, above what the process holds while no buffer of the program exists."""

    baseline: int | None
    """The lowest so far, in bytes; None where the system cannot tell."""
    workspace: int | None
    """What calls take besides their buffers, where that is part of the baseline; None where it is not told apart."""

    def learn_workspace(self, sizes: Sequence[int], call: Callable[[], object]) -> None:
        """Make the work space of `call` part of the baseline, where the program's buffers (`sizes`) allow it."""
        ...

    def rest(self) -> None:
        """Wait until no buffer is alive; to be called before the inputs of a call are made."""
        ...

    def start(self) -> bool:
        """Count the peak from here, the inputs included; False where the system cannot."""
        ...

    def highest(self) -> int | None:
        """The most bytes held at once since `start`; None where it is not known."""
        ...


class DeviceMeter:
    """By the runtime's own count (`memory_stats`) of the devices' memory, all of them together.

    Its peak is the process's highest ever and cannot be reset: it is this program's only where it is higher than what
    was there when the meter was made.
    """

    def __init__(self, devices: Sequence[Any]) -> None:
        self._devices = devices
        self._before = self._peak()
        self.baseline: int | None = None
        self.workspace: int | None = None

    def learn_workspace(self, sizes: Sequence[int], call: Callable[[], object]) -> None:
        """The runtime counts buffers, and nothing besides."""

    def rest(self) -> None:
        """Read what other arrays of the process hold."""
        gc.collect()
        held = self._sum("bytes_in_use")
        if held is not None:
            self.baseline = held if self.baseline is None else min(held, self.baseline)

    def start(self) -> bool:
        """Whether the runtime counts."""
        return self._before is not None

    def highest(self) -> int | None:
        """The devices' highest ever; None where it was as high before."""
        now = self._peak()
        return None if now is None or self._before is None or now <= self._before else now

    def _peak(self) -> int | None:
        held = self._sum("peak_bytes_in_use")
        # A TPU's runtime counts what it sets aside for a program apart.
        return None if held is None else held + (self._sum("peak_bytes_reserved") or 0)

    def _sum(self, name: str) -> int | None:
        stats: list[dict[str, int]] = [device.memory_stats() or {} for device in self._devices]
        return total_bytes(one.get(name) for one in stats)


class ResidentMeter:
    """By the operating system's count of the process's resident memory, on a CPU."""

    def __init__(self) -> None:
        self.baseline: int | None = None
        self.workspace: int | None = None

    def learn_workspace(self, sizes: Sequence[int], call: Callable[[], object]) -> None:
        """See `Meter`; a second call tells the work space from buffers."""
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
        """Wait until the resident memory stays the same."""
        now = settled(self.baseline, trim=self.workspace is None)
        if now is not None:
            self.baseline = now if self.baseline is None else min(now, self.baseline)

    def start(self) -> bool:
        """Reset the process's peak; False where the system does not offer it."""
        if self.workspace is None:
            memory.trim()
        return memory.reset_peak()

    def highest(self) -> int | None:
        """The process's peak since `start`."""
        return memory.peak()
