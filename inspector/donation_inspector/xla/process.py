"""One child process with its own process group: started, listened to, and ended whatever happens.

The child is a fresh interpreter (never a fork, never the user's `__main__`), with this interpreter's `sys.path` and an
environment from which everything that steers JAX or XLA is taken out. It gets its job in an unnamed file, answers
through a pipe of its own, and dies with its parent. POSIX only.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit
from typing import IO

from donation_inspector.common.interrupts import held
from donation_inspector.common.units import format_bytes
from donation_inspector.machine import system
from donation_inspector.xla.memory import out_of_memory_kills
from donation_inspector.xla.program import Program
from donation_inspector.xla.protocol import Decoder, Done, Event
from donation_inspector.xla.results import Status
from donation_inspector.xla.targets import PLATFORMS

_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from donation_inspector.xla import serving; "
    "serving.main(sys.argv[4], int(sys.argv[2]), int(sys.argv[3]))"
)
WORKER = "donation_inspector.xla.worker"
_POLL_MILLISECONDS = 50
_GRACE_SECONDS = 1.0
_STDERR_BYTES = 4000
_STDERR_LINES = 12
_NO_MEMORY = re.compile(
    r"MemoryError|bad_alloc|out of memory|[Cc]annot allocate memory|failed to map segment|can't start new thread"
    r"|pthread_create.*(?:failed|unavailable)|allocation of \d+ bytes|[Rr]esource temporarily unavailable"
)
_DEVICE_COUNT_FLAG = re.compile(r"--xla_force_host_platform_device_count=\S*")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a child ended before it was done."""

    status: Status
    error: str


def environment(program: Program) -> dict[str, str]:
    """The environment of a child that compiles `program` as this process would."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_", "PYTHON", "MALLOC_"))
    }
    target = program.target
    elsewhere = PLATFORMS[target.platform].environment(target) if target.topology else {}
    ours = {
        "JAX_PLATFORMS": program.platform,
        "JAX_NUM_CPU_DEVICES": str(program.device_count if program.platform == "cpu" else 1),
        # JAX takes the number of CPU devices from one place only
        "XLA_FLAGS": _DEVICE_COUNT_FLAG.sub("", program.xla_flags).strip(),
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_ENABLE_X64": "1",
        # one heap for all threads: what one freed another takes again, and a peak repeats to 0.1 MB
        "MALLOC_ARENA_MAX": "1",
    }
    return inherited | ours | elsewhere


class Child:
    """A running child; iterate `events()` once, then read `failure`."""

    def __init__(self, process: subprocess.Popen[bytes], pipe: int, stderr: IO[bytes]) -> None:
        self._process = process
        self._pipe = pipe
        self._stderr = stderr
        self._kills_before = out_of_memory_kills()
        self.failure: Failure | None = None

    @property
    def pid(self) -> int:
        """The child's process id, which is also its process group's."""
        return self._process.pid

    def events(self, *, cancel: threading.Event | None, deadline: float | None) -> Iterator[Event]:
        """What the child says, until it is done or fails; `deadline` is in `time.monotonic` seconds.

        Ends at once when `cancel` is set, the deadline has passed or the child has died; `failure` then says which.
        """
        decoder = Decoder()
        waiting = select.poll()
        waiting.register(self._pipe, select.POLLIN)
        while True:
            if cancel is not None and cancel.is_set():
                self.failure = Failure("cancelled", "Cancelled.")
                return
            if deadline is not None and time.monotonic() >= deadline:
                self.failure = Failure("timed out", "Timed out.")
                return
            if not waiting.poll(_POLL_MILLISECONDS):
                continue
            data = os.read(self._pipe, 1 << 16)
            if not data:
                self.failure = self._death()
                return
            for event in decoder.feed(data):
                if isinstance(event, Done):
                    return
                yield event

    def _death(self) -> Failure:
        code = self._process.wait()
        kills = out_of_memory_kills()
        if (
            code == -signal.SIGKILL
            and kills is not None
            and self._kills_before is not None
            and kills > self._kills_before
        ):
            return Failure("out of memory", "The system ran out of memory and ended the process (SIGKILL).")
        how = f"was killed by {system.signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        tail = self._last_lines()
        # what is indented is code in a traceback
        said = [line for line in tail.splitlines() if _NO_MEMORY.search(line) and not line.startswith(" ")]
        if said:
            return Failure("out of memory", f"The process got no more memory and {how}: {said[-1]}{_limit()}.")
        return Failure("crashed", f"The process {how}." + (f" Its last lines:\n{tail}" if tail else ""))

    def _last_lines(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_BYTES))
        lines = self._stderr.read().decode(errors="replace").split("\n")
        return "\n".join([line for line in lines if line.strip()][-_STDERR_LINES:])

    def end(self) -> None:
        """Kill the whole group, collect it, and close what led to it.

        It is asked first: what it writes into the user's compilation cache at this moment would stay there by half.
        """
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            self._await_end(_GRACE_SECONDS)
        system.kill(self._process)
        os.close(self._pipe)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _await_end(self, seconds: float) -> None:
        # Not collected yet, so that the group is still there for those of it that did not end.
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        deadline = time.monotonic() + seconds
        while os.waitid(os.P_PID, self._process.pid, flags) is None and time.monotonic() < deadline:
            time.sleep(0.002)


def _limit() -> str:
    """What this process is limited to, and its children with it; "" where nothing is."""
    soft, _ = getrlimit(RLIMIT_AS)
    if soft == RLIM_INFINITY:
        return ""
    return f" (address space is limited to {format_bytes(soft)} here: ulimit -v)"


@contextmanager
def child(
    job: object, env: Mapping[str, str], *, inherit: Sequence[int] = (), worker: str = WORKER
) -> Generator[Child]:
    """Start a child on `job`; on leaving, however, its process group is gone and nothing is left behind.

    `inherit` are descriptors the child may use under the same numbers. `worker` is the module whose `main` takes the
    job; its events come as they are told.
    """
    with system.file_with(pickle.dumps(job)) as request, system.temporary_file() as stderr:

        def start() -> Child:
            receiving, sending = system.pipe()
            try:
                process = system.start_python(
                    _BOOTSTRAP,
                    json.dumps([entry for entry in sys.path if entry]),
                    str(request.fileno()),
                    str(sending),
                    worker,
                    # the child takes the end of its standard input as its parent's death
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    env=env,
                    pass_fds=(request.fileno(), sending, *inherit),
                )
            except BaseException:
                os.close(receiving)
                raise
            finally:
                os.close(sending)
            return Child(process, receiving, stderr)

        with held(start, Child.end) as running:
            yield running
