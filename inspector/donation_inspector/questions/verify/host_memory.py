"""Numpy's arrays in this process by where they lie: on a CPU their views keep an array of JAX's from being donated."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from donation_inspector.questions.outside.variables import Walk, scopes
from donation_inspector.xla.pointers import Buffer


class HostMemory:
    """The numpy arrays that the user's variables and the functions under way reach; looked for when first asked."""

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
        found = (one for where, variables in scopes() for one in walk.through(variables, where))
        return [(path, (start := _address(array)), start + array.nbytes) for path, array in found if array.nbytes]


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
