"""Which arguments it is unsafe to recommend for donation: what the caller's own arrays show, and what callers do.

Arrays are looked at, never kept. What is gone by now, and a program from a file, shows nothing.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, cast

from donation_inspector.advice.recommendation import Unsafe
from donation_inspector.xla.pointers import buffers

if TYPE_CHECKING:
    from donation_inspector.common.signature import Leaf, Signature

_MANAGED_BUFFER = type(cast(object, gc.get_referents(memoryview(b""))[0]))
"""What a memoryview, and so a numpy array that shares an array's memory, holds on to it by: Python does not name it."""

_SAME = "it is the same array as {}: JAX refuses a call that donates what it gets twice. Pass a copy for one of them"
_SHARED = "it shares its buffer with {}: the call is refused, or the donation cancelled. Pass a copy for one of them"
_VIEWED = (
    "a numpy view of it is alive, as np.asarray gives on a CPU without copying: JAX cancels the donation as long as it "
    "lives. Let go of the view, or copy it: np.array"
)


def audit_arrays(signature: Signature, values: Sequence[Any], leaves: Set[int]) -> tuple[Unsafe, ...]:
    """What is certain about these leaves, by flat index: buffers that stand at two arguments, numpy views.

    `values` has the caller's array for each position of the entry function, None where there is none any more.
    """
    views = dict.fromkeys(leaves & _viewed(_given(signature, values)), _VIEWED)
    return _certain(signature, {**views, **_shared(signature, values, leaves)})


def audit_shared(signature: Signature, values: Sequence[Any], leaves: Set[int]) -> tuple[Unsafe, ...]:
    """Those of these leaves whose buffers stand at another argument too; see `audit_arrays`."""
    return _certain(signature, _shared(signature, values, leaves))


def _given(signature: Signature, values: Sequence[Any]) -> dict[int, Any]:
    return {
        leaf.index: values[leaf.position]
        for leaf in signature.arguments
        if leaf.position is not None and values[leaf.position] is not None
    }


def _shared(signature: Signature, values: Sequence[Any], leaves: Set[int]) -> dict[int, str]:
    paths = {leaf.index: leaf.path for leaf in signature.arguments}
    found: dict[int, str] = {}
    for key_of, reason in ((id, _SAME), (_held, _SHARED)):
        for group in _same(_given(signature, values), key_of):
            for leaf in leaves & set(group) - found.keys():
                others = " and ".join(paths[other] for other in group if other != leaf)
                found[leaf] = reason.format(others)
    return found


def _certain(signature: Signature, reasons: Mapping[int, str]) -> tuple[Unsafe, ...]:
    return tuple(
        Unsafe(leaf.path, reasons[leaf.index], True, (leaf.index,))
        for leaf in signature.arguments
        if leaf.index in reasons
    )


def passed_again(signature: Signature, replaced: Mapping[int, int], leaves: Set[int]) -> tuple[Unsafe, ...]:
    """Those of these leaves that the caller will probably pass again, since no result comes back in their place.

    Whole arguments where that holds for all of their leaves that are asked about. `replaced` are the others.
    """
    by_root: defaultdict[str, list[Leaf]] = defaultdict(list)
    for leaf in signature.arguments:
        if leaf.index in leaves:
            by_root[leaf.root].append(leaf)
    found: list[Unsafe] = []
    for root, members in by_root.items():
        again = [leaf for leaf in members if leaf.index not in replaced]
        if len(again) == len(members) > 1:
            found.append(_again(root, again))
        else:
            found += [_again(leaf.path, [leaf]) for leaf in again]
    return tuple(found)


def _again(path: str, leaves: Sequence[Leaf]) -> Unsafe:
    reason = (
        "probably passed again: no result comes back in its place, as for a batch, a key or frozen parameters, and a "
        "donated array is gone. This is read off paths and types; where each call gets a new one, it can be donated"
    )
    return Unsafe(path, reason, False, tuple(leaf.index for leaf in leaves))


def _same(given: Mapping[int, Any], key_of: Callable[[Any], Hashable]) -> Iterator[list[int]]:
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for leaf, value in given.items():
        if hasattr(value, "is_deleted") and (key := key_of(value)) is not None:
            groups[key].append(leaf)
    return (group for group in groups.values() if len(group) > 1)


def _held(array: Any) -> Hashable:
    """Where an array lies, split as it is; None where it does not say."""
    held = buffers(array)
    return (frozenset(held), array.sharding) if held else None


def _viewed(given: Mapping[int, Any]) -> frozenset[int]:
    """The leaves whose arrays a memoryview holds on to."""
    if not given:
        return frozenset()
    buffers = [one for one in gc.get_objects() if type(one) is _MANAGED_BUFFER]
    held = {id(referent) for referent in gc.get_referents(*buffers)}
    return frozenset(leaf for leaf, value in given.items() if id(value) in held)
