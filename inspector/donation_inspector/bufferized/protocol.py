"""What parent and child say to each other about one run. Nothing here imports JAX or LLVM."""

from __future__ import annotations

from dataclasses import dataclass

from donation_inspector.xla.protocol import Stored


@dataclass(frozen=True, slots=True)
class Array:
    """An array in the file of values: numpy's own bytes in C order."""

    shape: tuple[int, ...]
    dtype: str
    stored: Stored


@dataclass(frozen=True, slots=True)
class RunJob:
    """Run the LLVM IR once on `arguments` and hold its results to JAX's `results`, all in the file `values_fd`.

    `donated` are the arguments that the program may write; any other must be what it was when it returns.
    """

    llvm: str
    arguments: tuple[Array, ...]
    results: tuple[Array, ...]
    donated: frozenset[int]
    values_fd: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What the program asked for while it ran, once; bytes where nothing else is said.

    `peak` is the most that it held at once of what it allocated itself, `copied` what `copies` moved.
    """

    allocations: int
    frees: int
    copies: int
    copied: int
    peak: int


@dataclass(frozen=True, slots=True)
class Ran:
    """The program returned.

    `places` has for each result the argument whose buffer it is in, None for one of its own. `errors` has for each
    result the largest absolute difference from JAX's, `close` whether each element is equal up to rounding.
    `overwritten` are arguments that are not donated and not what they were.
    """

    counts: Counts
    seconds: float
    places: tuple[int | None, ...]
    errors: tuple[float, ...]
    close: bool
    overwritten: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """LLVM does not take the program, or it is called in another way than expected."""

    detail: str
