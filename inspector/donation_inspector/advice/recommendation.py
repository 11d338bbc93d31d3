"""Recommendation: the donation that saves most, what it was held against, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from donation_inspector.common.units import format_bytes
from donation_inspector.common.visible import shown_in_html


@dataclass(frozen=True)
class Unsafe:
    """An argument that is not recommended to be donated, and why; `path` is that of a leaf or of a whole argument.

    `certain` is False where it stands on what callers usually do. `leaves` are the flat indices below the path.
    """

    path: str
    reason: str
    certain: bool
    leaves: tuple[int, ...] = field(repr=False)

    def __str__(self) -> str:
        return f"{'Unsafe' if self.certain else 'Perhaps unsafe'} to donate: {self.path}: {self.reason}."


@dataclass(frozen=True)
class Candidate:
    """One pairing that was compiled: its name, flat argument to flat result, the leaves it donates, XLA's total.

    `total` is in bytes a device, None where XLA made no module of it; `fits` tells whether a device has that memory,
    None where that is unknown. `handed_over` is the total of the program that the code for it gives to JAX: another
    one where its results stand in another order, for which XLA makes another schedule. None where that was not asked,
    and where no code makes these pairs.
    """

    name: str
    pairs: Mapping[int, int]
    donated: frozenset[int]
    total: int | None
    fits: bool | None = None
    handed_over: int | None = None


@dataclass(frozen=True)
class Recommendation:
    """The pairing with XLA's smallest total, by flat index; `donated` has its arguments and those left to XLA.

    `total` and `baselines` ("none": nothing donated, "jax": JAX's own pairing of the same set) are XLA's totals in
    bytes a device, of what their code gives to JAX; None where XLA made no module, or was not asked. `code` is what to
    paste, empty where the total is unknown. `tried` counts the candidates compiled besides these two; `exhaustive`:
    there is no other. `searched` says so in words. `unsafe`: see `Unsafe`.
    `capacity`: bytes that one device has for a program, None where that is unknown.
    `more`: what a pairing would save that no JAX API makes.
    """

    target: str
    pairs: Mapping[int, int]
    donated: frozenset[int]
    total: int | None
    baselines: Mapping[str, int | None]
    tried: int
    exhaustive: bool
    searched: str
    unsafe: tuple[Unsafe, ...]
    code: str
    here: bool
    variants: tuple[Candidate, ...] = field(repr=False)
    """Everything that was compiled, none and jax first, then in the order in which it was tried."""
    capacity: int | None = None
    more: str | None = None
    name: str = "jax"
    """Which of the variants it is."""

    @property
    def saved(self) -> int | None:
        """Bytes a device that it saves against no donation; None when unknown."""
        return self._less_than("none")

    @property
    def saved_over_jax(self) -> int | None:
        """Bytes a device that it saves against JAX's own pairing; None when unknown."""
        return self._less_than("jax")

    def _less_than(self, baseline: str) -> int | None:
        against = self.baselines[baseline]
        return None if against is None or self.total is None else against - self.total

    @property
    def fits(self) -> bool | None:
        """Whether a device has the memory for what is recommended; None where that is unknown."""
        return self._fits(self.name)

    def _fits(self, name: str) -> bool | None:
        return next((one.fits for one in self.variants if one.name == name), None)

    @property
    def sentence(self) -> str:
        """What it takes against the baselines, what the search did, and whether it fits."""
        return f"{self._found()}{self._place()}."

    def _place(self) -> str:
        """Whether a device has the memory for it, and what donation has to do with that."""
        if self.fits is None:
            return ""
        capacity = f"{format_bytes(self.capacity)} of a device"
        if not self.fits:
            over = (self.total or 0) - (self.capacity or 0)
            return f"; it does not fit: {f'{format_bytes(over)} over' if over > 0 else 'too large for'} the {capacity}"
        if self.name != "jax" and self._fits("jax") is False:
            return f"; it fits the {capacity}, and JAX's own pairing does not"
        return f"; it fits the {capacity}{', and only with donation' if self._fits('none') is False else ''}"

    def _found(self) -> str:
        where = f"on {self.target} (compiled{'' if self.here else ', not run'}; {self.searched})"
        if self.total is None:
            return f"Nothing is recommended {where}: XLA's total is not known"
        if self.name == "none":
            jax = self.baselines["jax"]
            against = "" if jax is None else f", {_less(jax - self.total)} JAX's own pairing"
            return f"Recommended {where}: no donation, {format_bytes(self.total)} a device{against}"
        own = self.name == "jax"
        what = {"jax": "JAX's own pairing", "now": "what is donated now"}.get(self.name)
        what = what or ("1 pair" if len(self.pairs) == 1 else f"{len(self.pairs)} pairs")
        save = "saves" if own or self.name == "now" or len(self.pairs) == 1 else "save"
        none = self.baselines["none"]
        if not self.saved or not none:
            known = "" if self.saved is None else f", {_less(self.saved)} no donation"
            return f"Recommended {where}: {what}, {format_bytes(self.total)} a device{known}"
        share = f"{format_bytes(self.saved)} of {format_bytes(none)} ({100 * self.saved / none:.0f} %)"
        over = self.saved_over_jax
        more = f", {format_bytes(over)} more than JAX's own pairing" if over else ""
        return f"Recommended {where}: {what}, which {save} {share} a device{more}"

    def lines(self) -> list[str]:
        """The sentence, and what is to be known besides."""
        more = [self.more] if self.more else []
        return [self.sentence, *more, *map(str, self.unsafe)]

    def __repr__(self) -> str:
        return "\n".join([*self.lines(), *([self._to_do()] if self.code else [])])

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{shown_in_html(line)}</p>" for line in self.lines())
        return f"{lines}<pre>{shown_in_html(self._to_do())}</pre>" if self.code else lines

    def _to_do(self) -> str:
        one_line = not self.code.startswith("#") and "\n" not in self.code
        return f"Change one line: {self.code}" if one_line else self.code


def _less(saved: int) -> str:
    return f"{format_bytes(saved)} less than" if saved else "as much as"
