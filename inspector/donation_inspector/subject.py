"""Subject: what an Inspection is about, and everything about it that donation does not change.

One Subject is shared by all the Inspections that `donate` and `keep` lead to. Its parts are made when first asked for;
one lock keeps MLIR contexts to one thread at a time, since a widget asks from other threads than the cell that made it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from donation_inspector.analysis.live_range import LiveRanges
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.importer import Imported, import_module
from donation_inspector.ir.text import Text, pretty
from donation_inspector.signature import Donation, Signature

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

_HELD_BYTES = 1 << 20
"""Inputs above this size are not kept alive by looking at them: an inspector must not fill the device."""


@dataclass(frozen=True)
class Whole:
    """One argument of the function as the user wrote it: the unit that `donate_argnames` knows."""

    name: str
    leaves: tuple[int, ...]
    togglable: bool
    """False where JAX dropped every leaf: there is nothing to donate."""


@dataclass(eq=False)
class Subject:
    """The traced program. `decide` says what JAX makes of another set of donated leaves, `warned` those it warns about."""

    name: str
    module: Any
    signature: Signature
    donation: Donation
    decide: Callable[[frozenset[int]], tuple[Donation, frozenset[int]]]
    lowered: Any | None
    notes: tuple[str, ...] = ()
    lock: threading.RLock = field(default_factory=threading.RLock)
    answers: dict[object, Any] = field(default_factory=dict[object, Any])
    """Finished comparisons and measurements: they outlive a toggle and its return."""

    @cached_property
    def imported(self) -> Imported:
        """The module as xDSL IR."""
        with self.lock:
            return import_module(self.module)

    @cached_property
    def func(self) -> FuncOp:
        """The entry function. Raises IRError where the module has none."""
        return entry_function(self.imported.module)

    @cached_property
    def text(self) -> Text:
        """The module as pretty StableHLO, as lowered."""
        with self.lock:
            return pretty(self.module)

    @cached_property
    def jaxpr(self) -> str | None:
        """The jaxpr's text, None where JAX gives none."""
        return None if self.lowered is None else self.lowered.jaxpr()

    @cached_property
    def argument_paths(self) -> Mapping[int, str]:
        """The path of each user argument by position."""
        return {leaf.position: leaf.path for leaf in self.signature.arguments if leaf.position is not None}

    @cached_property
    def leaf_of_argument(self) -> Mapping[int, int]:
        """The leaf index of each user argument by position."""
        return {leaf.position: leaf.index for leaf in self.signature.arguments if leaf.position is not None}

    @cached_property
    def leaf_of_result(self) -> Mapping[int, int]:
        """The leaf index of each user result by position."""
        return {leaf.position: leaf.index for leaf in self.signature.results if leaf.position is not None}

    @cached_property
    def ranges(self) -> LiveRanges:
        """Live ranges with nothing donated."""
        with self.lock:
            return LiveRanges(self.func, names=self.argument_paths)

    @cached_property
    def wholes(self) -> tuple[Whole, ...]:
        """The arguments as the user wrote them, in order."""
        leaves: dict[str, list[int]] = {}
        for leaf in self.signature.arguments:
            leaves.setdefault(leaf.root, []).append(leaf.index)
        kept = {leaf.index for leaf in self.signature.arguments if leaf.position is not None}
        return tuple(
            Whole(name, tuple(indices), togglable=any(index in kept for index in indices))
            for name, indices in leaves.items()
        )


class HeldInput:
    """One of the caller's arrays, kept alive only while it is small.

    `value()` is the array, or None once the caller let go of it or donated it.
    """

    def __init__(self, value: Any) -> None:
        self._value: Any = value
        self._reference: weakref.ref[Any] | None = None
        if getattr(value, "nbytes", 0) > _HELD_BYTES:
            try:
                self._reference, self._value = weakref.ref(value), None
            except TypeError:
                # Nothing weak can be held of it: keep it, as the caller's own variable would.
                self._reference = None

    def value(self) -> Any | None:
        """The array while it can still be read."""
        held = self._value if self._reference is None else self._reference()
        deleted = getattr(held, "is_deleted", None)
        return None if deleted is not None and deleted() else held
