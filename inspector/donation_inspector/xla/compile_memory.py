"""How many programs are compiled at once: as many as there are cores, and as there is memory for.

What XLA takes to compile grows with the program's operations, less with its constants. What children have really taken
is learnt from, for each kind of target.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from donation_inspector.common.parallel_jobs import workers
from donation_inspector.common.units import format_bytes
from donation_inspector.xla import memory
from donation_inspector.xla.program import Program

_STARTED = 320 << 20
"""Python, JAX and XLA, before anything is compiled."""
_PLUGIN = 330 << 20
"""A compiler of its own, libtpu or CUDA's plugin, besides."""
_PER_OPERATION_BYTE = 2000
"""For each byte of the operations in MLIR's bytecode; measured on train steps of 4 to 24 layers for a CPU."""
_PER_BYTE = 4
"""For each byte of the bytecode, constants among them: they are read, held and folded."""
_IR_SECTION = 4
"""https://mlir.llvm.org/docs/BytecodeFormat: after the header come sections: an id, a length, their bytes aligned."""

_lock = threading.Lock()
_more_than_thought: dict[str, float] = {}
_taken: list[int] = []


def needs(program: Program) -> int:
    """Bytes of this machine's memory that a child takes to compile a program, about."""
    code = program.bytecode
    started = _STARTED + (_PLUGIN if program.target.platform != "cpu" else 0)
    guess = started + _PER_OPERATION_BYTE * _operation_bytes(code) + _PER_BYTE * len(code)
    return round(guess * _more_than_thought.get(program.target.platform, 1.0))


def learn(program: Program, resident: int | None) -> None:
    """What a child held at most when it had compiled a program."""
    platform = program.target.platform
    if resident is not None and resident > needs(program):
        with _lock:
            _more_than_thought[platform] = _more_than_thought.get(platform, 1.0) * resident / needs(program)


def at_once(programs: Sequence[Program]) -> tuple[int, str | None]:
    """How many of these to compile at once, and what stands in the way where that is not as many as there are cores."""
    most = min(workers(), len(programs))
    free = memory.available()
    if most < 2 or free is None:
        return most, None
    each = max(map(needs, programs))
    with _lock:
        # What others have begun with they may not have touched yet: rather too much is set aside than too little.
        free -= sum(_taken)
    room = max(1, min(most, free // each))
    if room == most:
        return most, None
    how = "one after the other" if room == 1 else f"{room} at once"
    return room, f"{how}: a compile takes about {format_bytes(each)}, {format_bytes(max(0, free))} are free"


@contextmanager
def taken(programs: Sequence[Program]) -> Generator[None]:
    """While a child compiles these, one after the other."""
    most = max(map(needs, programs), default=0)
    with _lock:
        _taken.append(most)
    try:
        yield
    finally:
        with _lock:
            _taken.remove(most)


def _operation_bytes(bytecode: bytes) -> int:
    """The length of the section that holds the operations; all of it where it is not found."""
    try:
        at = bytecode.index(b"\0", 4) + 1
        while at < len(bytecode):
            section, aligned = bytecode[at] & 0x7F, bytecode[at] & 0x80
            length, at = _varint(bytecode, at + 1)
            if section == _IR_SECTION:
                return length
            if aligned:
                alignment, at = _varint(bytecode, at)
                at = -(-at // alignment) * alignment
            at += length
    except (ValueError, IndexError, ZeroDivisionError):
        pass
    return len(bytecode)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """MLIR's: the low bits of the first byte tell, in unary, how many bytes follow."""
    first = data[at]
    if first == 0:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    more = (first & -first).bit_length() - 1
    return int.from_bytes(data[at : at + more + 1], "little") >> (more + 1), at + more + 1
