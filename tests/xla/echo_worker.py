"""A child's work that needs neither JAX nor time: it says its job back, or ends in the way that its job says."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from donation_inspector.xla.serving import serve


def main(job_fd: int, events_fd: int) -> None:
    """As every worker."""
    serve(job_fd, events_fd, _do)


def _do(job: object, tell: Callable[[object], None]) -> None:
    match job:
        case "sleep":
            tell("asleep")
            time.sleep(60)
        case "segv":
            os.kill(os.getpid(), signal.SIGSEGV)
        case str() if job.startswith("raise "):
            raise {"MemoryError": MemoryError, "ImportError": ImportError}[job.split()[1]](job.split(" ", 2)[2])
        case _:
            tell(job)
