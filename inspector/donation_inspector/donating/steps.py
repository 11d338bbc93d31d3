"""How a call goes to JAX: with the user's own arguments, or with their leaves as the donated and the kept ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import jax
from jax.interpreters.partial_eval import dce_jaxpr_consts

from donation_inspector.donating.call import Dynamic, FlatCall, with_statics
from donation_inspector.donating.ordering import Ordering, OtherStructure
from donation_inspector.donating.returned import Order, picker

_jax: Any = jax
"""Public, partly untyped."""

_NAMES = ("__module__", "__name__", "__qualname__", "__doc__")


class Step(Protocol):
    """One `jax.jit` function for calls of a structure."""

    jitted: Any
    call: Callable[..., Any]
    """Makes a call. Raises OtherStructure."""

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Dynamic:
        """What `jitted` is called with for a call."""
        ...

    def given_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Dynamic:
        """As `given` for what is compiled, which takes no static arguments. Raises TypeError as JAX's own stages."""
        ...

    def as_given(self, tree: Any) -> Any:
        """What a stage has for each of its arguments, in the structure of the user's."""
        ...

    def used(self, jaxpr: Any) -> frozenset[int]:
        """The flat dynamic arguments of the user's that JAX does not drop as unused, given what it traced."""
        ...


class WholeStep:
    """For whole arguments: the `jax.jit` function takes the user's own."""

    def __init__(self, jitted: Any) -> None:
        self.jitted = self.call = jitted

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Dynamic:
        """The same."""
        return args, kwargs

    def given_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Dynamic:
        """The same."""
        return args, kwargs

    def as_given(self, tree: Any) -> Any:
        """The same."""
        return tree

    def used(self, jaxpr: Any) -> frozenset[int]:
        """Those that JAX's own dead code elimination leaves."""
        return frozenset(_used(jaxpr))


class SplitStep:
    """For single leaves, in calls of one structure."""

    def __init__(
        self,
        ordering: Ordering,
        call: FlatCall,
        donated: Sequence[int],
        options: Mapping[str, Any],
        planned: Order | None,
    ) -> None:
        """`donated` are flat indices in the order in which JAX is to see them."""
        kept = sorted(set(range(len(call.leaves))) - set(donated))
        self.order = (*donated, *kept)
        self.names = call.names
        self.tree, self.statics = call.tree, call.statics
        self._parameters = ordering.parameters
        self._donated, self._kept = picker(donated), picker(kept)
        place = {leaf: place for place, leaf in enumerate(self.order)}
        self._restore = picker([place[leaf] for leaf in range(len(self.order))])
        self.jitted: Any = _jax.jit(self._traced(ordering, donated, planned), donate_argnums=0, **options)
        self.call = self._caller()

    def _traced(self, ordering: Ordering, donated: Sequence[int], planned: Order | None) -> Callable[..., Any]:
        tree, statics, restore, parameters = self.tree, self.statics, self._restore, ordering.parameters

        def step(donated_leaves: tuple[Any, ...], kept_leaves: tuple[Any, ...]) -> Any:
            args, kwargs = with_statics(tree.unflatten(restore((*donated_leaves, *kept_leaves))), statics)
            return ordering.returned(ordering.fn(*args, **kwargs), parameters.flat(args, kwargs), donated, planned)

        functools.update_wrapper(step, ordering.fn, _NAMES, ())
        # JAX would take the user's parameters for this function's.
        del cast(Any, step).__wrapped__
        return step

    def _caller(self) -> Callable[..., Any]:
        """A call as one function, because what it does besides JAX is done at each step of a training."""
        tree, donated, kept, jitted = self.tree, self._donated, self._kept, self.jitted
        split, statics = self._parameters.split, self.statics
        flatten: Any = _jax.tree_util.tree_flatten

        def plain(*args: Any, **kwargs: Any) -> Any:
            leaves, structure = flatten((args, kwargs))
            if structure != tree:
                raise OtherStructure
            return jitted(donated(leaves), kept(leaves))

        def with_static(*args: Any, **kwargs: Any) -> Any:
            dynamic, given = split(args, kwargs)
            if given != statics:
                raise OtherStructure
            return plain(*dynamic[0], **dynamic[1])

        return with_static if self._parameters.has_static else plain

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Dynamic:
        """The donated and the kept leaves."""
        return self._halves(_jax.tree.leaves(self.dynamic(args, kwargs)))

    def given_compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Dynamic:
        """The donated and the kept leaves."""
        leaves, tree = _jax.tree.flatten((args, kwargs))
        if tree != self.tree:
            raise TypeError(f"it was compiled for arguments of the structure {self.tree}, and these are {tree}")
        return self._halves(leaves)

    def dynamic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Dynamic:
        """The arguments that are not static."""
        return self._parameters.split(args, kwargs)[0]

    def as_given(self, tree: Any) -> Any:
        """In the user's own order."""
        return self.tree.unflatten(self._restore(_jax.tree.leaves(tree)))

    def used(self, jaxpr: Any) -> frozenset[int]:
        """The same, of the user's order."""
        return frozenset(self.order[place] for place in _used(jaxpr))

    def _halves(self, leaves: Sequence[Any]) -> Dynamic:
        return (self._donated(leaves), self._kept(leaves)), {}


def _used(closed: Any) -> list[int]:
    """The places of the arguments that `jax.jit` keeps: it asks this very function."""
    jaxpr = closed.jaxpr
    _, _, used = dce_jaxpr_consts(jaxpr, [True] * len(jaxpr.outvars))
    return [place for place, is_used in enumerate(used) if is_used]
