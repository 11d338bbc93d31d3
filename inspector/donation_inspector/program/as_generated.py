"""The program that a line of code gives to JAX, and what JAX makes of it, from the one that is inspected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from donation_inspector.common.signature import Arrangement, Donation, Leaf
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.exporter import to_jaxlib
from donation_inspector.ir.reordering import reordered
from donation_inspector.passes.flags import set_donation

if TYPE_CHECKING:
    from donation_inspector.program.subject import Subject


@dataclass(frozen=True)
class HandedOver:
    """What a line of code gives to JAX, by the user's flat indices.

    `donated` are the arguments that it donates; `arguments` and `results` are all of them in the order in which JAX is
    given them. Unused arguments are dropped or kept as in the inspected program.
    """

    donated: frozenset[int]
    arguments: tuple[int, ...]
    results: tuple[int, ...]


def as_inspected(subject: Subject, donated: Set[int]) -> HandedOver:
    """The inspected program itself."""
    signature = subject.signature
    return HandedOver(frozenset(donated), _by_position(signature.arguments), _by_position(signature.results))


def as_written(subject: Subject, donated: Set[int]) -> HandedOver:
    """As a jit of the user's function gives it: in the user's own order."""
    signature = subject.signature
    arguments, results = (tuple(leaf.index for leaf in leaves) for leaves in (signature.arguments, signature.results))
    return HandedOver(frozenset(donated), arguments, results)


def as_paired(subject: Subject, pairs: Mapping[int, int], donated: Set[int]) -> HandedOver:
    """As `donation_inspector.jit` gives it for these pairs, where it is to donate `donated`, more than what has a pair.

    The results that take over a buffer come first, in the order of the arguments that give theirs. Where an argument of
    the user's is donated in parts, or in part without a pair, the donated leaves come before all others.
    """
    own = as_written(subject, donated)
    given = [*sorted(pairs), *sorted(own.donated - pairs.keys())]
    taken = [pairs[leaf] for leaf in sorted(pairs)]
    results = (*taken, *(result for result in own.results if result not in set(taken)))
    touched = [whole for whole in subject.wholes if not own.donated.isdisjoint(whole.leaves)]
    if len(pairs) == len(given) and all(own.donated.issuperset(whole.leaves) for whole in touched):
        return HandedOver(own.donated, own.arguments, results)
    return HandedOver(own.donated, (*given, *(leaf for leaf in own.arguments if leaf not in own.donated)), results)


def arrangement(subject: Subject, given: HandedOver) -> Arrangement:
    """The order of the entry function that JAX makes of it."""
    signature, type_ = subject.signature, subject.func.function_type
    return Arrangement(
        _placed([signature.arguments[leaf].position for leaf in given.arguments], len(type_.inputs)),
        _placed([signature.results[leaf].position for leaf in given.results], len(type_.outputs)),
    )


def jax_makes(subject: Subject, given: HandedOver) -> Donation | None:
    """JAX's own pairing of what it is given, by position in the inspected program; None where it is not known."""
    order = arrangement(subject, given)
    origin = subject.origin
    return origin.decide(given.donated) if order.changes_nothing else origin.decide_arranged(given.donated, order)


def module_of(subject: Subject, order: Arrangement, donation: Donation) -> Any:
    """A jaxlib module in that order, with a donation by position in the inspected program.

    Raises IRError where the entry function is not one block that returns.
    """
    module = reordered(subject.imported.module, order.arguments, order.results)
    set_donation(entry_function(module), order.applied_to(donation))
    return to_jaxlib(subject.imported, module)


def _by_position(leaves: Sequence[Leaf]) -> tuple[int, ...]:
    """All indices, those that JAX has dropped last."""
    return tuple(leaf.index for leaf in sorted(leaves, key=lambda leaf: (leaf.position is None, leaf.position or 0)))


def _placed(order: Sequence[int | None], count: int) -> tuple[int, ...]:
    """Old positions by new ones: those of the user's leaves in their places, in that order; the rest stays."""
    positions = [position for position in order if position is not None]
    placed = list(range(count))
    for place, position in zip(sorted(positions), positions, strict=True):
        placed[place] = position
    return tuple(placed)
