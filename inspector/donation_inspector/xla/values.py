"""In the parent: the caller's real arrays, laid down once in an unnamed file that every child maps.

The file has no name, so nothing is left behind even when this process is killed.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import jax
import numpy as np

from donation_inspector.common.units import format_bytes
from donation_inspector.errors import MeasureError
from donation_inspector.machine import system
from donation_inspector.xla.program import Input, Program
from donation_inspector.xla.protocol import Stored


@dataclass(frozen=True, slots=True)
class Values:
    """Where each argument's value stands in the file `descriptor`; None for one that is to be generated.

    No places at all: every argument is to be generated.
    """

    places: tuple[Stored | None, ...]
    descriptor: int | None


GENERATED = Values((), None)
"""Every argument is to be generated."""


@contextmanager
def stored_values(program: Program, values: Sequence[Any]) -> Generator[Values]:
    """Lay the values down; the file lives as long as the context.

    `values` has one entry for each argument of the entry function: a jax or numpy array, a number, or None or a
    `jax.ShapeDtypeStruct` to have it generated. Raises MeasureError for an array that is deleted or has another shape
    or dtype than the argument, and when the values do not fit the temporary directory.
    """
    arrays = _physical(program, values)
    with system.temporary_file() as file:
        places: list[Stored | None] = []
        end = 0
        for array in arrays:
            if array is None:
                places.append(None)
                continue
            places.append(Stored(end, array.nbytes))
            end += -(-array.nbytes // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        _check_room(end)
        with system.asked_for("Room for the real inputs"):
            os.truncate(file.fileno(), end)
            for array, place in zip(arrays, places, strict=True):
                if array is not None and place is not None:
                    file.seek(place.offset)
                    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            file.flush()
        yield Values(tuple(places), file.fileno())


def _physical(program: Program, values: Sequence[Any]) -> list[np.ndarray[Any, Any] | None]:
    if len(values) != len(program.inputs):
        raise MeasureError(
            f"The program takes {len(program.inputs)} arguments and {len(values)} values were given; "
            "give one for each, None to have it generated."
        )
    return [
        None if value is None or isinstance(value, jax.ShapeDtypeStruct) else _as_buffer(described, value)
        for described, value in zip(program.inputs, values, strict=True)
    ]


def _as_buffer(described: Input, value: Any) -> np.ndarray[Any, Any]:
    """The value in the form of the runtime's buffer: a key is its data, a reference what it refers to."""
    if isinstance(value, jax.Array) and value.is_deleted():
        raise MeasureError(
            f"Argument {described.position} ({described.logical_dtype}{list(described.shape)}) was deleted, "
            "because a call donated it; pass a live array, or measure with generated inputs."
        )
    if isinstance(value, jax.Ref):
        value = cast(Any, value)[...]
    if described.logical_dtype.startswith("key<"):
        value = jax.random.key_data(value)
    # a Python number has the type that JAX gave it
    array = np.asarray(value, described.dtype) if isinstance(value, bool | int | float | complex) else np.asarray(value)
    if array.shape != described.shape or str(array.dtype) != described.dtype:
        raise MeasureError(
            f"Argument {described.position} is {array.dtype}{list(array.shape)}, "
            f"the program takes {described.dtype}{list(described.shape)}."
        )
    return array


def _check_room(needed: int) -> None:
    folder = os.statvfs(tempfile.gettempdir())
    free = folder.f_bavail * folder.f_frsize
    if needed > free:
        raise MeasureError(
            f"The real inputs need {format_bytes(needed)} in {tempfile.gettempdir()}, which has {format_bytes(free)}; "
            "set TMPDIR to a larger place, or measure with inputs='generated'."
        )
