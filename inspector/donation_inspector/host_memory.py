"""Numpy's arrays in this process by where they lie: on a CPU their views keep an array of JAX's from being donated."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import FrameType
from typing import Any

import numpy as np

from donation_inspector.variables import Walk, roots, user_namespace
from donation_inspector.xla.pointers import Buffer


class HostMemory:
    """The numpy arrays that the user's variables and the functions under way reach; looked for when first asked."""

    def __init__(self, frame: FrameType | None) -> None:
        """`frame` is the innermost of the user's."""
        self._frame = frame

    def at(self, buffers: Mapping[Buffer, int] | None) -> str | None:
        """The path of a numpy array in one of these buffers of a CPU; None where none was found."""
        for (device, address), size in (buffers or {}).items():
            if not device.startswith("cpu:"):
                continue
            for path, start, end in self._arrays:
                if start < address + size and end > address:
                    return path
        return None

    @cached_property
    def _arrays(self) -> list[tuple[str, int, int]]:
        walk = Walk(lambda value: isinstance(value, np.ndarray))
        groups = [*roots(user_namespace()), list(_locals(self._frame))]
        found = (one for group in groups for one in walk.through(group))
        return [(path, (start := _address(array)), start + array.nbytes) for path, array in found if array.nbytes]


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _locals(frame: FrameType | None) -> Iterator[tuple[str, Any]]:
    """What the functions under way hold in variables.

    Before Python 3.13 a frame keeps what it has told here until its function returns: it is made to forget, so that no
    array stays alive for it. While a debugger traces, what it forgets would be lost, and nothing is asked.
    """
    while frame is not None and sys.gettrace() is None:
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            told = frame.f_locals
            yield from [(f"{name} in {frame.f_code.co_name}()", value) for name, value in told.items()]
            if sys.version_info < (3, 13):
                told.clear()
        frame = frame.f_back
