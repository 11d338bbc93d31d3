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
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from donation_inspector.xla.memory import out_of_memory_kills
from donation_inspector.xla.program import Program
from donation_inspector.xla.protocol import Decoder, Done, Event
from donation_inspector.xla.results import Status
from donation_inspector.xla.targets import PLATFORMS

_BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from importlib import import_module; import_module(sys.argv[4]).main(int(sys.argv[2]), int(sys.argv[3]))"
)
WORKER = "donation_inspector.xla.worker"
_POLL_MILLISECONDS = 50
_STDERR_BYTES = 4000
_STDERR_LINES = 12
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
        how = f"was killed by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        tail = self._last_lines()
        return Failure("crashed", f"The process {how}." + (f" Its last lines:\n{tail}" if tail else ""))

    def _last_lines(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_BYTES))
        lines = self._stderr.read().decode(errors="replace").split("\n")
        return "\n".join([line for line in lines if line.strip()][-_STDERR_LINES:])

    def end(self) -> None:
        """Kill the whole group and collect it; does nothing to a child that has ended."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def child(
    job: object, env: Mapping[str, str], *, inherit: Sequence[int] = (), worker: str = WORKER
) -> Generator[Child]:
    """Start a child on `job`; on leaving, however, its process group is gone and nothing is left behind.

    `inherit` are descriptors the child may use under the same numbers. `worker` is the module whose `main` takes the
    job; its events come as they are told.
    """
    with tempfile.TemporaryFile() as request, tempfile.TemporaryFile() as stderr:
        pickle.dump(job, request)
        request.flush()
        receiving, sending = os.pipe()
        try:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-W", "ignore", "-c", _BOOTSTRAP),
                    json.dumps([entry for entry in sys.path if entry]),
                    str(request.fileno()),
                    str(sending),
                    worker,
                ],
                # the child takes the end of its standard input as its parent's death
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=dict(env),
                pass_fds=(request.fileno(), sending, *inherit),
                start_new_session=True,
            )
        except BaseException:
            os.close(receiving)
            raise
        finally:
            os.close(sending)
        running = Child(process, receiving, stderr)
        try:
            yield running
        finally:
            running.end()
            os.close(receiving)
            if process.stdin is not None:
                process.stdin.close()
