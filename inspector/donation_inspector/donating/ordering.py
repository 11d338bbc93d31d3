"""What is traced in the user's place: the same function, its results in the order that makes JAX give the pairs.

JAX walks the results in their flat order, and each takes the first donated argument of its shape and dtype that is
left. Where the results that the donated arguments are to give their buffers to come first, in the donated arguments'
own order, each takes the one that it is wanted to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from donation_inspector.donating.call import FlatCall, Parameters, key_path
from donation_inspector.donating.pairs import Pairs, Wanted, pairs_of, refuse_other_types, wanted_in
from donation_inspector.donating.returned import Order

_jax: Any = jax
"""Public, partly untyped."""


class OtherStructure(Exception):
    """The call is of another structure than the step was made for: another step is to be made."""


class Ordering:
    """The user's function with the pairs that are wanted of it."""

    def __init__(self, fn: Callable[..., Any], pairs: Pairs, parameters: Parameters) -> None:
        self.fn, self.pairs, self.parameters = fn, pairs, parameters
        self.name = str(getattr(fn, "__name__", type(fn).__name__))

    def wanted(self, call: FlatCall) -> tuple[Wanted, ...]:
        """The entries of the pairs for a call. Raises PathError, TraceError."""
        return wanted_in(self.name, self.pairs, call.paths)

    def order(self, result: Any, call: FlatCall, donated: Sequence[int]) -> tuple[Order, list[Any]]:
        """The order for the donated leaves of `call` as they follow one another, and the flat results as they were.

        Raises:
          PathError: a result that is not there; TraceError: a pair that JAX cannot make.
        """
        found, tree = _jax.tree_util.tree_flatten_with_path(result)
        paths, leaves = [key_path(keys) or "result" for keys, _ in found], [leaf for _, leaf in found]
        pairs = pairs_of(self.name, self.wanted(call), call.paths, paths)
        arguments = list(zip(call.paths, call.leaves, strict=True))
        refuse_other_types(self.name, pairs, arguments, list(zip(paths, leaves, strict=True)))
        taken = [pairs[leaf] for leaf in donated if leaf in pairs]
        rest = sorted(set(range(len(leaves))) - set(taken))
        return Order(tree, (*taken, *rest)), leaves

    def returned(self, result: Any, call: FlatCall, donated: Sequence[int], planned: Order | None) -> Any:
        """What the traced function returns.

        Raises:
          OtherStructure: the order is not the one that was planned with.
        """
        order, leaves = self.order(result, call, donated)
        if planned is not None and planned != order:
            raise OtherStructure
        return result if order.is_own else order.of(leaves)
