"""In the child: what XLA's refusal means, for people."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from donation_inspector.errors import CompileError
from donation_inspector.xla.program import Program
from donation_inspector.xla.results import Compiled, Memory

if TYPE_CHECKING:
    from donation_inspector.xla.hlo.buffers import Buffers

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = r"([\d.]+)([KMGT]?)"
# before XLA has the program's code, and after it
_NO_ROOM = (
    re.compile(rf"exceeds available HBM \({_SIZE}\)"),
    re.compile(rf"Used [\d.]+[KMGT]? of {_SIZE} hbm\."),
)
# as a TPU's compiler and a GPU's say it
_UNKNOWN = re.compile(r"Custom emitter for (\S+) not found|No FFI handler registered for (\S+) on a platform")
_CODE = re.compile(r"^(?:[A-Z_]+: )+")
_LONGEST = 600


def refused(program: Program, message: str, seconds: float, hlo: bytes | None) -> Compiled:
    """The answer to a program that XLA raised `message` for; `hlo` is what it had laid out until then."""
    capacity = _capacity(message)
    if capacity is not None:
        buffers = _laid_out(hlo)
        return Compiled(
            "does not fit",
            None if buffers is None else _memory(buffers),
            {} if buffers is None else _alias(buffers),
            seconds,
            error=f"{program.target.name} is too small: {_short(message)}",
            hlo=hlo,
            capacity=capacity,
        )
    return Compiled("refused", seconds=seconds, error=_for_people(program, message), hlo=hlo)


def _capacity(message: str) -> int | None:
    """The bytes that a device has, where it has too few."""
    for pattern in _NO_ROOM:
        if found := pattern.search(message):
            return int(float(found[1]) * _UNITS[found[2]])
    return None


def _laid_out(hlo: bytes | None) -> Buffers | None:
    """The buffers that XLA had laid out; None where it did not get as far."""
    # It takes protobuf, which need not be installed where everything fits.
    from donation_inspector.xla.hlo.buffers import read_buffers

    try:
        return None if hlo is None else read_buffers(hlo)
    except CompileError:
        return None


def _memory(buffers: Buffers) -> Memory:
    """What `CompiledMemoryStats` would say, had the program fitted: the allocations in the main memory, by kind.

    Their sum is the "total memory required" of XLA's message.
    """
    sizes: defaultdict[str, int] = defaultdict(int)
    for allocation in buffers.allocations:
        if allocation.color == 0:
            sizes["alias" if allocation.aliased else allocation.kind] += allocation.nbytes
    return Memory(
        argument=sizes["alias"] + sizes["parameter"],
        output=sizes["alias"] + sizes["output"],
        alias=sizes["alias"],
        temp=sizes["temp"],
    )


def _alias(buffers: Buffers) -> dict[int, int]:
    """As the executable's header would say: argument position to result position."""
    entries = buffers.program.module.proto.input_output_alias.entries
    return {entry.parameter_number: next(iter(entry.output_shape_index), 0) for entry in entries}


def _for_people(program: Program, message: str) -> str:
    """XLA's message; a custom call that is missing in this process is named."""
    missing = [name for name in program.custom_calls if re.search(rf"\b{re.escape(name)}\b", message)]
    if "NOT_FOUND" in message and missing:
        return (
            f"The program calls {missing[0]!r}, which only the process that traced it has registered: "
            "a fresh process cannot compile it."
        )
    unknown = _UNKNOWN.search(message)
    if unknown is not None and not program.target.here:
        called = unknown[1] or unknown[2]
        return (
            f"The module calls {called!r}, which {program.target.name} does not have: it was lowered for another "
            "platform. Give the function and its arguments, and it is lowered for this one."
        )
    return f"XLA refused the module: {message.strip() if program.target.here else _short(message)}"


def _short(message: str) -> str:
    """XLA's message without the dumps that follow it."""
    first = _CODE.sub("", message.strip()).split("\n\n", 1)[0]
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1] + "…"
