"""A file of somebody else's, opened: a regular one alone, whose size is known before a byte of it is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import BinaryIO, cast

from donation_inspector.common.units import format_bytes
from donation_inspector.common.visible import repr_of
from donation_inspector.errors import IRError
from donation_inspector.xla.memory import available

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def opened(path: str | os.PathLike[str], wanted: str) -> Generator[BinaryIO]:
    """The file to read from; `wanted` is the sentence that says what should be given instead.

    Raises IRError: no such file, one that is no regular file and may have no end, or more than there is memory for.
    """
    if not isinstance(cast(object, path), str | os.PathLike):
        raise IRError(f"A path is needed, got {repr_of(path)}. {wanted}")
    try:
        # a pipe that nobody writes to would hold the process up
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise IRError(f"{os.fspath(path)} cannot be read: {error.strerror or error}. {wanted}") from None
    except ValueError as error:
        raise IRError(f"{os.fspath(path)!r} cannot be read: {error}. {wanted}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "no regular file")
        raise IRError(f"{os.fspath(path)} is {kind}, not a file. {wanted}")
    with os.fdopen(descriptor, "rb") as file:
        there = available()
        if there is not None and status.st_size > there:
            raise IRError(
                f"{os.fspath(path)} has {format_bytes(status.st_size)}, and this machine has {format_bytes(there)} of "
                f"memory left. {wanted}"
            )
        try:
            yield file
        except OSError as error:
            raise IRError(f"{os.fspath(path)} cannot be read: {error.strerror or error}. {wanted}") from None


def read(path: str | os.PathLike[str], wanted: str) -> bytes:
    """All of the file. Raises IRError as `opened` does."""
    with opened(path, wanted) as file:
        return file.read(os.fstat(file.fileno()).st_size)
