"""Ctrl-C that leaves nothing behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

_T = TypeVar("_T")


@contextmanager
def held(set_up: Callable[[], _T], clean_up: Callable[[_T], None]) -> Generator[_T]:
    """What `set_up` gives, until `clean_up` ends it; Ctrl-C breaks off neither of the two.

    Inside it raises once, and is heard no more until all is cleaned up: the second of two Ctrl-C leaves no process
    behind. Outside the main thread, which alone is interrupted, it is plain `try` and `finally`.
    """
    before = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if before is None or not callable(before):
        made = set_up()
        try:
            yield made
        finally:
            clean_up(made)
        return
    raised, waits = False, True
    pressed: list[tuple[int, FrameType | None]] = []

    def once(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        if raised or waits:
            pressed.append((number, frame))
            return
        raised = True
        before(number, frame)
        raised = False

    signal.signal(signal.SIGINT, once)
    try:
        made = set_up()
        try:
            try:
                waits = False
                if pressed:
                    once(*pressed.pop())
                yield made
            finally:
                # an interrupt right here was the one that raises, and leads to the same
                waits = True
        finally:
            waits = True
            clean_up(made)
    finally:
        waits = True
        signal.signal(signal.SIGINT, before)
        if pressed and not raised:
            before(*pressed[0])
