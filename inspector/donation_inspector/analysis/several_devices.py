"""The sentences for a program on several devices: both shardings, one device's part of each, and what would help."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property

from donation_inspector.analysis.out_shardings import Advice, advise, left_to_xla, out_shardings_code, sharding_code
from donation_inspector.analysis.paths import noun
from donation_inspector.analysis.placement import Placement, result_text
from donation_inspector.common.signature import Leaf, Signature

_LONGEST_CODE = 160
"""Above this many characters, a sentence names the sharding of its own result alone."""


class SeveralDevices:
    """The sentences for one signature with these arguments donated, by leaf index; `taken`: the results in use."""

    def __init__(self, signature: Signature, donated: frozenset[int], taken: Mapping[int, Leaf]) -> None:
        self.place = Placement(signature)
        self._signature = signature
        self._donated = donated
        self._unplaced: dict[Hashable, Leaf] = {}
        """The first result of each dtype and shape whose buffer is its own, and whose sharding is left to XLA."""
        for leaf in signature.results:
            if leaf.index not in taken and left_to_xla(leaf) and None not in leaf.shape:
                self._unplaced.setdefault((leaf.shape, leaf.dtype), leaf)

    @cached_property
    def _advice(self) -> Advice:
        return advise(self._signature, self._donated)

    @cached_property
    def _code(self) -> str | None:
        return out_shardings_code(self._signature, self._advice.given)

    @cached_property
    def _advised(self) -> Mapping[int, Leaf]:
        """For each argument that the advice is about, the result that should be sharded as it is."""
        return {argument.index: self._signature.results[result] for result, argument in self._advice.given.items()}

    def donor(self, leaf: Leaf) -> str | None:
        """Why it is left to XLA, where a result has its shape and dtype and the shardings are what stands between."""
        result = self._advised.get(leaf.index) or self._unplaced.get((leaf.shape, leaf.dtype))
        if result is None:
            return None
        mine = f"{leaf.path} is {self.place.type_and_place(leaf)}"
        if left_to_xla(leaf):
            return (
                f"left to XLA: {mine}, and so is that of {result_text(result)}; JAX pairs only what is told: give both "
                "the same sharding, in in_shardings and out_shardings"
            )
        if left_to_xla(result):
            return (
                f"left to XLA: {mine}; {result_text(result)} has {self.place.sharding(result)}, so JAX pairs nothing"
                f"{self.advice(leaf)}"
            )
        theirs = f"{result_text(result)} is {self.place.type_and_place(result)}"
        if leaf.nbytes_per_device == result.nbytes_per_device:
            return f"left to XLA: {mine}; {theirs}: as many bytes, so XLA may use the buffer for it{self.advice(leaf)}"
        return f"left to XLA without a warning, but nothing is known to fit: {mine}; {theirs}{self.advice(leaf)}"

    def could(self, leaf: Leaf) -> str | None:
        """What donating it would do, where only a result whose sharding is left to XLA has its shape and dtype."""
        result = self._unplaced.get((leaf.shape, leaf.dtype))
        if result is None:
            return None
        where = (
            "in_shardings and out_shardings give them one" if left_to_xla(leaf) else "out_shardings gives it this one"
        )
        return (
            f"{self.described(result)} could take over its buffer ({self.place.type_and_place(leaf)}): JAX pairs them "
            f"where {where}, and leaves it to XLA otherwise"
        )

    def advised(self, leaf: Leaf) -> int | None:
        """Index of the result that JAX would pair it with, were the advice followed; None where there is none."""
        return self._advice.pairs[leaf.index] if leaf.index in self._advised else None

    def advice(self, leaf: Leaf) -> str:
        """ "; jax.jit(..., out_shardings=…) pairs them", as a clause; empty where nothing is known to help."""
        advised = self._advised.get(leaf.index)
        if advised is None:
            return ""
        paired = self._signature.results[self._advice.pairs[leaf.index]]
        if_so = "" if left_to_xla(advised) else "if the result may be sharded like it, "
        does = "pairs them" if paired.index == advised.index else f"pairs it with {result_text(paired)}"
        if self._code is not None and len(self._code) <= _LONGEST_CODE:
            return f"; {if_so}jax.jit(..., out_shardings={self._code}) {does}"
        others = len(self._advice.given) - 1
        likewise = f", with the like for {others} other{'s' if others > 1 else ''}," if others else ""
        code = sharding_code(leaf, self.place.several_meshes)
        return f"; {if_so}{code} for {noun(advised.path)} in jax.jit(..., out_shardings=...){likewise} {does}"

    def described(self, result: Leaf) -> str:
        """The result as a noun, with its type and place."""
        return f"{result_text(result)} ({self.place.type_and_place(result)})"
