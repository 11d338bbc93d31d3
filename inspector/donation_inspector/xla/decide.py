"""JAX's own pairing for another donated set, without lowering again.

JAX decides donation inside its lowering, by types, layouts, memory kinds and shardings alone. Its pairing function is
private and there is no public way to ask it; it is called here with the very inputs the lowering gave it, together
with the few lines of `lower_jaxpr_to_module` around it. `agrees` holds that against what the lowering wrote, once per
lowering; where it does not hold, or JAX's function has other parameters, the program is lowered again.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from donation_inspector.common.signature import Arrangement, Donation
from donation_inspector.errors import TraceError
from donation_inspector.xla import attributes, internals
from donation_inspector.xla.facts import Facts, sharded

PARAMETERS = (
    "input_output_aliases",
    "avals_in",
    "avals_out",
    "donated_args",
    "arg_memory_kinds",
    "result_memory_kinds",
    "in_layouts",
    "out_layouts",
    "result_shardings",
)
"""The parameters of JAX's pairing function that this module knows how to fill (jax 0.9.0 to 0.10.2)."""


def known_here() -> bool:
    """Whether this JAX's pairing function is the one that `Pairing` knows."""
    function = getattr(internals.mlir, "_set_up_aliases", None)
    return function is not None and tuple(inspect.signature(function).parameters) == PARAMETERS


@dataclass(frozen=True, eq=False)
class Pairing:
    """One lowering's inputs to JAX's pairing, all but the donated set."""

    facts: Facts
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    in_memory_kinds: tuple[str | None, ...] | None
    out_memory_kinds: tuple[str | None, ...] | None
    unspecified_results: bool
    """Several partitions and a result whose sharding XLA will choose: what JAX cannot pair becomes a donor."""
    supported: bool
    """Whether the platform takes donation at all."""

    @staticmethod
    def of(facts: Facts) -> Pairing:
        """Read the inputs off a lowering."""
        memory_kinds = attributes.has_memory_kinds(facts.module)
        return Pairing(
            facts=facts,
            in_avals=tuple(map(sharded, facts.in_avals, facts.in_shardings)),
            out_avals=tuple(map(sharded, facts.out_avals, facts.out_shardings)),
            in_memory_kinds=_memory_kinds(facts.in_shardings) if memory_kinds else None,
            out_memory_kinds=_memory_kinds(facts.out_shardings) if memory_kinds else None,
            unspecified_results=facts.partitions > 1
            and any(s is None or internals.mlir.contains_unconstrained(s) for s in facts.out_shardings),
            supported=any(p in internals.mlir._platforms_with_donation for p in facts.platforms),
        )

    def decide(self, leaves: frozenset[int], arrangement: Arrangement | None = None) -> Donation:
        """JAX's outcome when exactly these user leaves are donated; dropped leaves have none.

        `arrangement` is another order in which JAX is given the arguments and results; the outcome is by position in
        this lowering all the same.
        """
        facts = self.facts
        constants, references = len(facts.constants), len(facts.references)
        donated = [False] * constants + [leaf in leaves for leaf in facts.kept] + [False] * references
        if not self.supported:
            return self._by_position(facts.forced_aliases or (), ())
        inputs, outputs = self._order(arrangement)

        def at(order: Sequence[int], values: Sequence[Any] | None) -> list[Any] | None:
            return None if values is None else [values[index] for index in order]

        forced = at(inputs, facts.forced_aliases)
        try:
            aliases, left, donors = internals.mlir._set_up_aliases(
                forced and [None if result is None else outputs.index(result) for result in forced],
                at(inputs, self.in_avals),
                at(outputs, self.out_avals),
                at(inputs, donated),
                at(inputs, self.in_memory_kinds),
                at(outputs, self.out_memory_kinds),
                at(inputs, facts.in_layouts),
                at(outputs, facts.out_layouts),
                at(outputs, facts.out_shardings) if facts.partitions > 1 else None,
            )
        except ValueError as error:
            raise TraceError(f"JAX refuses to donate these arguments together: {error}") from error
        donor_flags = list(donors or [False] * len(donated))
        if self.unspecified_results:
            donor_flags = [flag or unpaired for flag, unpaired in zip(donor_flags, left, strict=True)]
        taken: dict[int, int | None] = dict(zip(inputs, aliases, strict=True))
        flags: dict[int, bool] = dict(zip(inputs, donor_flags, strict=True))
        places = [taken[index] for index in range(len(inputs))]
        return self._by_position(
            [None if place is None else outputs[place] for place in places],
            [flags[index] for index in range(len(inputs))],
        )

    def _order(self, arrangement: Arrangement | None) -> tuple[Sequence[int], Sequence[int]]:
        """The indices among `in_avals` and `out_avals`, in the order of an arrangement of the entry function."""
        if arrangement is None:
            return range(len(self.in_avals)), range(len(self.out_avals))
        before, tokens = self.facts.dimensions + self.facts.tokens, self.facts.tokens
        return (
            [position - before for position in arrangement.arguments[before:]],
            [position - tokens for position in arrangement.results[tokens:]],
        )

    def _by_position(self, aliases: Sequence[int | None], donors: Sequence[bool]) -> Donation:
        before, tokens = self.facts.dimensions + self.facts.tokens, self.facts.tokens
        return Donation(
            MappingProxyType({before + i: tokens + o for i, o in enumerate(aliases) if o is not None}),
            frozenset(before + i for i, donor in enumerate(donors) if donor),
        )


def _memory_kinds(shardings: Sequence[Any]) -> tuple[str | None, ...]:
    return tuple(None if sharding is None else sharding.memory_kind for sharding in shardings)


def agrees(pairing: Pairing) -> bool:
    """Whether `Pairing` gives what the lowering itself wrote for its own donated set."""
    facts = pairing.facts
    own = frozenset(i for i, donated in enumerate(facts.leaf_donated) if donated)
    return pairing.decide(own) == attributes.read_donation(facts.module)


def with_donated(traced: Any, leaves: frozenset[int]) -> Any:
    """A copy of a `jax.stages.Traced` that donates exactly these user leaves.

    Public API donates whole arguments only, and would trace again.
    """
    other = copy.copy(traced)
    flags: Sequence[bool] = traced._params["donated_invars"]
    user_leaves: int = traced._in_tree.num_leaves
    ahead = len(flags) - user_leaves
    donated = (False,) * ahead + tuple(i in leaves for i in range(user_leaves))
    other._params = {**traced._params, "donated_invars": donated}
    other._lojax = None
    return other


def lower_again(traced: Any, leaves: frozenset[int], platforms: tuple[str, ...]) -> Donation:
    """JAX's outcome by a real second lowering for the same platforms."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lowered = with_donated(traced, leaves).lower(lowering_platforms=platforms)
        return attributes.read_donation(lowered.compiler_ir())
