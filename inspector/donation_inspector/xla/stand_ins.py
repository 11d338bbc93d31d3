"""Functions that stand in for private ones of JAX while somebody listens; JAX is as it was afterwards.

What raises in between changes nothing of that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any


class StandIns:
    """Attributes of one module of JAX's, replaced while there is a listener."""

    def __init__(self, module: Any, make: Callable[[], Mapping[str, Any]]) -> None:
        """`make` gives what stands in, by name. It may raise: nothing is replaced then."""
        self._module, self._make = module, make
        self._lock = threading.RLock()
        self._listeners = 0
        self._replaced: dict[str, Any] = {}

    @contextmanager
    def listening(self) -> Generator[None]:
        """Replaced inside, in all threads."""
        with self._lock:
            if not self._listeners:
                self._replace()
            self._listeners += 1
        try:
            yield
        finally:
            with self._lock:
                self._listeners -= 1
                if not self._listeners:
                    self._put_back()

    def _replace(self) -> None:
        made = self._make()
        originals = {name: getattr(self._module, name) for name in made}
        self._replaced = originals
        for name, one in made.items():
            setattr(self._module, name, one)

    def _put_back(self) -> None:
        for name, original in self._replaced.items():
            setattr(self._module, name, original)
        self._replaced = {}
