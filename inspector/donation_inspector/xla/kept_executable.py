"""An executable that one child made and another one runs, in a file without a name.

It takes disk and no memory, which a program at the edge of its memory has none of to spare; and as nothing but the open
file leads to it, the system removes it when the last process that has it open ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import weakref

from donation_inspector.machine import system


class KeptExecutable:
    """Room for the bytes that PJRT serializes an executable to; empty until a child has written them."""

    def __init__(self) -> None:
        """Raises MachineError."""
        with system.temporary_file() as file, system.asked_for("A temporary file"):
            self.descriptor = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, file.fileno())
        weakref.finalize(self, os.close, self.descriptor)

    def __len__(self) -> int:
        """Bytes written so far."""
        return os.fstat(self.descriptor).st_size


def write(descriptor: int, data: bytes) -> None:
    """In the child: all of it, or nothing where the disk is full."""
    try:
        left = memoryview(data)
        while left:
            left = left[os.pwrite(descriptor, left, len(data) - len(left)) :]
    except OSError:
        os.ftruncate(descriptor, 0)


def read(descriptor: int) -> bytes:
    """All that was written."""
    data = bytearray()
    while part := os.pread(descriptor, os.fstat(descriptor).st_size - len(data), len(data)):
        data += part
    return bytes(data)
