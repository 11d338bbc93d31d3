"""What every child process does first and last: reads its job, tells events, dies with its parent. Imports no JAX."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from donation_inspector.xla import memory
from donation_inspector.xla.protocol import Done, encode

_undisturbed = threading.Lock()
_TO_START = 1 << 30
"""The address space that JAX and its libraries are mapped into."""


def main(worker: str, job_fd: int, events_fd: int) -> None:
    """Have the module `worker` do the job in the file `job_fd` and write its events to the pipe `events_fd`."""
    # a parent may have it ignored, which children inherit
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # before all that takes time to import
    threading.Thread(target=_die_with_parent, daemon=True).start()
    memory.prefer_as_victim()
    memory.demand_address_space(_TO_START)
    import_module(worker).main(job_fd, events_fd)


def serve(job_fd: int, events_fd: int, work: Callable[[Any, Callable[[object], None]], None]) -> None:
    """Does `work(job, tell)` with the job in the file `job_fd`; `tell` writes an event to the pipe `events_fd`."""
    with os.fdopen(job_fd, "rb") as file, os.fdopen(events_fd, "wb", buffering=0) as pipe:
        # the parent shares the file's position, and has just written
        file.seek(0)
        job = pickle.load(file)

        def tell(event: object) -> None:
            data = memoryview(encode(event))
            while data:
                data = data[pipe.write(data) :]

        work(job, tell)
        tell(Done())


@contextmanager
def undisturbed() -> Generator[None]:
    """What must not be cut off in the middle, as a file of the user's: the end of this process waits for it.

    In the main thread, and for moments alone: a parent that ends its child waits a second before it kills it.
    """
    with _undisturbed:
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)


def _die_with_parent() -> None:
    # not sys.stdin: its lock, held by this thread, would abort the interpreter's exit
    os.read(0, 1)
    with _undisturbed:
        os.killpg(0, signal.SIGKILL)
