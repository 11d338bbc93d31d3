"""`di.jit`: a function with chosen pairs, seen with the user's own arguments and results in their own order."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from donation_inspector.donating.function import DonatingFunction
from donation_inspector.donating.returned import Returned
from donation_inspector.donating.staged import Staged
from donation_inspector.donating.steps import SplitStep, Step
from donation_inspector.xla import lowering
from donation_inspector.xla.facts import Order
from donation_inspector.xla.leaves import Name
from donation_inspector.xla.lowering import Lowered
from donation_inspector.xla.stage import Stage, attempt, flat_inputs, stage, trace


def lower(fn: DonatingFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Lowered:
    """Trace and lower what `di.jit` made with pairs.

    Raises:
        TraceError: as `lowering.lower`, or the pairs do not fit; PathError: as `di.jit`.
    """
    name = str(getattr(fn, "__name__", type(fn).__name__))
    step: Step = attempt(name, fn.step, args, kwargs, fn)
    given, named = step.given(args, dict(kwargs))
    if isinstance(step, SplitStep):
        inputs: Sequence[Any] | None = jax.tree.leaves(step.dynamic(args, dict(kwargs)))
    else:
        inputs = flat_inputs(step.jitted, args, kwargs)
    return _in_order(trace(step.jitted, given, named, name=name, inputs=inputs), step)


def of_stage(staged: Staged, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Lowered:
    """Lower what `trace` or `lower` of such a function gave.

    Raises:
        TraceError: as `lowering.lower`.
    """
    return _in_order(stage(staged, args, kwargs), staged.step)


def _in_order(staged: Stage, step: Step) -> Lowered:
    names = [Name(root, rest) for root, rest in step.names] if isinstance(step, SplitStep) else None
    made: Any = staged.traced or staged.lowered
    tree = made.out_tree
    returned = tree.unflatten(range(tree.num_leaves))
    results = range(tree.num_leaves)
    if isinstance(returned, Returned):
        tree, results = returned.order.tree, returned.order.leaves
    arguments = step.order if isinstance(step, SplitStep) else range(len(jax.tree.leaves(made.args_info)))
    order = Order(tuple(arguments), tuple(results), tree)

    def rename(given: Sequence[Name], returned: Sequence[Name]) -> lowering.Names:
        return given if names is None else names, returned

    return lowering.from_stage(dataclasses.replace(staged, order=order), rename)
