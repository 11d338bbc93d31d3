"""Bufferization: what a program took when its own bufferized IR ran, without XLA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from donation_inspector.common.tables import aligned
from donation_inspector.common.units import format_bytes
from donation_inspector.xla.results import Status

TARGET = "mlir"
UPSTREAM = "jax-use-donated-arguments"
VARIANTS = ("none", UPSTREAM, "pass")
"""Nothing donated and no pass; xDSL's own pass; the pipeline that was asked for."""


@dataclass(frozen=True)
class Bufferized:
    """One variant: counted while it ran once, or the reason why there are no counts.

    `allocations`, `frees` and `copies` are calls of the program for memory of its own (results included), to give it
    back, and to copy a buffer as a whole; `copied` the bytes of the latter. `peak` is the most bytes that the program
    held at once of what it allocated; a result that is an argument as it came takes nothing. `reused` maps a flat
    argument to the flat results that came back in its buffer. `seconds` is that one call. `max_error` is the largest
    absolute difference of an element from what JAX gives, `outputs_close` whether every element is equal up to
    rounding. `status` is "ok" or how it ended, with the reason in `error`; None is unknown.

    `conflict` is what mlir-opt had against writing values into donated buffers right away (`eliminate-empty-tensors`):
    the variant was bufferized without it then. None where it had nothing against it. `ir` is the bufferized program.
    """

    name: str
    status: Status
    error: str | None = None
    allocations: int | None = None
    frees: int | None = None
    copies: int | None = None
    copied: int | None = None
    peak: int | None = None
    total: int | None = None
    """Bytes of all arguments and, on top of them, the peak."""
    reused: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    seconds: float | None = None
    max_error: float | None = None
    outputs_close: bool | None = None
    conflict: str | None = None
    ir: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Bufferization:
    """The variants of `VARIANTS`, each bufferized by MLIR and run on this machine's CPU, without XLA: all measured.

    `inputs` says whether they ran on the caller's arrays ("real") or on generated ones.
    """

    target: str
    pipeline: str
    variants: Mapping[str, Bufferized]
    inputs: str

    @property
    def headline(self) -> str:
        """What the figures are."""
        return f"Measured without XLA: bufferized by MLIR and called once on this CPU; inputs: {self.inputs}."

    COLUMNS = ("bufferized", "allocations", "copies", "copied", "peak", "total", "outputs")

    def rows(self) -> list[tuple[str, ...]]:
        """The variants as text: see `COLUMNS`."""
        return [
            (
                one.name if one.name != "pass" else self.pipeline,
                _count(one.allocations),
                _count(one.copies),
                format_bytes(one.copied),
                format_bytes(one.peak),
                format_bytes(one.total),
                _outputs(one),
            )
            for one in self._shown
        ]

    @property
    def _shown(self) -> list[Bufferized]:
        """The variants, xDSL's own pass once."""
        return [one for one in self.variants.values() if one.name != "pass" or self.pipeline != UPSTREAM]

    def notes(self) -> list[str]:
        """What is to be said of single variants: why there are no counts, why not in place, more copies than others."""
        return [
            *(
                f"{one.name}: {one.error or f'not in place with eliminate-empty-tensors, {one.conflict}'}"
                for one in self._shown
                if one.error or one.conflict
            ),
            *self._more_copies(),
        ]

    def _more_copies(self) -> list[str]:
        """What the pass costs: copies that no donation, or the real pass, does without."""
        made = self.variants["pass"].copies
        return [
            f"pass: it makes {more_copies} than {words}, {made} for {other}."
            for name, words in (("none", "without donation"), (UPSTREAM, f"{UPSTREAM} does"))
            if name in self.variants
            and made is not None
            and (other := self.variants[name].copies) is not None
            and (more := made - other) > 0
            and (more_copies := f"{more} more {'copy' if more == 1 else 'copies'}")
        ]

    def __repr__(self) -> str:
        return "\n".join([*aligned(self.COLUMNS, self.rows()), self.headline, *self.notes()])


def _count(number: int | None) -> str:
    return "unknown" if number is None else str(number)


def _outputs(one: Bufferized) -> str:
    if one.max_error is None:
        return one.status
    if not one.outputs_close:
        return f"NOT JAX's, off by {one.max_error:.2g}"
    return "as JAX's"
