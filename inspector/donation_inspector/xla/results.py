"""What compiling and measuring report: plain data, made in a child process or by the parent in its place.

Nothing here imports JAX, so a child can unpickle its job before it decides how to start JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["ok", "does not fit", "refused", "out of memory", "crashed", "timed out", "cancelled"]
"""How a variant ended.

"does not fit": XLA laid it out, and the device that it is for has less memory. "out of memory": this machine has.

"refused": XLA or the inspector says no, with the reason. "crashed": the process died or the program raised.
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """XLA's own figures for one device, in bytes (`CompiledMemoryStats`).

    They are those of the main memory: what lies in a TPU's VMEM is not in them, nor are the program itself and its
    constants, which the device has to hold besides.
    """

    argument: int
    output: int
    alias: int
    temp: int

    @property
    def total(self) -> int:
        """argument + output − alias + temp."""
        return self.argument + self.output - self.alias + self.temp


@dataclass(frozen=True, slots=True)
class Compiled:
    """What XLA made of one variant.

    `input_output_alias` maps argument positions to result positions of the entry function (tokens counted), as the
    compiled module says: XLA *may* let them share a buffer. `seconds` is the time of the compile alone. `error` is a
    message for people; `status` "ok" means that there is none. `hlo` is the serialized HloProto of the compiled module,
    buffer assignment and all, where it was asked for; a module that XLA laid out before it refused it has one too.

    What does not fit has its `memory` from XLA's buffer assignment, where XLA got as far as that, and as `capacity` the
    bytes that XLA says one device has for a program, to the three digits that XLA gives.

    `cached`: it comes from the user's persistent compilation cache, which has neither `seconds` nor `hlo`.
    """

    status: Status
    memory: Memory | None = None
    input_output_alias: Mapping[int, int] = field(default_factory=dict[int, int])
    seconds: float | None = None
    error: str | None = None
    hlo: bytes | None = field(default=None, repr=False)
    capacity: int | None = None
    cached: bool = False


Executable = Literal["kept", "cached", "compiled"]
"""Which executable ran: one that was compiled before, the user's compilation cache's, or one of the run's own."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one variant took when it ran, in a process of its own.

    `peak` is the median over the runs of the process's highest resident memory above what it held before the inputs
    were made, in bytes, all devices together; None where the system cannot tell. `spread` is its (smallest, largest).
    `predicted` is the compiled total times the number of devices, to be held against `peak`. `seconds` is the median
    time of a call. `output_hashes` is one sha256 of the bits of each result, by position.
    `workspace` is what the compiled code took besides, from malloc (a matrix multiplication's packed operands); it is
    not in `peak`. None: it could not be told apart, and `peak` contains it.
    `executable` is which one ran, None where none did.
    A variant that timed out, crashed or was cancelled keeps what the `runs` finished before gave.
    """

    status: Status
    peak: int | None = None
    spread: tuple[int, int] | None = None
    predicted: int | None = None
    seconds: float | None = None
    output_hashes: tuple[str, ...] | None = None
    workspace: int | None = None
    runs: int = 0
    error: str | None = None
    executable: Executable | None = None
