"""Subject: what an Inspection is about, and everything about it that donation does not change.

One Subject is shared by all the Inspections that `donate` and `keep` lead to. Its parts are made when first asked for;
one lock keeps MLIR contexts to one thread at a time, since a widget asks from other threads than the cell that made it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

from donation_inspector.analysis.dataflow import Dataflow
from donation_inspector.analysis.interference import Interference
from donation_inspector.analysis.live_range import LiveRanges
from donation_inspector.analysis.memory import MemoryCurve, curve
from donation_inspector.analysis.replacement import find_replacements
from donation_inspector.analysis.successors import Successors
from donation_inspector.attribution.names import is_batch
from donation_inspector.common.forgetting import forget
from donation_inspector.common.garbage import collector_paused
from donation_inspector.common.signature import Arrangement, Donation, Signature
from donation_inspector.ir.entry import entry_function, is_one_block
from donation_inspector.ir.importer import Imported, import_module
from donation_inspector.ir.text import Text, pretty
from donation_inspector.program.answer_cache import AnswerCache
from donation_inspector.program.places import Places

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

    from donation_inspector.advice.recommendation import Recommendation
    from donation_inspector.bufferized.values import Bufferization
    from donation_inspector.frameworks.ways import Way
    from donation_inspector.questions.measure.answer import Measurement
    from donation_inspector.questions.verify.answer import DonatedArgument
    from donation_inspector.xla.program import Program
    from donation_inspector.xla.targets import Target


DonationKey = tuple[frozenset[tuple[int, int]], frozenset[int]]
PassKey = DonationKey | None
"""None where the pass made nothing that is compiled."""
_ANSWERS_BYTES = 128 << 20


def donation_key(donation: Donation) -> DonationKey:
    """What tells one donation from another: its pairs and its donors."""
    return frozenset(donation.aliases.items()), donation.donors


@dataclass(frozen=True)
class Whole:
    """One argument of the function as the user wrote it: the unit that `donate_argnames` knows."""

    name: str
    leaves: tuple[int, ...]
    togglable: bool
    """False where JAX dropped every leaf: there is nothing to donate."""


class Origin(Protocol):
    """Where a program comes from: what only a JAX lowering, or only a file, can say about it."""

    @property
    def name(self) -> str: ...
    @property
    def module(self) -> Any:
        """The `jaxlib.mlir.ir.Module`: cloned, never mutated."""
        ...

    @property
    def signature(self) -> Signature: ...
    @property
    def platform(self) -> str: ...
    def decide(self, leaves: frozenset[int]) -> Donation:
        """What becomes of exactly these donated leaves."""
        ...

    def decide_arranged(self, leaves: frozenset[int], arrangement: Arrangement) -> Donation | None:
        """The same where JAX is given the program in another order, by position in this one; None where that is not
        known."""
        ...

    def warned(self, leaves: frozenset[int], donation: Donation) -> frozenset[int]:
        """Those of the donated leaves that JAX names in its warning."""
        ...

    def notes(self, leaves: frozenset[int], donation: Donation) -> tuple[str, ...]:
        """What is to be told when these leaves are donated, silent cases among it."""
        ...

    @property
    def way(self) -> Way | None:
        """How the function is jitted; None where there is none."""
        ...

    @property
    def compiler_options(self) -> Mapping[str, Any]:
        """What the function's jit has XLA compile it with; a file sets nothing."""
        ...

    @property
    def from_file(self) -> bool:
        """Whether it is somebody's file: what it calls is held against what XLA answers for before it is run."""
        ...

    def jaxpr(self) -> str | None: ...
    def on(self, platform: str) -> Origin:
        """The same program for another platform. Raises TraceError where JAX cannot lower it for that one."""
        ...

    def resized(self, shapes: Mapping[int, tuple[int, ...]]) -> Origin:
        """The same function for other shapes of these leaves.

        Raises IRError where there is no function, PathError for arrays whose shape cannot be changed, TraceError where
        JAX cannot trace or lower it.
        """
        ...

    def program(self, module: Any, target: Target | None) -> Program:
        """What a child process needs to compile `module`, a clone with other donation attributes.

        `target` None is the device that the program was lowered for. Raises CompileError where it cannot be compiled.
        """
        ...

    def values(self) -> tuple[Any, ...]:
        """One entry for each position of the entry function: the caller's array, None where there is none any more."""
        ...

    def inputs(self) -> tuple[Any, ...]:
        """One entry for each flat argument, likewise."""
        ...

    def gone(self) -> int:
        """How many of the caller's arrays were donated or let go since."""
        ...


@dataclass(eq=False)
class Subject:
    """A program from its origin, with what is derived from it once."""

    origin: Origin
    lock: threading.RLock = field(default_factory=threading.RLock)
    answers: AnswerCache = field(default_factory=lambda: AnswerCache(_ANSWERS_BYTES))
    """What XLA made of it, and comparisons: they outlive a toggle and its return."""
    measurements: dict[tuple[DonationKey, PassKey], Measurement] = field(default_factory=dict[Any, Any])
    """By donation and the pass's donation."""
    verified: dict[frozenset[int], tuple[DonatedArgument, ...]] = field(default_factory=dict[Any, Any])
    """What became of the donated arguments in the user's own call, by the leaves that are donated."""
    bufferizations: dict[tuple[DonationKey, str], Bufferization] = field(default_factory=dict[Any, Any])
    """By donation and pipeline."""
    recommendations: dict[frozenset[int], Recommendation] = field(default_factory=dict[Any, Any])
    """The latest one for each donated set, by leaf indices."""
    asked: dict[str, Target] = field(default_factory=dict[str, "Target"])
    """The targets that it was compared for, by name, the latest last."""
    elsewhere: dict[str, Subject] = field(default_factory=dict[str, "Subject"])
    """The same program for other platforms."""
    at_sizes: dict[frozenset[tuple[int, tuple[int, ...]]], Subject] = field(default_factory=dict[Any, "Subject"])
    """The same function for other shapes, by leaf index and shape."""

    def resized(self, shapes: Mapping[int, tuple[int, ...]]) -> Subject:
        """The same function for other shapes of these leaves, lowered once. Raises as `Origin.resized`."""
        if all(self.signature.arguments[leaf].shape == shape for leaf, shape in shapes.items()):
            return self
        key = frozenset(shapes.items())
        with self.lock:
            if key not in self.at_sizes:
                self.at_sizes[key] = Subject(self.origin.resized(shapes))
            return self.at_sizes[key]

    def on(self, platform: str) -> Subject:
        """The same program for a platform, lowered once. Raises TraceError."""
        if platform == self.origin.platform:
            return self
        with self.lock:
            if platform not in self.elsewhere:
                origin = self.origin.on(platform)
                self.elsewhere[platform] = self if origin is self.origin else Subject(origin)
            return self.elsewhere[platform]

    def forget(self) -> None:
        """Let go of what is made of the module, and is made again when it is asked for."""
        with self.lock:
            forget(self)

    @property
    def signature(self) -> Signature:
        """The user's flat arguments and results."""
        return self.origin.signature

    @cached_property
    def imported(self) -> Imported:
        """The module as xDSL IR."""
        with self.lock:
            return import_module(self.origin.module)

    @cached_property
    def func(self) -> FuncOp:
        """The entry function. Raises IRError where the module has none."""
        return entry_function(self.imported.module)

    @cached_property
    def text(self) -> Text:
        """The module as pretty StableHLO, as lowered."""
        with self.lock:
            return pretty(self.origin.module)

    @cached_property
    def jaxpr(self) -> str | None:
        """The jaxpr's text, None where JAX gives none."""
        return self.origin.jaxpr()

    @cached_property
    def undonated(self) -> Donation:
        """What stands where nothing is donated: a `jax.Ref` is written in its own buffer whatever is donated."""
        return self.origin.decide(frozenset())

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
        with self.lock, collector_paused():
            return LiveRanges(self.func, names=self.argument_paths)

    @cached_property
    def places(self) -> Places:
        """Where its operations come from."""
        with self.lock:
            return Places(self)

    @cached_property
    def memory(self) -> MemoryCurve:
        """The curve with nothing donated."""
        return curve(self.ranges)

    @cached_property
    def dataflow(self) -> Dataflow | None:
        """What depends on what; None where the entry function is not one block that returns."""
        with self.lock, collector_paused():
            return Dataflow(self.func) if is_one_block(self.func) else None

    @cached_property
    def interference(self) -> Interference | None:
        """Which of its values may share a buffer; None where the entry function is not one block that returns."""
        with self.lock:
            return None if self.dataflow is None else Interference(self.dataflow)

    @cached_property
    def replaced(self) -> Mapping[int, int] | None:
        """The result that comes back in the place of each argument, by flat index, as far as it can be told.

        None where the entry function is not one block that returns: nothing is known of what is made from what.
        """
        with self.lock, collector_paused():
            if self.dataflow is None:
                return None
            batch = {leaf.index for leaf in self.signature.arguments if is_batch(leaf.path)}
            # asked for where paths and types leave it open alone: it takes its time
            interference = lambda: cast(Interference, self.interference)  # noqa: E731
            return find_replacements(self.signature, Successors(self.dataflow), interference, batch)

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
