"""The variants as they ran: plain immutable values. Bytes are measured, those of all devices together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from donation_inspector.common.units import format_bytes

WhichExecutable = Literal[
    "compiled before", "compiled for the runs", "from the compilation cache", "compiled again to be run"
]


@dataclass(frozen=True)
class MeasuredVariant:
    """One variant's runs in a process of its own.

    `peak` is the median of the measured peaks above the idle process, in bytes of all its devices together; `spread` is
    their (smallest, largest); `predicted` is XLA's total for the executable that ran; `seconds` the median time of a
    call. `status` is "ok" or how the run ended, with the reason in `error`. `executable` is where that came from:
    "compiled before" (by `compare`, as a rule), "compiled for the runs" (all of them in the same go), "from the
    compilation cache" of the user, "compiled again to be run" where no executable could be kept; None where none ran.
    """

    name: str
    peak: int | None
    spread: tuple[int, int] | None
    predicted: int | None
    seconds: float | None
    status: str
    error: str | None
    executable: WhichExecutable | None = None


@dataclass(frozen=True)
class Measurement:
    """The variants, each run on this machine: in a fresh process, or with the limits that `limits` tells."""

    target: str
    inputs: str
    runs: int
    variants: Mapping[str, MeasuredVariant]
    outputs_equal: bool | None
    """Whether every variant that ran gave bit-identical outputs; None when fewer than two did."""
    limits: str | None = None
    devices: int = 1
    """How many devices it ran on: the peaks are theirs together."""

    @property
    def measured_saved(self) -> int | None:
        """Bytes, all devices together, by which the pass's variant peaks lower than no donation; None when unknown."""
        return self.saved("pass")

    def saved(self, name: str) -> int | None:
        """Bytes, all devices together, by which one variant peaks lower than no donation; None when unknown."""
        none, other = self.variants["none"].peak, self.variants[name].peak
        return None if none is None or other is None else none - other

    @property
    def executables(self) -> str:
        """Which executables ran, in words; "" where none did."""
        names: dict[str, list[str]] = {}
        for name, variant in self.variants.items():
            if variant.executable is not None:
                names.setdefault(variant.executable, []).append(name)
        if len(names) < 2:
            return "".join(names)
        return ", ".join(f"{' and '.join(of)} {which}" for which, of in names.items())

    def failures(self) -> Iterator[MeasuredVariant]:
        """The variants that did not run to the end."""
        return (variant for variant in self.variants.values() if variant.status != "ok")

    def __repr__(self) -> str:
        peaks = ", ".join(f"{name} {format_bytes(variant.peak)}" for name, variant in self.variants.items())
        return f"<Measurement on {self.target} (measured): {peaks}>"
