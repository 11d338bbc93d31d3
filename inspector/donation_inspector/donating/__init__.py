"""`di.jit`: `jax.jit` with the pairing that one chooses, through public JAX API alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import jax

from donation_inspector.common.visible import repr_of
from donation_inspector.donating.function import DonatingFunction as DonatingFunction
from donation_inspector.donating.pairs import Pairs
from donation_inspector.errors import TraceError


def jit(
    fn: Callable[..., Any],
    *,
    pairs: Pairs | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    **options: Any,
) -> Any:
    """`jax.jit`, but each donated argument hands its buffer to the result that `pairs` says.

    `pairs` maps an argument to a result, each a flat index or a path as `Inspection.arguments` and `.results` have
    them: `{"params['w']": "[0]['w']"}`, `{0: 2}`. A path may be that of a whole tree, whose leaves are then paired in
    order: `{"params": "[0]"}`. None is `jax.jit`, which pairs the first donated argument of a shape and dtype with the
    first result of them.

    Without `donate_*` exactly what has a pair is donated, single leaves of an argument too. With it the arguments
    that have no pair are donated after the others, as JAX pairs them. `options` are those of `jax.jit`: an argument
    that `fn` does not use is dropped, and has no buffer to give, unless `keep_unused=True` keeps it.

    What `trace`, `lower` and `compile` give takes and returns what `fn` does. JAX's own stage is its `.traced`,
    `.lowered` or `.compiled`: there the results stand in the order that makes the pairs, and where single leaves are
    donated the arguments are these leaves, then the others.

    On several devices JAX pairs shapes per device, and only results whose sharding is given; it tells no traced
    function of them. `inspect` shows what came of the pairs.

    Raises, when it is called, traced or lowered:
      PathError: a path or index that the call does not have, or that `donate_*` leaves out.
      TraceError: a pair of unequal shapes or dtypes; a pair of an argument that is dropped; an argument or a result in
        two pairs. At once: pairs that are no mapping, or `fn` that is no function.
    """
    if not callable(cast(object, fn)):
        raise TraceError(f"{repr_of(fn)} ({type(fn).__name__}) is no function. Give the function that is to be jitted.")
    choices = {"donate_argnums": donate_argnums, "donate_argnames": donate_argnames}
    given = {**options, **{name: value for name, value in choices.items() if value is not None}}
    if pairs is None:
        return cast(Any, jax).jit(fn, **given)
    return DonatingFunction(fn, pairs, given)
