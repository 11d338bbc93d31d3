"""What parent and child say to each other: one job in a file, then events through a pipe, each a length and a pickle.

Both ends are the same installation, started by the same user: pickle is as safe here as importing the module.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from donation_inspector.xla.program import Program
from donation_inspector.xla.results import Compiled

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Stored:
    """One argument's values in the file of real inputs: numpy's own bytes in C order."""

    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class CompileJob:
    """Compile the programs one after the other; a `CompileDone` for each.

    `folder` is where XLA may write what it compiled, for `Compiled.hlo`: the parent's, so that it is removed however
    the child ends. None: `hlo` is not asked for. `executables` has an inherited descriptor for each program, where its
    executable is to be written; None where it is not. `cache` are JAX's settings of the user's compilation cache, which
    is always written, and asked where `read` is True: what comes from there has no `hlo`.
    """

    programs: tuple[tuple[str, Program], ...]
    folder: str | None = None
    executables: tuple[int | None, ...] = ()
    cache: Mapping[str, Any] | None = None
    read: bool = False


@dataclass(frozen=True, slots=True)
class MeasureJob:
    """Run one program: the executable in the inherited descriptor `executable`, of which `known` is what XLA said when
    it was compiled; where there is none, or it cannot be loaded, compile it, with the user's compilation cache
    (`cache`).

    `values` has one entry for each argument of the entry function, None to generate it; `values_fd` is the inherited
    descriptor of the file that holds them.
    """

    program: Program
    values: tuple[Stored | None, ...]
    values_fd: int | None
    runs: int
    executable: int | None = None
    known: Compiled | None = None
    cache: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class EvaluateJob:
    """Call one program once and keep what went in and what came out, in the file `file_fd`; values as in MeasureJob."""

    program: Program
    values: tuple[Stored | None, ...]
    values_fd: int | None
    file_fd: int


Job = CompileJob | MeasureJob | EvaluateJob


@dataclass(frozen=True, slots=True)
class CompileDone:
    """One variant is compiled, or XLA refused it; `loaded`: it was compiled before, by another child.

    `resident` is the most memory that the child has held so far, in bytes; None where the system does not tell.
    """

    name: str
    compiled: Compiled
    loaded: bool = False
    resident: int | None = None


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The program was not run, or XLA could not get memory while it ran; bytes where they are known."""

    needs: int | None
    has: int | None
    detail: str


@dataclass(frozen=True, slots=True)
class WarmedUp:
    """The first call is done; its results' hashes, by position."""

    output_hashes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunDone:
    """One measured call: seconds, the highest resident bytes, and the lowest baseline so far (None: unknown)."""

    seconds: float
    highest: int | None
    baseline: int | None


@dataclass(frozen=True, slots=True)
class Workspace:
    """What the calls left with malloc as work space, in bytes; None where it is not told apart from buffers."""

    nbytes: int | None


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Where the arguments and the results stand in the job's file, by position."""

    arguments: tuple[Stored, ...]
    results: tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class Raised:
    """The program raised when it was called."""

    detail: str


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing more will come."""


Event = CompileDone | OutOfMemory | WarmedUp | RunDone | Workspace | Evaluated | Raised | Done


def encode(event: object) -> bytes:
    """An event as it goes through the pipe; a worker of another layer has its own."""
    data = pickle.dumps(event)
    return _LENGTH.pack(len(data)) + data


class Decoder:
    """Turns the pipe's bytes, cut anywhere, back into events."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Event]:
        """The events that are complete once `data` has come, in order."""
        self._buffer += data
        events: list[Event] = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            events.append(cast(Event, pickle.loads(bytes(self._buffer[_LENGTH.size : end]))))
            del self._buffer[:end]
        return events
