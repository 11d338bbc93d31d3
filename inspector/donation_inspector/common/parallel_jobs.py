"""Several pieces of long work at once, each in a thread that waits for its own child process."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from donation_inspector.common.interrupts import held
from donation_inspector.common.progress import Progress

_T = TypeVar("_T")
_POLL_SECONDS = 0.05
Job = Callable[[Progress, threading.Event], _T]
"""Work that tells its progress, and ends early once the event is set."""


def workers() -> int:
    """How many pieces of work go on at once: as many as there are cores for this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_PLACES = threading.BoundedSemaphore(workers())
"""For all who ask at the same time, as a cell and a widget."""


def run_together(
    jobs: Sequence[Job[_T]], steps: int, progress: Progress, cancel: threading.Event | None = None
) -> list[_T]:
    """What every job gives. Each thing that one of them says is one of the `steps`.

    On Ctrl-C, and on whatever else goes wrong, all are told to end, and it is raised once they did.
    """
    stop = threading.Event() if cancel is None else cancel
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    with held(lambda: ThreadPoolExecutor(workers()), ThreadPoolExecutor.shutdown) as pool:
        running = [pool.submit(_in_its_place, job, _heard(said), stop) for job in jobs]
        try:
            done = 0
            # Only this thread speaks: a notebook takes output from the one that it called.
            while not (finished := all(one.done() for one in running)) or not said.empty():
                try:
                    label = said.get(timeout=0 if finished else _POLL_SECONDS)
                except queue.Empty:
                    continue
                done += 1
                progress(done, steps, label)
        except BaseException:
            stop.set()
            raise
    return [one.result() for one in running]


def _in_its_place(job: Job[_T], progress: Progress, stop: threading.Event) -> _T:
    while not _PLACES.acquire(timeout=_POLL_SECONDS):
        if stop.is_set():
            return job(progress, stop)
    try:
        return job(progress, stop)
    finally:
        _PLACES.release()


def _heard(said: queue.SimpleQueue[str]) -> Progress:
    return lambda _done, _all, label: said.put(label)
