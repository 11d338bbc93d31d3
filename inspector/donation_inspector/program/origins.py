"""The two origins of a program: a function that JAX lowered, and a file."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import pathlib
import reprlib
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import jax

from donation_inspector.analysis.fifo import pair_in_order
from donation_inspector.common.signature import Arrangement, Donation, Signature
from donation_inspector.common.visible import one_line
from donation_inspector.errors import IRError
from donation_inspector.frameworks import step
from donation_inspector.frameworks.call_site import NOWHERE, CallSite
from donation_inspector.frameworks.resizing import FIXED, Resizable, Shapes
from donation_inspector.frameworks.ways import Way, way_of
from donation_inspector.ir import entry, foreign, native
from donation_inspector.ir.importer import import_module
from donation_inspector.program import reading
from donation_inspector.xla import internals, lowering, modules, notes

if TYPE_CHECKING:
    from donation_inspector.xla.program import Program
    from donation_inspector.xla.targets import Target

_HELD_BYTES = 1 << 20
"""Inputs above this size are not kept alive by looking at them: an inspector must not fill the device."""


class FromFunction:
    """A function as JAX lowered it for the caller's arguments."""

    from_file = False

    def __init__(self, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], site: CallSite = NOWHERE) -> None:
        """Trace and lower, once; `site` is where the person's code names the function. Raises TraceError."""
        lowered = step.lower(fn, args, kwargs)
        self._held = tuple(HeldInput(value) for value in lowered.inputs)
        self._call = Resizable(fn, args, kwargs)
        self.way: Way | None = way_of(fn, site)
        self._take(dataclasses.replace(lowered, inputs=()))

    def _take(self, lowered: lowering.Lowered) -> None:
        self._lowered = lowered
        self.name: str = lowered.name
        self.module: Any = lowered.module
        self.signature: Signature = lowered.signature

    @property
    def platform(self) -> str:
        """The platform it was lowered for."""
        return self._lowered.platform

    @property
    def compiler_options(self) -> Mapping[str, Any]:
        """Those of its jit."""
        return self._lowered.compiler_options

    def on(self, platform: str) -> FromFunction:
        """Lowered again from the trace. Raises TraceError where there is none, or JAX cannot."""
        other = copy.copy(self)
        other._take(self._lowered.for_platform(platform))
        return other

    def resized(self, shapes: Shapes) -> FromFunction:
        """Traced again with these shapes. Raises IRError where there is no function, TraceError where JAX cannot."""
        other = FromFunction(*self._call.at(shapes))
        other.way = self.way
        return other

    def decide(self, leaves: frozenset[int]) -> Donation:
        """JAX's own pairing."""
        return lowering.decide(self._lowered, leaves)

    def decide_arranged(self, leaves: frozenset[int], arrangement: Arrangement) -> Donation | None:
        """JAX's own pairing of another order."""
        return lowering.decide_arranged(self._lowered, leaves, arrangement)

    def warned(self, leaves: frozenset[int], donation: Donation) -> frozenset[int]:
        """The leaves in JAX's warning "Some donated buffers were not usable"."""
        return frozenset(notes.unusable(self.signature, donation, leaves))

    def notes(self, leaves: frozenset[int], donation: Donation) -> tuple[str, ...]:
        """JAX's warnings and silences for this donated set; what tracing itself had to say."""
        signature = self.signature
        unusable = notes.unusable(signature, donation, leaves)
        of_set = [
            *([notes.unusable_note(signature, unusable)] if unusable else []),
            *notes.same_array_notes(signature, self._lowered.shared, leaves),
            *notes.dropped_note(signature, leaves),
        ]
        changing = {"unusable", "same array", "dropped"}
        of_trace = [note for note in (*self._lowered.warnings, *self._lowered.notes) if note.kind not in changing]
        return tuple(str(note) for note in (*of_set, *of_trace))

    def jaxpr(self) -> str | None:
        """The traced program as JAX prints it."""
        return self._lowered.jaxpr()

    def program(self, module: Any, target: Target | None) -> Program:
        """With the compile options that JAX itself would use."""
        return self._lowered.program(module, target)

    def values(self) -> tuple[Any, ...]:
        """The caller's arrays that are still alive."""
        return dataclasses.replace(self._lowered, inputs=self.inputs()).values()

    def inputs(self) -> tuple[Any, ...]:
        """The same by leaf: what was given for each flat argument, dropped ones included."""
        return tuple(held.value() for held in self._held)

    def gone(self) -> int:
        """How many of the caller's arrays were donated or let go since."""
        return sum(held.gone for held in self._held)

    def moved(self, leaf: int, value: Any) -> str | None:
        """Why JAX copies what is given for a flat argument before the call; None where it takes it as it lies."""
        return self._lowered.moved(leaf, value)


class HeldInput:
    """One of the caller's arrays, kept alive only while it is small."""

    def __init__(self, value: Any) -> None:
        # inside of a transformation there is no array yet
        self._value: Any = None if isinstance(value, internals.Tracer) else value
        self._reference: weakref.ref[Any] | None = None
        if getattr(self._value, "nbytes", 0) > _HELD_BYTES:
            # What nothing weak can be held of is kept, as the caller's own variable would.
            with contextlib.suppress(TypeError):
                self._reference, self._value = weakref.ref(value), None

    def value(self) -> Any | None:
        """The array; None once the caller let go of it or donated it, and where only a shape was given."""
        held = self._value if self._reference is None else self._reference()
        return None if self.gone or isinstance(held, jax.ShapeDtypeStruct) else held

    @property
    def gone(self) -> bool:
        """Whether the caller let go of the array or donated it."""
        held = self._value if self._reference is None else self._reference()
        deleted = getattr(held, "is_deleted", None)
        return (held is None and self._reference is not None) or (deleted is not None and deleted())


class FromFile:
    """StableHLO that somebody wrote down: MLIR text, bytecode, or a file with either."""

    from_file = True
    way: Way | None = None
    compiler_options: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, given: str | bytes | pathlib.Path, entry_name: str | None = None) -> None:
        """Parse it; `entry_name` names the function, None is for the rule of `entry.entry_function`. Raises IRError."""
        data, self.name = _read(given)
        self.module: Any = foreign.parse(data)
        if entry_name is not None:
            native.choose(self.module, entry_name.removeprefix("@"))
        func = entry.entry_function(import_module(self.module).module)
        self.signature: Signature = entry.read_signature(func)
        self._written = entry.read_donation(func)
        self._problems = entry.alias_problems(func)

    @property
    def platform(self) -> str:
        """This machine's default platform."""
        return modules.default_platform()

    def decide(self, leaves: frozenset[int]) -> Donation:
        """What the file says about these leaves; the others first in, first out."""
        return pair_in_order(self.signature, self._written, leaves)

    def decide_arranged(self, leaves: frozenset[int], arrangement: Arrangement) -> Donation | None:  # noqa: ARG002
        """A file is what it is: nobody gives it to JAX in another order."""
        return None

    def warned(self, leaves: frozenset[int], donation: Donation) -> frozenset[int]:  # noqa: ARG002
        """JAX says nothing about a file."""
        return frozenset()

    def notes(self, leaves: frozenset[int], donation: Donation) -> tuple[str, ...]:  # noqa: ARG002
        """What is wrong with the file's own donation, whatever is donated now."""
        return self._problems

    def jaxpr(self) -> str | None:
        """A file has none."""
        return None

    def on(self, platform: str) -> FromFile:  # noqa: ARG002
        """A file is what it is: XLA takes it for another platform, or refuses it."""
        return self

    def resized(self, shapes: Shapes) -> FromFile:  # noqa: ARG002
        """Raises IRError: the shapes are in the file."""
        raise IRError(FIXED)

    def program(self, module: Any, target: Target | None) -> Program:
        """For this machine's default backend where there is no target."""
        return modules.pack_module(module, self.name, self.signature.arguments, target)

    def values(self) -> tuple[Any, ...]:
        """A file comes without arrays."""
        return (None,) * modules.argument_count(self.module)

    def inputs(self) -> tuple[Any, ...]:
        """None of them either."""
        return (None,) * len(self.signature.arguments)

    def gone(self) -> int:
        """There never were any."""
        return 0


def _read(given: str | bytes | pathlib.Path) -> tuple[bytes | str, str]:
    """The module's text or bytecode, and the name to show."""
    if isinstance(given, bytes) or (isinstance(given, str) and ("\n" in given or "{" in given or not given.strip())):
        return given, "module"
    try:
        path = pathlib.Path(given)
    except TypeError:
        raise IRError(
            f"{reprlib.repr(given)} ({type(given).__name__}) is no MLIR text, bytecode or path. Give one of these; "
            "for a function, use inspect."
        ) from None
    return reading.read(path, "Give MLIR text, bytecode or a file."), one_line(path.name)
