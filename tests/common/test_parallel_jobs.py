"""Several at once: no more than there are places for, whoever asks."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from donation_inspector.common import parallel_jobs
from donation_inspector.common.progress import Progress


def test_two_who_ask_at_the_same_time_share_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_jobs, "workers", lambda: 2)
    monkeypatch.setattr(parallel_jobs, "_PLACES", threading.BoundedSemaphore(2))
    running, most, lock = [0], [0], threading.Lock()

    def job(told: Progress, _stop: threading.Event) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.05)
        with lock:
            running[0] -= 1
        told(1, 1, "done")

    said: list[int] = []
    with ThreadPoolExecutor(2) as askers:
        for _ in range(2):
            askers.submit(parallel_jobs.run_together, [job] * 4, 4, lambda step, *_: said.append(step))
    assert most[0] == 2
    assert sorted(said) == [1, 1, 2, 2, 3, 3, 4, 4]
