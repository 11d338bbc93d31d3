"""A function that `di.jit` made: a step of JAX's own for each structure of its arguments, found at the call."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import jax

from donation_inspector.common.visible import repr_of
from donation_inspector.donating.call import Chosen, FlatCall, Parameters, Statics
from donation_inspector.donating.ordering import Ordering, OtherStructure
from donation_inspector.donating.pairs import Pairs, Wanted
from donation_inspector.donating.returned import Order, Returned, restored
from donation_inspector.donating.staged import Staged
from donation_inspector.donating.steps import SplitStep, Step, WholeStep
from donation_inspector.errors import PathError, TraceError

_jax: Any = jax
"""Public, partly untyped."""

Options = dict[str, Any]
_CHOICES = ("donate_argnums", "donate_argnames")


class DonatingFunction:
    """As a `jax.jit` function, but that the buffers go where `pairs` say.

    Where whole arguments are donated and each of their leaves has a pair, the step is a `jax.jit` function of the
    user's own arguments. Where single leaves are donated it takes them apart first.
    """

    def __init__(self, fn: Callable[..., Any], pairs: Pairs, options: Options) -> None:
        if not isinstance(cast(object, pairs), Mapping):
            raise TraceError(
                f"pairs={repr_of(pairs)} is no mapping of arguments to results. Write it as "
                "{\"params['w']\": \"[0]['w']\"}."
            )
        # Without what a jit keeps of itself in its __dict__.
        functools.update_wrapper(self, fn, updated=())
        # JAX refuses what makes no sense.
        self._plain: Any = _jax.jit(fn, **options)
        self.pairs = dict(pairs)
        self._parameters = Parameters(fn, options.get("static_argnums"), options.get("static_argnames"))
        self.static_arguments = self._parameters.static
        self._ordering = Ordering(fn, self.pairs, self._parameters)
        asked = [options.get(name) for name in _CHOICES]
        self._asked = None if asked == [None, None] else self._parameters.choose(*asked)
        self._options = {name: value for name, value in options.items() if name not in _CHOICES}
        self.keep_unused = bool(options.get("keep_unused", False))
        self._wholes: dict[tuple[Chosen, Order | None], WholeStep] = {}
        self._splits: dict[tuple[Any, Statics, Order | None], SplitStep] = {}
        self._runs: dict[tuple[Any, Statics], Callable[..., Any]] = {}
        self._run: Callable[..., Any] = _unplanned

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            result = self._run(*args, **kwargs)
        except OtherStructure:
            result = None
        else:
            return result.restored() if result.__class__ is Returned else result
        return restored(self.step(*args, **kwargs).call(*args, **kwargs))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<donation_inspector.jit of {self._ordering.name}, {len(self.pairs)} pairs>"

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """As that of a `jax.jit` function."""
        step = self.step(*args, **kwargs)
        args, kwargs = step.given(args, kwargs)
        return Staged(step.jitted.trace(*args, **kwargs), step)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """As that of a `jax.jit` function."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """As that of a `jax.jit` function."""
        step = self.step(*args, **kwargs)
        args, kwargs = step.given(args, kwargs)
        return restored(step.jitted.eval_shape(*args, **kwargs))

    def clear_cache(self) -> None:
        """Forget what was compiled, as that of a `jax.jit` function."""
        for step in (*self._wholes.values(), *self._splits.values()):
            step.jitted.clear_cache()

    # ---- from a call's structure to its step

    def step(self, *args: Any, **kwargs: Any) -> Step:
        """What runs this call, made where there is none yet. The next calls go to it too.

        Raises:
          PathError, TraceError: the pairs do not fit this call.
        """
        call = self._parameters.flat(args, kwargs)
        if not _hashable(call.statics):
            # JAX says which and why; before 0.10 a call alone does, which looks for what it has compiled
            self._plain(*args, **kwargs)
        wanted = self._wanted(call, args, kwargs)
        paired = sorted(leaf for one in wanted for leaf in one.leaves)
        asked = frozenset(paired) if self._asked is None else call.chosen(self._asked)
        self._refuse_kept([call.paths[leaf] for leaf in paired if leaf not in asked])
        donated = (*paired, *sorted(asked - set(paired)))
        planned = self._planned_order(args, kwargs, call, donated)
        touched = [whole for whole in call.wholes if not whole.leaves.isdisjoint(asked)]
        if len(paired) == len(asked) and all(whole.leaves <= asked for whole in touched):
            step = self._whole(self._asked or self._parameters.covering(touched), planned)
        else:
            key = call.tree, call.statics, planned
            if key not in self._splits:
                options = self._split_options(args, kwargs, call, donated, planned)
                self._splits[key] = SplitStep(self._ordering, call, donated, options, planned)
            step = self._splits[key]
        if paired and not self.keep_unused:
            given, named = step.given(args, kwargs)
            kept = step.used(step.jitted.trace(*given, **named).jaxpr)
            self._refuse_dropped([call.paths[leaf] for leaf in paired if leaf not in kept])
        self._runs[call.tree, call.statics] = step.call
        self._run = step.call if len(set(self._runs.values())) == 1 else self._by_structure
        return step

    def _wanted(self, call: FlatCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Wanted]:
        """The pairs in this call."""
        try:
            return self._ordering.wanted(call)
        except PathError as error:
            refused = error
        # what no call of the function can be, as one without an argument that it needs, JAX refuses in its own words
        self._plain.eval_shape(*args, **kwargs)
        raise refused

    def _by_structure(self, *args: Any, **kwargs: Any) -> Any:
        """Where calls need several steps: that of the call's structure."""
        dynamic, statics = self._parameters.split(args, kwargs)
        run = self._runs.get((_jax.tree.structure(dynamic), statics)) if _hashable(statics) else None
        if run is None:
            raise OtherStructure
        return run(*args, **kwargs)

    def _whole(self, donated: Chosen, planned: Order | None) -> WholeStep:
        """The step that donates whole arguments, each with a pair for all that is in it."""
        if (donated, planned) not in self._wholes:
            ordering, parameters = self._ordering, self._parameters

            @functools.wraps(ordering.fn, updated=())
            def step(*args: Any, **kwargs: Any) -> Any:
                call = parameters.flat(args, kwargs)
                leaves = call.chosen(donated)
                if leaves != frozenset(leaf for one in ordering.wanted(call) for leaf in one.leaves):
                    raise OtherStructure
                return ordering.returned(ordering.fn(*args, **kwargs), call, sorted(leaves), planned)

            choice = {"donate_argnums": tuple(donated.numbers), "donate_argnames": tuple(donated.names)}
            options = {**self._options, **self._out_shardings(planned), **choice}
            self._wholes[donated, planned] = WholeStep(_jax.jit(step, **options))
        return self._wholes[donated, planned]

    def _refuse_kept(self, paths: Sequence[str]) -> None:
        if paths:
            raise PathError(
                f"{self._ordering.name}: pairs name {', '.join(paths[:8])}, but donate_argnums and donate_argnames "
                "leave that out. Donate it too, or leave both away: then what has a pair is donated."
            )

    def _refuse_dropped(self, paths: Sequence[str]) -> None:
        if paths:
            them, are = ("it", "is") if len(paths) == 1 else ("them", "are")
            raise TraceError(
                f"{self._ordering.name}: pairs name {', '.join(paths[:8])}, which {are} not used by it. jax.jit drops "
                f"{them}, so there is no buffer to give. Leave {them} out of pairs, or keep {them}: keep_unused=True."
            )

    # ---- shardings that are given as trees of the user's arguments and results

    def _planned_order(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], call: FlatCall, donated: Sequence[int]
    ) -> Order | None:
        """The order of the results where JAX wants it before it traces: to be told the sharding of each."""
        if _is_one(self._options.get("out_shardings")):
            return None
        return self._ordering.order(self._plain.eval_shape(*args, **kwargs), call, donated)[0]

    def _out_shardings(self, planned: Order | None) -> Options:
        if planned is None or planned.is_own:
            return {}
        results = planned.tree.unflatten(range(len(planned.leaves)))
        return {"out_shardings": planned.of(_spread(self._options["out_shardings"], results))}

    def _split_options(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        call: FlatCall,
        donated: Sequence[int],
        planned: Order | None,
    ) -> Options:
        options = {
            name: value for name, value in self._options.items() if name not in ("static_argnums", "static_argnames")
        }
        options |= self._out_shardings(planned)
        given = options.get("in_shardings")
        if _is_one(given):
            return options
        if kwargs:
            # JAX says that it takes no keyword arguments together with in_shardings.
            self._plain.trace(*args, **kwargs)
        dynamic = call.tree.unflatten(range(len(call.leaves)))[0]
        # JAX takes a list for the tuple of all arguments.
        leaves = _spread(tuple(cast("list[Any]", given)) if isinstance(given, list) else given, dynamic)
        kept = sorted(set(range(len(leaves))) - set(donated))
        halves = tuple(leaves[leaf] for leaf in donated), tuple(leaves[leaf] for leaf in kept)
        return {**options, "in_shardings": halves}


def _unplanned(*_args: Any, **_kwargs: Any) -> Any:
    """The step of a function that was not called yet."""
    raise OtherStructure


def _hashable(statics: Statics) -> bool:
    try:
        hash(statics)
    except TypeError:
        return False
    return True


def _is_one(shardings: Any) -> bool:
    """Whether one sharding stands for all, or none is given."""
    return shardings is None or _jax.tree.structure(shardings) == _jax.tree.structure(0)


def _spread(shardings: Any, tree: Any) -> list[Any]:
    """The sharding of each leaf, given a prefix of the tree; None is left to XLA."""
    whole = _jax.tree.broadcast(shardings, tree, is_leaf=_is_absent)
    return _jax.tree.leaves(whole, is_leaf=_is_absent)


def _is_absent(value: Any) -> bool:
    return value is None
