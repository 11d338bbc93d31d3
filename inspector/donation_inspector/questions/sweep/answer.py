"""What a sweep over sizes answers: a row for each size, as plain values. Bytes are one device's, by XLA's totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from donation_inspector.common.tables import aligned
from donation_inspector.common.units import format_bytes
from donation_inspector.common.visible import shown_in_html
from donation_inspector.questions.compare.answer import Variant, fits_words

Size = int | tuple[int, ...]
"""The leading dimension, or a whole shape."""


@dataclass(frozen=True)
class SweepRow:
    """The program at one size: `sizes` by the names that were given, `shapes` of the arguments that change, by path.

    `variants` has "none" and "jax" where JAX could trace and lower it, `why_not` says why it could not.
    """

    sizes: Mapping[str, Size]
    shapes: Mapping[str, tuple[int, ...]]
    variants: Mapping[str, Variant]
    why_not: str | None = None

    @property
    def none(self) -> int | None:
        """XLA's total with nothing donated; None where there is none."""
        return self._total("none")

    @property
    def jax(self) -> int | None:
        """XLA's total as donated, by JAX's own pairing; None where there is none."""
        return self._total("jax")

    @property
    def fits(self) -> bool | None:
        """Whether the device has the memory for it as donated; None where that is unknown."""
        return self.variants["jax"].fits if self.variants else None

    @property
    def over(self) -> int | None:
        """Bytes that it needs, as donated, beyond what the device has; 0 where it fits, None where that is unknown."""
        return self.variants["jax"].over if self.variants else None

    @property
    def status(self) -> str:
        """ "ok", how the compile as donated ended, or "not lowered"."""
        return self.variants["jax"].status if self.variants else "not lowered"

    @property
    def error(self) -> str | None:
        """Why there is no total, or how the compile as donated failed; None for "ok"."""
        return self.variants["jax"].error if self.variants else self.why_not

    def _total(self, name: str) -> int | None:
        memory = self.variants[name].memory if self.variants else None
        return None if memory is None else memory.total


@dataclass(frozen=True, repr=False)
class Sweep:
    """One row for each size, in the order that was asked for, compiled for `target` and not run."""

    name: str
    target: str
    rows: tuple[SweepRow, ...]

    @property
    def largest(self) -> SweepRow | None:
        """The row with the largest total, as donated, that fits; None where none is known to."""
        return max((row for row in self.rows if row.fits and row.jax is not None), key=_total, default=None)

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {
            "name": self.name,
            "target": self.target,
            "rows": [
                {
                    "sizes": {name: _plain(size) for name, size in row.sizes.items()},
                    "shapes": {path: list(shape) for path, shape in row.shapes.items()},
                    "none": row.none,
                    "jax": row.jax,
                    "fits": row.fits,
                    "over": row.over,
                    "status": row.status,
                    "error": row.error,
                }
                for row in self.rows
            ],
        }

    def __repr__(self) -> str:
        last = self._last_line()
        return "\n".join([*aligned(self._header(), self._cells()), *([last] if last else [])])

    def _repr_html_(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return (
                "<tr>"
                + "".join(f'<{tag} style="text-align:left">{shown_in_html(one)}</{tag}>' for one in cells)
                + "</tr>"
            )

        rows = "".join(line(row, "td") for row in self._cells())
        last = self._last_line()
        return f"<table>{line(self._header(), 'th')}{rows}</table>" + (f"<p>{shown_in_html(last)}</p>" if last else "")

    def _header(self) -> tuple[str, ...]:
        return (*self.rows[0].sizes, f"none ({self.target})", "as donated", "fits", "")

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                *map(str, row.sizes.values()),
                format_bytes(row.none),
                format_bytes(row.jax),
                fits_words(row.variants["jax"]) if row.variants else row.status,
                (row.error or "").partition("\n")[0],
            )
            for row in self.rows
        ]

    def _last_line(self) -> str | None:
        found = self.largest
        if found is not None:
            return f"Largest that fits: {sizes_words(found.sizes)}, {format_bytes(found.jax)}."
        unknown = any(row.jax is not None and row.fits is None for row in self.rows)
        return "How much memory a device has is not known here: give it as fits='24GB'." if unknown else None


def sizes_words(sizes: Mapping[str, Size]) -> str:
    """`x = 16, y = (16, 4)`."""
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


def _total(row: SweepRow) -> int:
    return row.jax or 0


def _plain(size: Size) -> int | list[int]:
    return size if isinstance(size, int) else list(size)
