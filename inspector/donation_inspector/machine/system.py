"""Temporary files, pipes and child processes: what they need of this machine, and one message where it gives none.

Nothing here is ever one of the standard descriptors, which a daemon or `<&-` leaves closed: a child's own would take
its place.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from donation_inspector.common.visible import repr_of
from donation_inspector.errors import MachineError

_FIRST_OWN = 3
_FILE = "A temporary file"
_NO_FILES = (errno.EMFILE, errno.ENFILE)
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_PROCESS = (errno.EAGAIN, errno.ENOMEM)


@contextmanager
def asked_for(what: str) -> Generator[None]:
    """Tells an OSError raised inside as a MachineError: `what` was asked for, why it is not given, what to do."""
    try:
        yield
    except OSError as error:
        raise MachineError(f"{what} is needed here, and the system does not give it: {_why(error)}") from error


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return f"{error}."
    said = (error.strerror or str(error)).rstrip(".")
    if error.errno in _NO_FILES:
        return f"{said}. Close files, or raise the limit (ulimit -n)."
    if error.errno in _NO_SPACE:
        return f"{said} in {_folder()}. Free some there, or set TMPDIR to a larger place."
    if error.errno in _NO_PROCESS:
        return f"{said}. End other processes, or raise the limits of processes and memory (ulimit -u, ulimit -v)."
    if "temporary directory" in said:
        return f"{said}. Set TMPDIR to a folder that can be written."
    return f"{said}{f' ({error.filename})' if error.filename else ''}."


def _folder() -> str:
    return tempfile.tempdir or os.environ.get("TMPDIR", "/tmp")


@contextmanager
def temporary_file() -> Generator[IO[bytes]]:
    """An unnamed file to read and write, gone on leaving; what writes to it does so inside `asked_for`."""
    with asked_for(_FILE):
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        if file.fileno() < _FIRST_OWN:
            with file:
                file = os.fdopen(fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN), "w+b")
    try:
        yield file
    finally:
        # what there was no room for is told where it was written
        with suppress(OSError):
            file.close()


@contextmanager
def file_with(data: bytes) -> Generator[IO[bytes]]:
    """The same with something in it, to be read by whoever inherits it."""
    with temporary_file() as file:
        with asked_for(_FILE):
            file.write(data)
            file.flush()
        yield file


def check_path(path: object) -> None:
    """Raise MachineError where nothing can be written to what was given, since it is no path."""
    if not isinstance(path, str | os.PathLike):
        raise MachineError(f"A path to write to is needed, got {repr_of(path)}.")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Generator[str | os.PathLike[str]]:
    """The path of a file of the user's to write. Raises MachineError where it is none, or cannot be written."""
    check_path(path)
    try:
        yield path
    except (OSError, ValueError) as error:
        raise MachineError(f"{os.fspath(path)} cannot be written: {_why(error)}") from None


@contextmanager
def temporary_folder() -> Generator[str]:
    """A folder that is removed on leaving, with whatever is in it then. Raises MachineError."""
    with asked_for("A temporary folder"):
        folder = tempfile.TemporaryDirectory(prefix="donation-inspector-", ignore_cleanup_errors=True)
    with folder as path:
        yield path


def pipe() -> tuple[int, int]:
    """The two ends of a pipe, the reading one first. Raises MachineError."""
    with asked_for("A pipe to a child process"):
        ends = os.pipe()
        try:
            return _lifted(ends[0]), _lifted(ends[1])
        except OSError:
            for end in ends:
                with suppress(OSError):
                    os.close(end)
            raise


def _lifted(descriptor: int) -> int:
    if descriptor >= _FIRST_OWN:
        return descriptor
    lifted = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN)
    os.close(descriptor)
    return lifted


def start_python(code: str, *words: str, env: Mapping[str, str], **options: Any) -> subprocess.Popen[bytes]:
    """A fresh interpreter like this one that runs `code`, in a process group of its own; options as of Popen.

    Raises MachineError.
    """
    if not sys.executable:
        raise MachineError(
            "A child process is needed here, and this Python does not say where its interpreter is: sys.executable is "
            "empty. Set sys.executable to the path of the python that runs this."
        )
    return start([sys.executable, "-P", "-W", "ignore", "-c", code, *words], env=dict(env), **options)


def own_environment() -> dict[str, str]:
    """This process's, less what steers another Python or malloc."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MALLOC_"))}


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """A child process in a process group of its own, which Ctrl-C does not reach. Raises MachineError."""
    with asked_for(f"A child process ({os.path.basename(command[0])})"):
        return subprocess.Popen(command, start_new_session=True, **options)


def kill(process: subprocess.Popen[Any]) -> None:
    """End the whole group of a process that `start` made, and collect it; one that has ended is only collected."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def signal_name(number: int) -> str:
    """A signal as people know it, "SIGSEGV"."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
