"""Which donated argument gives its buffer to which result: the pairs that cost least, by `Interference`.

Within each class of equal buffers the pairs are a minimum-cost assignment; of assignments that cost the same, the one
with most of the pairs that first in, first out gives. A pair that is a certain copy is left out: the result would take
the buffer before its last use.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from donation_inspector.analysis.buffers.taken import Taken
from donation_inspector.analysis.dataflow import Dataflow
from donation_inspector.analysis.destination import destination_argument
from donation_inspector.analysis.interference import Interference, Level
from donation_inspector.common.signature import Leaf
from donation_inspector.ir.entry import read_donation, read_signature

COSTS: Mapping[Level, int] = {
    Level.IN_PLACE: 0,
    Level.ORDERED: 1,
    Level.LAST: 2,
    Level.UPDATED: 5,
    Level.TOGETHER: 6,
    Level.BEFORE: 12,
    Level.AFTER: 13,
    Level.MIXED: 18,
    Level.FUSED: 20,
}
"""What a pair costs where a likely copy costs 20; a certain one costs more than all other pairs together."""


def pair_by_live_range(
    func: FuncOp, *, cross_type: bool = False, excluded: Set[tuple[int, int]] = frozenset()
) -> dict[int, int]:
    """The result that takes over each donated argument's buffer, by position. The others have none that fits.

    `func` has one block that ends in `func.return`, and what stands at its arguments holds no contradiction
    (`entry.alias_problems`). Donated are the arguments with `tf.aliasing_output` or `jax.buffer_donor`. A pair that
    stands there is kept where first in, first out would not have given it, so that someone chose it, and where nothing
    else is known to fit: dynamic shapes, sizes on each device that the module does not tell. What materializes already
    is left as it is.

    No pair is a certain copy, and of those that were not kept there is an order of the program in which each buffer is
    taken after its last use. No pair is one of those `excluded`, nor one that writes over what is in the argument's
    buffer and still read (`buffers.taken`).

    Buffers are equal when type, size on one device, memory kind and layout are. With `cross_type`, what is left is
    paired where it takes equally many bytes of one memory.
    """
    donation = read_donation(func)
    arguments, results = _leaves(func)
    unwritten, unmaterialized = _open_positions(func)
    interference = Interference(Dataflow(func))
    taken = Taken(func)
    chosen = {
        argument: result
        for argument, result in _chosen(donation.aliases, arguments, results, unmaterialized).items()
        if interference.level(argument, result) is not Level.COPIED
        and (argument, result) not in excluded
        and taken.may_take(argument, result)
    }

    def pair_up(forbidden: Set[tuple[int, int]]) -> dict[int, int]:
        pairs = dict(chosen)
        for key_of in (_like, _bytes) if cross_type else (_like,):
            free_arguments = [position for position in sorted(donation.positions & unwritten) if position not in pairs]
            free_results = [position for position in sorted(unmaterialized) if position not in pairs.values()]
            inputs, outputs = _classes(free_arguments, arguments, key_of), _classes(free_results, results, key_of)
            for key in inputs.keys() & outputs.keys():
                unsound = {pair for pair in itertools.product(inputs[key], outputs[key]) if not taken.may_take(*pair)}
                pairs |= assign(interference, inputs[key], outputs[key], forbidden | excluded | unsound)
        return pairs

    pairs = without_cycle(interference, pair_up, chosen)
    return {argument: result for argument, result in pairs.items() if argument in unwritten}


def without_cycle(
    interference: Interference,
    pair_up: Callable[[Set[tuple[int, int]]], dict[int, int]],
    chosen: Mapping[int, int] = MappingProxyType({}),
) -> dict[int, int]:
    """What `pair_up` makes of the least promising pairs being forbidden, one after the other, until no pairs but the
    chosen ones wait for one another."""
    forbidden: set[tuple[int, int]] = set()
    while True:
        pairs = pair_up(forbidden)
        waiting = [pair for pair in find_cycle(interference, pairs) if pair not in chosen.items()]
        if not waiting:
            return pairs
        forbidden.add(max(waiting, key=lambda pair: (interference.level(*pair), pair[1])))


def assign(
    interference: Interference,
    inputs: Sequence[int],
    outputs: Sequence[int],
    forbidden: Set[tuple[int, int]] = frozenset(),
) -> dict[int, int]:
    """The cheapest pairs of these arguments and results, any of which could share a buffer; no certain copy and none
    that is forbidden."""
    # the whole of SciPy's optimization, which is slow to load, is for those who pair
    from scipy.optimize import linear_sum_assignment  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    cost = {
        (argument, result): COSTS.get(interference.level(argument, result)) for argument in inputs for result in outputs
    }
    for pair in forbidden & cost.keys():
        cost[pair] = None
    pairs = min(len(inputs), len(outputs))
    certain = 1 + pairs * max(COSTS.values())
    costs = np.array([certain if known is None else known for known in cost.values()], np.int64)
    costs = costs.reshape(len(inputs), len(outputs)) * (pairs + 1)
    # counts pairs out of order, not those that are left out: it can only decide between assignments that cost the same
    possible = np.array([known is not None for known in cost.values()]).reshape(costs.shape)
    costs += possible & ~np.eye(len(inputs), len(outputs), dtype=bool)
    rows, columns = cast("tuple[list[int], list[int]]", cast(Any, linear_sum_assignment)(costs))
    found = ((inputs[row], outputs[column]) for row, column in zip(rows, columns, strict=True))
    return {argument: result for argument, result in found if cost[argument, result] is not None}


def find_cycle(interference: Interference, pairs: Mapping[int, int]) -> list[tuple[int, int]]:
    """Pairs of which each waits for another one's result, round and round, so that one at least needs a copy; [] if
    there are none."""
    waits_for = {pair: interference.blocked_by(*pair) for pair in pairs.items()}
    made_by = {result: (argument, result) for argument, result in pairs.items()}
    remaining = {pair for pair, blocked_by in waits_for.items() if blocked_by}
    done = False
    while not done:
        bits = sum(1 << result for _, result in remaining)
        free = {pair for pair in remaining if not waits_for[pair] & bits}
        remaining -= free
        done = not free
    path: list[tuple[int, int]] = []
    pair = min(remaining, default=None)
    while pair is not None and pair not in path:
        path.append(pair)
        pair = min(made_by[result] for _, result in remaining if waits_for[pair] >> result & 1)
    return [] if pair is None else path[path.index(pair) :]


def _leaves(func: FuncOp) -> tuple[dict[int, tuple[Attribute, Leaf]], dict[int, tuple[Attribute, Leaf]]]:
    """Type and leaf of each argument and result that is a ranked tensor."""
    signature = read_signature(func)
    sides = (signature.arguments, func.function_type.inputs), (signature.results, func.function_type.outputs)
    arguments, results = (
        {
            leaf.position: (types.data[leaf.position], leaf)
            for leaf in leaves
            if leaf.position is not None and isinstance(types.data[leaf.position], TensorType)
        }
        for leaves, types in sides
    )
    return arguments, results


def _open_positions(func: FuncOp) -> tuple[frozenset[int], frozenset[int]]:
    """The arguments that nothing is materialized into, and the results that are no materialization."""
    written = {destination_argument(op) for op in func.walk() if isinstance(op, MaterializeInDestinationOp)}
    terminator = func.get_return_op()
    returned = () if terminator is None else terminator.operands
    arguments = frozenset(position for position, argument in enumerate(func.args) if argument not in written)
    results = (n for n, value in enumerate(returned) if not isinstance(value.owner, MaterializeInDestinationOp))
    return arguments, frozenset(results)


_Leaves = Mapping[int, tuple[Attribute, Leaf]]


def _chosen(
    aliases: Mapping[int, int], arguments: _Leaves, results: _Leaves, open_results: frozenset[int]
) -> dict[int, int]:
    """The pairs that stand there and stay."""
    by_class = _classes(sorted(open_results), results, _like)
    in_order: dict[int, int] = {}
    for key, members in _classes(sorted(aliases), arguments, _like).items():
        in_order.update(zip(members, by_class.get(key, ()), strict=False))
    return {
        argument: result
        for argument, result in aliases.items()
        if result in open_results and in_order.get(argument) != result
    }


def _classes(positions: Sequence[int], leaves: _Leaves, key_of: Any) -> dict[Hashable, list[int]]:
    classes: defaultdict[Hashable, list[int]] = defaultdict(list)
    for position in positions:
        key = None if position not in leaves else key_of(*leaves[position])
        if key is not None:
            classes[key].append(position)
    return dict(classes)


def _like(type_: Attribute, leaf: Leaf) -> Hashable | None:
    """Equal for buffers of which one can stand for the other; None where that is not known."""
    if None in leaf.shard_shape or leaf.layout == "auto":
        return None
    layout = None if leaf.layout == "default" else leaf.layout
    return type_, leaf.shard_shape, leaf.memory, layout


def _bytes(type_: Attribute, leaf: Leaf) -> Hashable | None:  # noqa: ARG001  # one of two keys
    return (
        (leaf.nbytes_per_device, leaf.memory) if leaf.nbytes_per_device and leaf.layout in {None, "default"} else None
    )
