"""Arguments that are used up by being looked at: generators and iterators of batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from donation_inspector.errors import TraceError
from donation_inspector.frameworks import naming
from donation_inspector.frameworks.nnx_names import is_object
from donation_inspector.xla.leaves import key_path, leaves_with_path


def refuse_iterators(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse an argument that is or holds an iterator: to trace with it would take from it what the user trains on.

    Raises:
        TraceError: where it is, and how to give one batch instead.
    """
    for argument, value in naming.bound_arguments(fn, args, kwargs):
        for keys, leaf in _leaves(value):
            if isinstance(leaf, Iterator):
                kind = type(leaf).__name__  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
                raise TraceError(
                    f"{argument}{key_path(keys)} is an iterator ({kind}): tracing the step would take out of it what "
                    "you train on next, and make that a constant of the program. Nothing was taken. Take one batch "
                    "yourself, batch = next(…), give that in its place, and train on it too: the loop that goes on "
                    "with the iterator does not get it again."
                )


def _leaves(value: Any) -> list[tuple[tuple[Any, ...], Any]]:
    try:
        return leaves_with_path(value, is_leaf=lambda one: isinstance(one, Iterator) or is_object(one))
    except (TypeError, ValueError):
        # no pytree at all: JAX says so better when it traces
        return []
