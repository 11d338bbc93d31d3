"""The result of a jitted function in another flat order, which its caller never gets to see.

JAX pairs first in, first out by the flat order of the results. A traced function returns a `Returned`; what JAX makes
of it is put together again, outside the program, as what the user's function returns. A pytree node whose `unflatten`
did that by itself would be quicker and wrong: JAX flattens its own results once more for the calls that follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import jax

from donation_inspector.donating.call import key_path

_jax: Any = jax
"""Public, partly untyped."""


class Order:
    """The tree that a function returns, and the flat order in which its leaves leave the program."""

    def __init__(self, tree: Any, leaves: Sequence[int]) -> None:
        """`leaves` has at each place the index of the user's flat result that stands there."""
        self.tree, self.leaves = tree, tuple(leaves)
        self.is_own = self.leaves == tuple(range(len(leaves)))
        place = {leaf: place for place, leaf in enumerate(self.leaves)}
        self.restore = picker([place[leaf] for leaf in range(len(self.leaves))])
        self.unflatten: Any = tree.unflatten

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Order) and self.leaves == other.leaves and self.tree == other.tree

    def __hash__(self) -> int:
        return hash((self.tree, self.leaves))

    def __repr__(self) -> str:
        return f"{self.tree} in the order {list(self.leaves)}"

    @property
    def paths(self) -> list[str]:
        """Where each result stands in what the function returns, in this order."""
        found: Any = _jax.tree_util.tree_flatten_with_path(self.tree.unflatten(range(len(self.leaves))))[0]
        paths = [key_path(keys) for keys, _ in found]
        return [paths[leaf] for leaf in self.leaves]

    def of(self, leaves: Sequence[Any]) -> Returned:
        """The user's flat results in this order."""
        return Returned(self, [leaves[leaf] for leaf in self.leaves])


class Returned:
    """A pytree node whose leaves are a function's flat results in another order."""

    __slots__ = ("leaves", "order")

    def __init__(self, order: Order, leaves: Sequence[Any]) -> None:
        self.order, self.leaves = order, leaves

    def restored(self) -> Any:
        """What the user's function returns."""
        order = self.order
        return order.unflatten(order.restore(self.leaves))


def picker(places: Sequence[int]) -> Callable[[Any], tuple[Any, ...]]:
    """The items at these places, as a tuple; quicker than a loop, because it runs at each call."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda items: tuple(items[place] for place in places)


class _Path:
    """A key that is shown as the leaf's path in what the user's function returns."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __str__(self) -> str:
        return self._path


def _flatten(node: Returned) -> tuple[Sequence[Any], Order]:
    return node.leaves, node.order


def _flatten_with_keys(node: Returned) -> tuple[list[tuple[_Path, Any]], Order]:
    return [(_Path(path), value) for path, value in zip(node.order.paths, node.leaves, strict=True)], node.order


# The class itself is its unflatten: it runs at each call.
_jax.tree_util.register_pytree_with_keys(Returned, _flatten_with_keys, Returned, _flatten)


def restored(result: Any) -> Any:
    """A jitted function's result as its user gets it."""
    return result.restored() if isinstance(result, Returned) else result
