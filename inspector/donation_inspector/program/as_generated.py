"""The program that a `donation_inspector.jit` with chosen pairs gives to JAX, made from the one that is inspected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from donation_inspector.common.signature import Donation
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.exporter import to_jaxlib
from donation_inspector.ir.reordering import reordered
from donation_inspector.passes.flags import set_donation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from donation_inspector.program.subject import Subject


def handed_over(subject: Subject, pairs: Mapping[int, int]) -> Any:
    """A jaxlib module: the results that take over a buffer first, in the order of the arguments that give theirs.

    `pairs` is by position. Where an argument of the user's is donated in parts, its donated leaves come before all
    others. What JAX has dropped as unused stays away.
    """
    signature = subject.signature
    takers = [leaf.position for leaf in signature.results if leaf.position is not None]
    givers = [leaf.position for leaf in signature.arguments if leaf.position is not None]
    donated = [position for position in givers if position in pairs]
    results = _ahead([pairs[position] for position in donated], takers, len(subject.func.function_type.outputs))
    count = len(subject.func.function_type.inputs)
    arguments = _ahead(donated, givers, count) if _in_parts(subject, donated) else list(range(count))
    module = reordered(subject.imported.module, arguments, results)
    aliases = {arguments.index(argument): results.index(result) for argument, result in pairs.items()}
    set_donation(entry_function(module), Donation(aliases))
    return to_jaxlib(subject.imported, module)


def _in_parts(subject: Subject, donated: Iterable[int]) -> bool:
    given = {subject.leaf_of_argument[position] for position in donated}
    return any(given.intersection(whole.leaves) and not given.issuperset(whole.leaves) for whole in subject.wholes)


def _ahead(first: Sequence[int], among: Iterable[int], count: int) -> list[int]:
    """Old positions by new ones: those of `among` in their places, `first` before the others; the rest stays."""
    places = sorted(among)
    order = list(range(count))
    for place, position in zip(places, [*first, *(one for one in places if one not in set(first))], strict=True):
        order[place] = position
    return order
