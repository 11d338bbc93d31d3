"""One plain sentence for each verdict: which result is nearest, and what differs.

JAX compares dtype and per-device shape, then layout and sharding, then the number of elements; XLA compares bytes
(`_set_up_aliases` in jax/_src/interpreters/mlir.py). The sentences say which comparison failed.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from enum import StrEnum
from functools import lru_cache

from donation_inspector.signature import Donation, Leaf, Shape, Signature
from donation_inspector.units import format_bytes


class Ignored(StrEnum):
    """Why a donation that somebody wrote never reached the program. JAX says nothing about either."""

    INNER_JIT = "inner jit"
    DEBUG_NANS = "debug_nans"


def type_text(leaf: Leaf) -> str:
    """The leaf's type as JAX writes it: "float32[64,128]", "?" for a dynamic dimension."""
    return f"{leaf.dtype}[{_dimensions(leaf.shape)}]"


def result_text(leaf: Leaf) -> str:
    """The result as a noun: "result [0]['w']", or "the result" when the function returns one bare array."""
    return "the result" if leaf.path in {"", "result"} else f"result {leaf.path}"


class Reasons:
    """The sentences for one signature under one donation."""

    def __init__(self, signature: Signature, donation: Donation) -> None:
        self._signature = signature
        self._argument_at = {leaf.position: leaf for leaf in signature.arguments if leaf.position is not None}
        self._result_at = {leaf.position: leaf for leaf in signature.results if leaf.position is not None}
        self._taken_by: dict[int, Leaf] = {}
        for position, result in donation.aliases.items():
            if position in self._argument_at and result in self._result_at:
                self._taken_by[self._result_at[result].index] = self._argument_at[position]
        self._several_devices = any(leaf.sharding is not None for leaf in (*signature.arguments, *signature.results))
        self._nearness: list[defaultdict[Hashable, list[Leaf]]] = [defaultdict(list) for _ in range(_LEVELS)]
        self._by_name: dict[Hashable, Leaf] = {}
        self._free: dict[Hashable, Leaf] = {}
        """The first result of each dtype and per-device shape whose buffer is its own."""
        for leaf in signature.results:
            if leaf.index not in self._taken_by and has_static_shape(leaf.shard_shape):
                self._free.setdefault(_match(leaf), leaf)
            for index, key in zip(self._nearness, _keys(leaf), strict=True):
                index[key].append(leaf)
            for name in _names_of_result(leaf):
                self._by_name.setdefault((*_match(leaf), name), leaf)

    def result_at(self, position: int) -> Leaf | None:
        """The result at this position of the entry function; None where it is implicit."""
        return self._result_at.get(position)

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
        namesake = self._namesake(leaf)
        if namesake is not None and namesake.index != result.index:
            return f"{sentence}; pairs are made in order, not by name: {result_text(namesake)} has its name"
        return sentence

    def donor(self, leaf: Leaf) -> str:
        result = self._free.get(_match(leaf))
        if result is not None:
            if self._several_devices and result.sharding is None:
                return (
                    f"left to XLA: {result_text(result)} matches, but its sharding is left to the compiler, "
                    "so JAX pairs nothing; give one in out_shardings"
                )
            return (
                f"left to XLA: {result_text(result)} matches, but not in its layout or memory kind, so JAX pairs "
                "nothing; give both the same"
            )
        size = leaf.nbytes_per_device
        equal = self._first_free(_BYTES, size)
        if equal is not None:
            return (
                f"left to XLA: no free result is {type_text(leaf)}, but {_described(equal)} has as many bytes, "
                "so XLA may use the buffer for it"
            )
        other = self._first_free(_ELEMENTS, _elements(leaf))
        if size is not None and other is not None:
            return (
                f"left to XLA without a warning, but XLA cannot use it: {_described(other)} has as many elements, "
                f"but {format_bytes(other.nbytes_per_device)} against {format_bytes(size)}, and XLA compares bytes"
            )
        if self._several_devices:
            return (
                "left to XLA without a warning, because a result's sharding is left to the compiler, but nothing is "
                f"known to fit: {self._nothing_fits(leaf)}"
            )
        return f"left to XLA, which cannot use it: {self._nothing_fits(leaf)}"

    def ignored(self, leaf: Leaf, why: Ignored) -> str:
        if why is Ignored.DEBUG_NANS:
            return "JAX ignores every donation while jax_debug_nans is on, without a warning"
        return (
            "an inner jit donates it, which JAX ignores inside another jit without a warning; "
            f"donate it at the outermost jit: {self._could(leaf)}"
        )

    def unusable(self, leaf: Leaf, *, warned: bool) -> str:
        told = " (JAX warns about it)" if warned else ""
        return f"donated, but {self._nothing_fits(leaf)}; the buffer is not reused{told}"

    def not_donated(self, leaf: Leaf) -> str:
        return self._could(leaf)

    def _first_free(self, level: int, key: int | None) -> Leaf | None:
        alike = () if key is None else self._nearness[level].get(key, ())
        return next((result for result in alike if result.index not in self._taken_by), None)

    def _could(self, leaf: Leaf) -> str:
        if leaf.nbytes == 0:
            return "it has 0 bytes, so there is nothing to save"
        if not has_static_shape(leaf.shard_shape):
            return f"its size, {type_text(leaf)}, is unknown before the program runs, so no result is known to fit"
        result = self._free.get(_match(leaf))
        if result is None:
            return self._nothing_fits(leaf)
        namesake = self._namesake(leaf)
        if namesake is not None and namesake.index not in self._taken_by:
            result = namesake
        return f"{_described(result)} could take over its buffer"

    def _nothing_fits(self, leaf: Leaf) -> str:
        if not self._signature.results:
            return "the function returns no array"
        exact = self._nearness[0].get(_match(leaf))
        if exact:
            return self._all_taken(exact)
        nearest = self._nearest(leaf)
        return f"no result is {type_text(leaf)}: the nearest, {_described(nearest)}, {_difference(leaf, nearest)}"

    def _all_taken(self, exact: Sequence[Leaf]) -> str:
        free = self._free.get(_match(exact[0]))
        if free is not None:
            return f"JAX did not use it, although {_described(free)} is free"
        taker = self._taken_by[exact[0].index].path
        if len(exact) == 1:
            return f"the only result that fits, {_described(exact[0])}, is taken by {taker}"
        return f"all {len(exact)} results that fit are taken, the first, {_described(exact[0])}, by {taker}"

    def _namesake(self, leaf: Leaf) -> Leaf | None:
        """The result of the same dtype and per-device shape that has the argument's name below its root."""
        name = _name(leaf)
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
    return _name(leaf) not in _names_of_result(result), abs(
        (leaf.nbytes_per_device or 0) - (result.nbytes_per_device or 0)
    )


def _difference(leaf: Leaf, result: Leaf) -> str:
    if leaf.shape == result.shape and leaf.dtype == result.dtype:
        return (
            f"is split differently over the devices ([{_dimensions(result.shard_shape)}] on each "
            f"against [{_dimensions(leaf.shard_shape)}])"
        )
    differing = [
        word
        for word, differs in (("dtype", leaf.dtype != result.dtype), ("shape", leaf.shape != result.shape))
        if differs
    ]
    return f"differs in {' and '.join(differing)}"


def _described(result: Leaf) -> str:
    return f"{result_text(result)} ({type_text(result)})"


def _dimensions(shape: Shape) -> str:
    return ",".join("?" if dimension is None else str(dimension) for dimension in shape)


def _name(argument: Leaf) -> tuple[str, ...]:
    """The argument's path below the whole argument it belongs to; () when it is one itself."""
    return _components(argument.path.removeprefix(argument.root))


def _names_of_result(result: Leaf) -> tuple[tuple[str, ...], ...]:
    """A result's path, whole and below its first step: a function returns one pytree or a tuple of several."""
    whole = _components(result.path)
    return tuple(name for name in (whole, whole[1:]) if name)


@lru_cache(maxsize=65536)
def _components(path: str) -> tuple[str, ...]:
    """The steps of a pytree path: "opt_state[0].mu['w']" is ("opt_state", "[0]", ".mu", "['w']")."""
    return tuple(re.findall(r"\[(?:'[^']*'|\"[^\"]*\"|[^\]])*\]|\.?[^.\[]+", path))
