"""One plain sentence for each verdict: which result is nearest, and what differs.

JAX compares dtype and per-device shape, then layout and sharding, then the number of elements; XLA compares bytes
(`_set_up_aliases` in jax/_src/interpreters/mlir.py). The sentences say which comparison failed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence

from donation_inspector.analysis.paths import argument_name, result_names
from donation_inspector.analysis.placement import result_text, type_text
from donation_inspector.analysis.several_devices import SeveralDevices
from donation_inspector.common.signature import Donation, Ignored, Leaf, Shape, Signature
from donation_inspector.common.units import format_bytes


class Reasons:
    """The sentences for one signature under one donation."""

    def __init__(
        self,
        signature: Signature,
        donation: Donation,
        donated: frozenset[int],
        offers: Mapping[int, Leaf],
        replaced: Mapping[int, int],
    ) -> None:
        self._signature, self._offers, self._replaced = signature, offers, replaced
        self._offered_to = {result.index: signature.arguments[index] for index, result in offers.items()}
        self._argument_at = {leaf.position: leaf for leaf in signature.arguments if leaf.position is not None}
        self._result_at = {leaf.position: leaf for leaf in signature.results if leaf.position is not None}
        self._taken_by: dict[int, Leaf] = {}
        for position, result in donation.aliases.items():
            if position in self._argument_at and result in self._result_at:
                self._taken_by[self._result_at[result].index] = self._argument_at[position]
        self._devices = SeveralDevices(signature, donated, self._taken_by) if signature.devices > 1 else None
        self._nearness: list[defaultdict[Hashable, list[Leaf]]] = [defaultdict(list) for _ in range(_LEVELS)]
        self._by_name: dict[Hashable, Leaf] = {}
        self._free: dict[Hashable, Leaf] = {}
        """The first result of each dtype and per-device shape whose buffer is its own."""
        for leaf in signature.results:
            if leaf.index not in self._taken_by and has_static_shape(leaf.shard_shape):
                self._free.setdefault(_match(leaf), leaf)
            for index, key in zip(self._nearness, _keys(leaf), strict=True):
                index[key].append(leaf)
            for name in result_names(leaf):
                self._by_name.setdefault((*_match(leaf), name), leaf)

    def result_at(self, position: int) -> Leaf | None:
        """The result at this position of the entry function; None where it is implicit."""
        return self._result_at.get(position)

    def advised(self, leaf: Leaf) -> int | None:
        """Index of the result that would take the buffer if `out_shardings` were as the sentence says."""
        return None if self._devices is None else self._devices.advised(leaf)

    def unused(self, asked: bool) -> str:
        if asked:
            return (
                "donated, but the results do not depend on it: JAX drops it without a warning, and its buffer is not "
                "reused; jax.jit(..., keep_unused=True) would keep it"
            )
        return "the results do not depend on it: JAX drops it"

    def aliased(self, leaf: Leaf, result: Leaf | None) -> str:
        if result is None:
            return "a result that the program adds by itself takes over its buffer"
        sentence = f"{result_text(result)} takes over its buffer"
        if leaf.nbytes == 0:
            return f"{sentence}; it has 0 bytes, so nothing is saved"
        own = result.updates == leaf.path or result.index == self._replaced.get(leaf.index)
        namesake = None if own else self._namesake(leaf)
        if namesake is not None and namesake.index != result.index:
            return f"{sentence}; pairs are made in order, not by name: {result_text(namesake)} has its name"
        return sentence

    def donor(self, leaf: Leaf) -> str:
        by_sharding = None if self._devices is None else self._devices.donor(leaf)
        if by_sharding is not None:
            return by_sharding
        result = self._free.get(_match(leaf))
        if result is not None:
            return f"left to XLA: {result_text(result)} matches, but {self._other_kind(leaf, result)}"
        size = leaf.nbytes_per_device
        equal = self._first_free(_BYTES, size)
        if equal is not None:
            return (
                f"left to XLA: no free result is {self._described_type(leaf)}, but {self._described(equal)} has as "
                "many bytes, so XLA may use the buffer for it"
            )
        other = self._first_free(_ELEMENTS, _elements(leaf))
        if size is not None and other is not None:
            return (
                f"left to XLA without a warning, but XLA cannot use it: {self._described(other)} has as many elements, "
                f"but {format_bytes(other.nbytes_per_device)} against {format_bytes(size)}, and XLA compares bytes"
            )
        if self._devices is not None:
            return (
                "left to XLA without a warning, because a result's sharding is left to it, but nothing is known to "
                f"fit: {self._nothing_fits(leaf)}"
            )
        return f"left to XLA, which cannot use it: {self._nothing_fits(leaf)}"

    def _other_kind(self, leaf: Leaf, result: Leaf) -> str:
        """Why JAX passes over a result that has the type, one device's shape and a sharding."""
        if leaf.memory != result.memory:
            mine, theirs = leaf.memory or "device memory", result.memory or "device memory"
            return f"{leaf.path} lies in {mine} and {result_text(result)} in {theirs}, and JAX pairs within one kind"
        what = "layout or memory kind" if leaf.layout == result.layout else "layout"
        return f"not in its {what}, so JAX pairs nothing; give both the same"

    def ignored(self, leaf: Leaf, why: Ignored) -> str:
        if why != "inner jit":
            return f"JAX ignores every donation while jax_{why} is on, without a warning"
        return (
            "an inner jit donates it, which JAX ignores inside another jit without a warning; "
            f"donate it at the outermost jit: {self._could(leaf)}"
        )

    def unusable(self, leaf: Leaf, *, warned: bool) -> str:
        told = " (JAX warns about it)" if warned else ""
        advice = "" if self._devices is None else self._devices.advice(leaf)
        return f"donated, but {self._nothing_fits(leaf)}; the buffer is not reused{told}{advice}"

    def not_donated(self, leaf: Leaf) -> str:
        return self._could(leaf)

    def _first_free(self, level: int, key: int | None) -> Leaf | None:
        alike = () if key is None else self._nearness[level].get(key, ())
        return next((result for result in alike if result.index not in self._taken_by), None)

    def _could(self, leaf: Leaf) -> str:
        if leaf.nbytes == 0:
            return "it has 0 bytes, so there is nothing to save"
        offered = self._offers.get(leaf.index)
        by_sharding = None if self._devices is None or offered is None else self._devices.could(leaf)
        if by_sharding is not None and _match(leaf) not in self._free:
            return by_sharding
        if not has_static_shape(leaf.shard_shape):
            return f"its size, {type_text(leaf)}, is unknown before the program runs, so no result is known to fit"
        if offered is not None:
            return f"{self._described(offered)} could take over its buffer"
        result = next((one for one in self._offers.values() if _alike(leaf, one)), None)
        if result is None:
            return self._nothing_fits(leaf)
        return f"{self._described(result)} fits, and is rather for {self._offered_to[result.index].path}"

    def _nothing_fits(self, leaf: Leaf) -> str:
        if not self._signature.results:
            return "the function returns no array"
        exact = self._nearness[0].get(_match(leaf))
        if exact and has_static_shape(leaf.shard_shape):
            return self._all_taken(leaf, exact)
        nearest = self._nearest(leaf)
        return (
            f"no result is {self._described_type(leaf)}: the nearest, {self._described(nearest)}, "
            f"{_difference(leaf, nearest)}"
        )

    def _all_taken(self, leaf: Leaf, exact: Sequence[Leaf]) -> str:
        free = self._free.get(_match(exact[0]))
        if free is not None:
            if free.memory != leaf.memory:
                return self._other_kind(leaf, free)
            return f"JAX did not use it, although {self._described(free)} is free"
        taker = self._taken_by[exact[0].index].path
        if len(exact) == 1:
            return f"the only result that fits, {self._described(exact[0])}, is taken by {taker}"
        return f"all {len(exact)} results that fit are taken, the first, {self._described(exact[0])}, by {taker}"

    def _described(self, result: Leaf) -> str:
        return f"{result_text(result)} ({self._described_type(result)})"

    def _described_type(self, leaf: Leaf) -> str:
        return type_text(leaf) if self._devices is None else self._devices.place.type_and_place(leaf)

    def _namesake(self, leaf: Leaf) -> Leaf | None:
        """The result of the same dtype and per-device shape that has the argument's name below its root."""
        name = argument_name(leaf)
        return self._by_name.get((*_match(leaf), name)) if name else None

    def _nearest(self, leaf: Leaf) -> Leaf:
        for index, key in zip(self._nearness, _keys(leaf), strict=True):
            if key is not None and index.get(key):
                return min(index[key], key=lambda result: _distance(leaf, result))
        return min(self._signature.results, key=lambda result: _distance(leaf, result))


def has_static_shape(shape: Shape) -> bool:
    """Whether every dimension is known. Two equal dynamic shapes may differ when the program runs."""
    return None not in shape


def _match(leaf: Leaf) -> tuple[Shape, str]:
    return leaf.shard_shape, leaf.dtype


def _alike(argument: Leaf, result: Leaf) -> bool:
    left_to_xla = not has_static_shape(result.shard_shape)
    return argument.dtype == result.dtype and (
        argument.shape == result.shape if left_to_xla else argument.shard_shape == result.shard_shape
    )


_LEVELS = 7
_BYTES, _ELEMENTS = 4, 5


def _keys(leaf: Leaf) -> tuple[Hashable, ...]:
    """What two leaves can have in common, the most telling first; None has nothing in common with anything."""
    elements = _elements(leaf)
    return (
        _match(leaf),
        (leaf.shape, leaf.dtype),
        leaf.shape or None,
        None if elements is None else (elements, leaf.dtype),
        leaf.nbytes_per_device,
        elements,
        leaf.dtype,
    )


def _elements(leaf: Leaf) -> int | None:
    """Elements on one device, which is what JAX counts; None when a dimension is dynamic."""
    known = [dimension for dimension in leaf.shard_shape if dimension is not None]
    return math.prod(known) if has_static_shape(leaf.shard_shape) else None


def _distance(leaf: Leaf, result: Leaf) -> tuple[bool, int]:
    return argument_name(leaf) not in result_names(result), abs(
        (leaf.nbytes_per_device or 0) - (result.nbytes_per_device or 0)
    )


def _difference(leaf: Leaf, result: Leaf) -> str:
    if leaf.shape == result.shape and leaf.dtype == result.dtype:
        return "is split differently over the devices"
    differing = [
        word
        for word, differs in (("dtype", leaf.dtype != result.dtype), ("shape", leaf.shape != result.shape))
        if differs
    ]
    return f"differs in {' and '.join(differing)}"
