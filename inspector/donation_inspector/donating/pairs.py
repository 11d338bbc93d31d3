"""From the pairs that a person writes, indices or paths, to flat arguments and flat results."""

from __future__ import annotations

import difflib
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax

from donation_inspector.common.visible import repr_of
from donation_inspector.errors import PathError, TraceError

_jax: Any = jax
"""Public, partly untyped."""

Place = int | str
"""A flat index, or a path of a leaf or of everything below: `0`, `params['w']`, `params`, `[0]`."""
Pairs = Mapping[Place, Place]


@dataclass(frozen=True)
class Wanted:
    """One entry of the pairs, with the flat arguments that it names."""

    argument: Place
    result: Place
    leaves: tuple[int, ...]


def wanted_in(name: str, pairs: Pairs, paths: Sequence[str]) -> tuple[Wanted, ...]:
    """Each entry with its flat arguments, given the paths of a call's.

    Raises:
      PathError: no such argument; TraceError: one argument in two entries.
    """
    found = tuple(
        Wanted(argument, result, _leaves_at(name, "argument", argument, paths)) for argument, result in pairs.items()
    )
    _refuse_twice(name, "argument", [leaf for one in found for leaf in one.leaves], paths)
    return found


def pairs_of(name: str, wanted: Sequence[Wanted], arguments: Sequence[str], results: Sequence[str]) -> dict[int, int]:
    """The pairs by flat index, given the paths of the results too.

    Raises:
      PathError: no such result, or another number of leaves below it; TraceError: one result in two entries.
    """
    pairs: dict[int, int] = {}
    taken: list[int] = []
    for one in wanted:
        leaves = _leaves_at(name, "result", one.result, results)
        if len(leaves) != len(one.leaves):
            raise PathError(
                f"{name}: the pair {one.argument!r}: {one.result!r} has {_counted(len(one.leaves))} on the argument's "
                f"side and {_counted(len(leaves))} on the result's. Both need the same number: below {one.argument!r} "
                f"are {_listed(arguments, one.leaves)}, below {one.result!r} are {_listed(results, leaves)}."
            )
        pairs.update(zip(one.leaves, leaves, strict=True))
        taken.extend(leaves)
    _refuse_twice(name, "result", taken, results)
    return pairs


def refuse_other_types(
    name: str,
    pairs: Mapping[int, int],
    arguments: Sequence[tuple[str, Any]],
    results: Sequence[tuple[str, Any]],
) -> None:
    """Raise TraceError for a pair that JAX never makes; `arguments` and `results` are (path, value)."""
    for argument, result in pairs.items():
        (path, given), (returned_path, returned) = arguments[argument], results[result]
        types = _jax.typeof(given), _jax.typeof(returned)
        if (types[0].shape, types[0].dtype) != (types[1].shape, types[1].dtype):
            raise TraceError(
                f"{name}: {path} ({_type(types[0])}) cannot hand its buffer to result {returned_path} "
                f"({_type(types[1])}): jax.jit pairs equal shapes and dtypes only. Leave this pair out, or return the "
                "result in the argument's shape and dtype."
            )


def _leaves_at(name: str, kind: str, place: Place, paths: Sequence[str]) -> tuple[int, ...]:
    if isinstance(place, str):
        found = tuple(i for i, path in enumerate(paths) if path == place) or tuple(
            i for i, path in enumerate(paths) if path.startswith(place) and path[len(place)] in "[."
        )
        if found:
            return found
        near = difflib.get_close_matches(place, paths, 3, cutoff=0.5)
        hint = f"near it: {', '.join(near)}" if near else f"there are {_listed(paths, range(len(paths)))}"
        raise PathError(f"{name}: pairs name the {kind} {place!r}, which this call does not have; {hint}.")
    try:
        index = operator.index(cast(Any, place))
    except TypeError:
        raise PathError(
            f"{name}: pairs name the {kind} {repr_of(place)} of type {type(place).__name__}. Give a flat index, or a "
            "path such as \"params['w']\"."
        ) from None
    if not 0 <= index < len(paths):
        raise PathError(
            f"{name}: pairs name the {kind} number {index}, and this call has {len(paths)}: "
            f"{_listed(paths, range(len(paths)))}."
        )
    return (index,)


def _refuse_twice(name: str, kind: str, leaves: Sequence[int], paths: Sequence[str]) -> None:
    twice = next((leaf for leaf, times in Counter(leaves).items() if times > 1), None)
    if twice is not None:
        raise TraceError(
            f"{name}: pairs name the {kind} {paths[twice]} twice. A buffer goes from one argument to one result."
        )


def _listed(paths: Sequence[str], leaves: Sequence[int]) -> str:
    shown = ", ".join(paths[leaf] for leaf in leaves[:8])
    return f"{shown} and {len(leaves) - 8} more" if len(leaves) > 8 else shown or "none"


def _counted(leaves: int) -> str:
    return "1 array" if leaves == 1 else f"{leaves} arrays"


def _type(aval: Any) -> str:
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]"
