"""What our passes say about a function that they did not do, beside what they did.

A pass has no channel of its own in xDSL. Under `xdsl-opt` a note is a line of the error output; whoever runs a pipeline
to show it hears them instead.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

_LOGGER = logging.getLogger("donation_inspector.passes")


@dataclass(frozen=True, slots=True)
class PassNote:
    """`told` says of an argument of the function, or of the function where `argument` is None, what was left undone."""

    pass_name: str
    code: str
    function: str
    argument: int | None
    told: str

    def __str__(self) -> str:
        of = "" if self.argument is None else f"argument {self.argument} of "
        return f"{self.pass_name}: {of}@{self.function} {self.told}"


_HEARD: ContextVar[list[PassNote] | None] = ContextVar("donation_inspector.passes.notes", default=None)


def tell(pass_name: str, code: str, func: FuncOp, told: str, argument: int | None = None) -> None:
    """Says it to whoever listens, each thing once, else as a warning of the logger "donation_inspector.passes"."""
    note, heard = PassNote(pass_name, code, func.sym_name.data, argument, told), _HEARD.get()
    if heard is None:
        _LOGGER.warning(str(note))
    elif note not in heard:
        heard.append(note)


@contextmanager
def heard() -> Generator[list[PassNote]]:
    """The notes of the passes that run inside, in their order."""
    notes: list[PassNote] = []
    token = _HEARD.set(notes)
    try:
        yield notes
    finally:
        _HEARD.reset(token)
