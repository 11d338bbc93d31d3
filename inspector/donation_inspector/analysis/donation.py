"""What JAX decided about each flat argument, and one sentence why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from donation_inspector.analysis.offers import find_offers
from donation_inspector.analysis.reasons import Reasons
from donation_inspector.common.signature import Donation, Shape, Signature, updated


class Verdict(StrEnum):
    """The outcome of donation for one argument.

    ALIASED: a result takes over its buffer (`tf.aliasing_output`; compiled to a may-alias).
    DONOR: left to XLA, which may use the buffer for a result of as many bytes (`jax.buffer_donor`).
    UNUSABLE: donated, and no result can take it; the caller's array stays.
    UNUSED: dropped before the program is made, because nothing reads it.
    NOT_DONATED: the program gets to read it only.
    SAVES_NOTHING: aliased, and once compiled as many bytes come back as copies: what XLA says, never JAX alone.
    """

    ALIASED = "aliased"
    DONOR = "donor"
    UNUSABLE = "unusable"
    UNUSED = "unused"
    NOT_DONATED = "not donated"
    SAVES_NOTHING = "aliased, saves nothing"


@dataclass(frozen=True, slots=True)
class Argument:
    """One flat argument: `index` counts the user's leaves, dropped ones included; `position` the entry function's
    arguments (None when dropped); `result` is the index of the result that takes over its buffer.

    `nbytes` is global, `nbytes_per_device` one device's shard; None means unknown. `donated`: the user asked for it.
    `sharding` and `spec` are as in `Leaf`: None on one device and where XLA is left to choose. `advised` is the index
    of the result that would take the buffer if `out_shardings` were as the reason says. `added_by` is the part of a
    framework that keeps it for itself, as "nnx.Optimizer"; None for what is the user's. `offered` is the index of the
    free result that could take the buffer, were it donated: each result is offered to one argument.
    """

    index: int
    path: str
    shape: Shape
    dtype: str
    nbytes: int | None
    shard_shape: Shape
    nbytes_per_device: int | None
    donated: bool
    verdict: Verdict
    result: int | None
    reason: str
    sharding: str | None
    position: int | None
    spec: str | None = None
    advised: int | None = None
    added_by: str | None = None
    offered: int | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One flat result; `argument` is the index of the argument whose buffer it takes over.

    `updates` is the path of the argument that it is the new value of, None where that is not plain. `added_by` is as
    in `Argument`.
    """

    index: int
    path: str
    shape: Shape
    dtype: str
    nbytes: int | None
    shard_shape: Shape
    nbytes_per_device: int | None
    argument: int | None
    sharding: str | None
    position: int | None
    spec: str | None = None
    updates: str | None = None
    added_by: str | None = None

    @property
    def title(self) -> str:
        """`params['w'], updated` for what is plainly an argument's new value, else the path."""
        return updated(self.updates) if self.updates else self.path


def verdicts(
    signature: Signature,
    donation: Donation,
    *,
    donated: frozenset[int],
    warned: frozenset[int],
    replaced: Mapping[int, int] = MappingProxyType({}),
) -> tuple[tuple[Argument, ...], tuple[Result, ...]]:
    """The verdict of every argument, as `donation` has it by position, and the results with what they take over.

    donated: indices of the arguments that the user asked to donate. warned: those that JAX named as unusable. replaced:
    the result that is an argument's own new value, as far as it is known.
    """
    taken = set(donation.aliases.values())
    taken_results = {leaf.index for leaf in signature.results if leaf.position in taken}
    offers = find_offers(signature, taken_results, donated, replaced)
    reasons = Reasons(signature, donation, donated, offers, replaced)
    arguments: list[Argument] = []
    for leaf in signature.arguments:
        asked = leaf.index in donated
        result = None
        if leaf.position is None:
            verdict, reason = Verdict.UNUSED, reasons.unused(asked)
        elif leaf.position in donation.aliases:
            result = reasons.result_at(donation.aliases[leaf.position])
            verdict, reason = Verdict.ALIASED, reasons.aliased(leaf, result)
        elif leaf.position in donation.donors:
            verdict, reason = Verdict.DONOR, reasons.donor(leaf)
        elif leaf.ignored is not None and not asked:
            verdict, reason = Verdict.NOT_DONATED, reasons.ignored(leaf, leaf.ignored)
        elif asked:
            verdict, reason = Verdict.UNUSABLE, reasons.unusable(leaf, warned=leaf.index in warned)
        else:
            verdict, reason = Verdict.NOT_DONATED, reasons.not_donated(leaf)
        arguments.append(
            Argument(
                index=leaf.index,
                path=leaf.path,
                shape=leaf.shape,
                dtype=leaf.dtype,
                nbytes=leaf.nbytes,
                shard_shape=leaf.shard_shape,
                nbytes_per_device=leaf.nbytes_per_device,
                donated=asked,
                verdict=verdict,
                result=None if result is None else result.index,
                reason=reason if leaf.added_by is None else f"added by {leaf.added_by}: {reason}",
                sharding=leaf.sharding,
                position=leaf.position,
                spec=leaf.spec,
                advised=reasons.advised(leaf) if verdict in (Verdict.DONOR, Verdict.UNUSABLE) else None,
                added_by=leaf.added_by,
                offered=offers[leaf.index].index if verdict is Verdict.NOT_DONATED and leaf.index in offers else None,
            )
        )
    taken_by = {argument.result: argument.index for argument in arguments if argument.result is not None}
    results = tuple(
        Result(
            index=leaf.index,
            path=leaf.path,
            shape=leaf.shape,
            dtype=leaf.dtype,
            nbytes=leaf.nbytes,
            shard_shape=leaf.shard_shape,
            nbytes_per_device=leaf.nbytes_per_device,
            argument=taken_by.get(leaf.index),
            sharding=leaf.sharding,
            position=leaf.position,
            spec=leaf.spec,
            updates=leaf.updates,
            added_by=leaf.added_by,
        )
        for leaf in signature.results
    )
    return tuple(arguments), results


def candidates(arguments: Sequence[Argument]) -> tuple[Argument, ...]:
    """The arguments worth donating: those to which a free result is offered.

    Most bytes first, those of unknown size last.
    """
    found = [argument for argument in arguments if argument.offered is not None]
    return tuple(sorted(found, key=lambda argument: -(argument.nbytes or 0)))
