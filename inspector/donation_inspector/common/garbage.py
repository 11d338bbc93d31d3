"""Python's cyclic collector while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Generator[None]:
    """For code that makes many objects and no garbage: the collector would walk all that is alive again and again, the
    user's objects too. Not around anything of the user's, whose arrays may lie in cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
