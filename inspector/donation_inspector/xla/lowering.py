"""Trace and lower once, in the caller's thread, and keep everything the inspector asks about the outcome."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax

from donation_inspector.common.signature import Arrangement, Donation, Signature
from donation_inspector.common.visible import one_line
from donation_inspector.errors import DeletedError, TraceError
from donation_inspector.xla import attributes, internals, notes, packing, placement
from donation_inspector.xla.decide import Pairing, agrees, known_here, lower_again
from donation_inspector.xla.facts import Facts, read_facts
from donation_inspector.xla.leaves import Name, argument_names, read_signature, result_names, traced_names
from donation_inspector.xla.notes import Note
from donation_inspector.xla.program import Program
from donation_inspector.xla.relocation import why_moved
from donation_inspector.xla.stage import Stage, attempt, lower_stage, said, stage
from donation_inspector.xla.targets import Target

Names = tuple[Sequence[Name], Sequence[Name]]
Rename = Callable[[Sequence[Name], Sequence[Name]], Names]
"""From JAX's names of the flat arguments and results to a framework's, one for one."""


@dataclass(frozen=True, eq=False)
class Lowered:
    """A function as JAX lowered it, with the user's names. Not `jax.stages.Lowered`, which it is made from."""

    name: str
    signature: Signature
    donation: Donation
    """What JAX decided for the donation the function asks for."""
    warnings: tuple[Note, ...]
    notes: tuple[Note, ...]
    inputs: tuple[Any, ...]
    """One per flat argument: the caller's array or scalar, or a `jax.ShapeDtypeStruct`."""
    shared: tuple[tuple[int, ...], ...]
    """Groups of leaf indices at which one and the same array object was given."""
    _facts: Facts
    _traced: jax.stages.Traced | None
    _rename: Rename | None = None

    @property
    def module(self) -> Any:
        """The lowered `jaxlib.mlir.ir.Module`, the one JAX compiles: clone it, never mutate it."""
        return self._facts.module

    @property
    def platform(self) -> str:
        """The platform of the client that compiles it, as "cpu" or "cuda"."""
        return str(self._facts.backend.platform)

    @property
    def devices(self) -> int:
        """How many devices the program runs on."""
        return self._facts.partitions

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        """The axis sizes of the mesh that the program is written for, () where there is none."""
        return attributes.mesh_shape(self.module, self.devices)

    @property
    def compiler_options(self) -> dict[str, Any]:
        """What the user's jit has XLA compile it with."""
        return dict(self._facts.compiler_options)

    def for_platform(self, platform: str) -> Lowered:
        """The same program lowered for another platform ("tpu", "cuda"), of which no device need be here.

        Where only a lowering was given there is nothing to lower again: it stays as it is, and XLA takes it for the
        other platform or refuses it.

        Raises:
            TraceError: JAX cannot lower it for that one, as a kernel that is written for another.
        """
        if self._traced is None or platform in self._facts.platforms:
            return self
        staged = Stage(self.name, self._traced, None, self.inputs, order=self._facts.order)
        return from_stage(staged, self._rename, platform)

    def jaxpr(self) -> str | None:
        """The traced program as JAX prints it; None where only a lowering was given."""
        return None if self._traced is None else str(self._traced.jaxpr)

    def program(self, module: Any = None, target: Target | None = None) -> Program:
        """What a child process compiles: `module`, or the lowered one, for a target, or for what it was lowered for.

        `module` must have the same entry arguments.

        Raises:
            CompileError: the program runs on more devices than there are.
        """
        return packing.pack(self._facts, self.module if module is None else module, self.name, target)

    def values(self) -> tuple[Any, ...]:
        """What stands at each position of the entry function: `inputs` of the kept leaves, the arrays that JAX hoisted
        out as arguments, `jax.Ref`s; None for sizes and tokens."""
        facts = self._facts
        kept = tuple(self.inputs[leaf] for leaf in facts.kept)
        return (*(None,) * (facts.dimensions + facts.tokens), *facts.constants, *kept, *facts.references)

    def moved(self, leaf: int, value: Any) -> str | None:
        """Why JAX copies what is given for a flat argument before the call; None where it takes it as it lies."""
        return why_moved(self._facts, leaf, value) if isinstance(value, jax.Array) else None

    @cached_property
    def _pairing(self) -> Pairing | None:
        if not known_here():
            return None
        pairing = Pairing.of(self._facts)
        return pairing if agrees(pairing) else None


def lower(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Lowered:
    """Trace and lower what `di.inspect` takes; nothing is executed and nothing of the caller's is changed.

    Raises:
        TraceError: with what is wrong and what to do.
    """
    return from_stage(stage(fn, args, kwargs))


def from_stage(staged: Stage, rename: Rename | None = None, platform: str | None = None) -> Lowered:
    """Lower a traced function, for a platform or for the devices it was traced for.

    `rename` may put a framework's names in place of JAX's.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lowered = staged.lowered or _lower(staged, rename, platform)
    facts = read_facts(lowered, staged.order, staged.traced)
    if not facts.leaf_avals and not facts.out_avals:
        raise TraceError(f"{facts.name} takes and returns no arrays: there is nothing to inspect.")
    names = argument_names(facts.debug_info, lowered.args_info, len(facts.leaf_avals)), result_names(facts)
    signature = read_signature(facts, *(names if rename is None else rename(*names)))
    inputs = _inputs(facts, staged.inputs)
    _refuse_deleted(signature, inputs)
    donation = attributes.read_donation(facts.module)
    shared = notes.same_arrays(inputs)
    asked = frozenset(leaf.index for leaf in signature.arguments if leaf.donated)
    donated = asked
    if staged.is_call and internals.config.jax_disable_jit:
        # JAX lowers as if it were off, and calls the function without what it lowered
        signature, donation, donated = notes.without_donation(signature), Donation(), frozenset[int]()
    told = (*_off_notes(signature, asked, staged), *_notes(signature, donated, staged))
    return Lowered(
        name=one_line(staged.name or str(facts.name)),
        signature=notes.with_ignored(signature, told),
        donation=donation,
        warnings=_warnings(signature, donation, donated, shared, (*staged.said, *said(caught))),
        notes=told,
        inputs=inputs,
        shared=shared,
        _facts=facts,
        _traced=staged.traced,
        _rename=rename,
    )


def _lower(staged: Stage, rename: Rename | None, platform: str | None) -> jax.stages.Lowered:
    try:
        return attempt(staged.name, lower_stage, (staged, platform), {})
    except TraceError as error:
        apart = placement.apart(staged.inputs or ())
        if not apart or staged.traced is None:
            raise
        names = traced_names(staged.traced)
        arguments, _ = names if rename is None else rename(*names)
        raise TraceError(placement.told(staged.name, apart, arguments)) from error


def _refuse_deleted(signature: Signature, inputs: Sequence[Any]) -> None:
    deleted = {
        leaf.path: value
        for leaf, value in zip(signature.arguments, inputs, strict=True)
        if isinstance(value, jax.Array) and not isinstance(value, internals.Tracer) and value.is_deleted()
    }
    if deleted:
        raise DeletedError(list(deleted), list(deleted.values()))


def _inputs(facts: Facts, given: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if given is not None and len(given) == len(facts.leaf_avals):
        return given
    return tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in facts.leaf_avals)


def _warnings(
    signature: Signature,
    donation: Donation,
    donated: frozenset[int],
    shared: Sequence[Sequence[int]],
    texts: Sequence[str],
) -> tuple[Note, ...]:
    unusable = notes.unusable(signature, donation, donated)
    return (
        *([notes.unusable_note(signature, unusable)] if unusable else []),
        *notes.same_array_notes(signature, shared, donated),
        *(Note("jax", text) for text in texts),
    )


def _off_notes(signature: Signature, asked: frozenset[int], staged: Stage) -> tuple[Note, ...]:
    """That a setting of JAX turns off the donation that a function asks for."""
    if not staged.is_call:
        return ()
    if internals.config.jax_disable_jit and asked:
        return (notes.off_note("disable_jit", tuple(sorted(asked))),)
    # here JAX itself drops it before it lowers
    if internals.config.jax_debug_nans and not asked and staged.asked != ():
        return (notes.off_note("debug_nans", _leaves_of(signature, staged.asked or ())),)
    return ()


def _notes(signature: Signature, donated: frozenset[int], staged: Stage) -> tuple[Note, ...]:
    jaxpr: Any = None if staged.traced is None else staged.traced.jaxpr
    return (
        *notes.dropped_note(signature, donated),
        *([] if jaxpr is None else notes.inner_jit_notes(jaxpr, len(signature.arguments))),
        *([] if jaxpr is None else notes.effect_notes(jaxpr)),
        *([notes.leak_note(staged.put_back)] if staged.leaked else []),
    )


def _leaves_of(signature: Signature, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(leaf.index for leaf in signature.arguments if leaf.root in names)


def decide(lowered: Lowered, leaves: frozenset[int]) -> Donation:
    """What JAX itself would decide if exactly these flat leaves were donated; dropped leaves have no outcome.

    Asks JAX's own pairing with the lowering's own inputs. Where this JAX pairs in another way, it lowers again.

    Raises:
        TraceError: JAX refuses this set, or a lowering alone was given to a JAX whose pairing is not known.
    """
    pairing = lowered._pairing  # pyright: ignore[reportPrivateUsage]
    if pairing is not None:
        return pairing.decide(leaves)
    traced = lowered._traced  # pyright: ignore[reportPrivateUsage]
    if traced is None:
        raise TraceError(
            f"jax {jax.__version__} pairs donated arguments in a way that is not known here, and a lowering cannot be "
            "lowered again. Give the function and its arguments, or what .trace() returned."
        )
    facts = lowered._facts  # pyright: ignore[reportPrivateUsage]
    given = frozenset(argument for argument, leaf in enumerate(facts.order.arguments) if leaf in leaves)
    return lower_again(traced, given, facts.platforms)


def decide_arranged(lowered: Lowered, leaves: frozenset[int], arrangement: Arrangement) -> Donation | None:
    """The same where JAX is given the arguments and results in another order, by position in this lowering.

    None where JAX refuses this set, and where its pairing is not known here: there is nothing to lower again.
    """
    pairing = lowered._pairing  # pyright: ignore[reportPrivateUsage]
    try:
        return None if pairing is None else pairing.decide(leaves, arrangement)
    except TraceError:
        return None
