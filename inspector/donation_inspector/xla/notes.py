"""What JAX says about donation, and what it passes over in silence, as sentences that name the user's arguments."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from donation_inspector.common.signature import Donation, Ignored, Leaf, Signature

Setting = Literal["debug_nans", "disable_jit"]
"""A setting of JAX's that turns donation off: of all that `jax.config` has, these two do."""

_SHOWN = 3
_LISTED = 8
"""A longer list is cut to the first few."""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to tell. `leaves` are the flat arguments it is about.

    `kind` is, for warnings, one of "unusable", "same array", "jax"; for silent cases one of "dropped", "inner jit",
    "debug_nans", "disable_jit", "effect", "leak".
    """

    kind: str
    text: str
    leaves: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.text


def unusable(signature: Signature, donation: Donation, donated: frozenset[int]) -> tuple[int, ...]:
    """The donated leaves that JAX could neither pair nor leave to XLA: those in its warning."""
    settled = donation.positions
    return tuple(
        leaf.index
        for leaf in signature.arguments
        if leaf.index in donated and leaf.position is not None and leaf.position not in settled
    )


def unusable_note(signature: Signature, leaves: Sequence[int]) -> Note:
    """JAX's warning, with the user's names for the buffers."""
    named = ", ".join(f"{_with_type(signature.arguments[i])}" for i in leaves)
    return Note(
        "unusable",
        f"Some donated buffers were not usable: {named}. No result has their shape and dtype, or each such result "
        "takes another donated argument's buffer. They are kept until the call ends, as if they were not donated.",
        tuple(leaves),
    )


def _with_type(leaf: Leaf) -> str:
    dimensions = ",".join("?" if size is None else str(size) for size in leaf.shape)
    return f"{leaf.path} {leaf.dtype}[{dimensions}]"


def same_arrays(inputs: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    """Groups of leaves that are one and the same array object."""
    groups: dict[int, list[int]] = {}
    for index, value in enumerate(inputs):
        if hasattr(value, "is_deleted"):
            groups.setdefault(id(value), []).append(index)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def same_array_notes(signature: Signature, groups: Sequence[Sequence[int]], donated: frozenset[int]) -> Iterator[Note]:
    """Warn where an array is donated and stands at another used argument too: the call itself will fail."""
    several = [[i for i in group if signature.arguments[i].position is not None] for group in groups]
    refused = [used for used in several if len(used) > 1 and not donated.isdisjoint(used)]
    told = len(refused) if len(refused) <= _SHOWN + 1 else _SHOWN
    for used in refused[:told]:
        given = next(i for i in used if i in donated)
        yield Note(
            "same array",
            f"{_together(signature, used)} are the same array, and {signature.arguments[given].path} is donated: JAX "
            "refuses the call when it runs, because a donated buffer may be used once only. Pass a copy for one of "
            "them.",
            tuple(used),
        )
    if left := refused[told:]:
        yield Note(
            "same array",
            f"So it is with {len(left)} more arrays, the first of them {_together(signature, left[0])}.",
            tuple(i for used in left for i in used),
        )


def _together(signature: Signature, leaves: Sequence[int]) -> str:
    return " and ".join(signature.arguments[i].path for i in leaves)


def _first(paths: Sequence[str]) -> str:
    """Some of a list that is as long as a model has arrays."""
    return ", ".join(paths) if len(paths) <= _LISTED else f"{', '.join(paths[:_SHOWN])} and {len(paths) - _SHOWN} more"


def dropped_note(signature: Signature, donated: frozenset[int]) -> Iterator[Note]:
    """Donated arguments that the function never reads: JAX drops them and their donation without a word."""
    leaves = [leaf for leaf in signature.arguments if leaf.index in donated and leaf.position is None]
    if leaves:
        paths = ", ".join(leaf.path for leaf in leaves)
        yield Note(
            "dropped",
            f"Donated, but the result does not depend on it: {paths}. JAX drops unused arguments, so nothing is "
            "donated; jax.jit(..., keep_unused=True) keeps them.",
            tuple(leaf.index for leaf in leaves),
        )


_OFF: Mapping[Setting, str] = {
    "debug_nans": "JAX ignores every donation, because it may run the function again with the same arguments",
    "disable_jit": "JAX runs jitted functions operation by operation, and ignores every donation",
}


def off_note(setting: Setting, leaves: tuple[int, ...]) -> Note:
    """A setting of JAX under which nothing is donated, whatever a function asks for."""
    told = f"jax_{setting} is on: {_OFF[setting]}. Nothing is donated here; turn it off to see what would be."
    return Note(setting, told, leaves)


def leak_note(put_back: bool) -> Note:
    """Tracing stored traced values somewhere outside the function; `put_back`: what was there is there again."""
    what = "While it was traced, the function stored traced values outside itself (in a global, an attribute or a "
    left = "container). Using them later raises UnexpectedTracerError; return them instead."
    back = (
        "container). What was there before is put back. To look at the jitted step that it calls, make its next real "
        "call inside `with di.watch() as watched:`."
    )
    return Note("leak", what + (back if put_back else left))


def effect_notes(jaxpr: Any) -> Iterator[Note]:
    """Side effects that the traced program keeps: prints, callbacks, ordered effects."""
    names = sorted({_effect_name(effect) for effect in jaxpr.effects} - {""})
    if names:
        yield Note(
            "effect",
            f"The function has side effects while it runs ({', '.join(names)}): host callbacks point into this Python "
            "process.",
        )


def _effect_name(effect: Any) -> str:
    name = type(effect).__name__
    return {
        "DebugEffect": "jax.debug.print or callback",
        "OrderedDebugEffect": "ordered jax.debug.print or callback",
        "IOEffect": "io_callback",
        "OrderedIOEffect": "ordered io_callback",
    }.get(name, "" if "Ref" in name or "Mutable" in name or "Read" in name or "Write" in name else name)


def inner_jit_notes(jaxpr: Any, leaves: int) -> Iterator[Note]:
    """Donation asked for at a jitted function that is called inside: JAX ignores it without a word.

    `leaves` is how many the user's flat arguments are: the last inputs of the jaxpr.
    """
    user_leaves = {variable: index for index, variable in enumerate(jaxpr.invars[len(jaxpr.invars) - leaves :])}
    calls: defaultdict[tuple[str, tuple[str, ...]], list[tuple[int, ...]]] = defaultdict(list)
    for name, arguments, given in _inner_donations(jaxpr, user_leaves):
        calls[name, arguments].append(given)
    for (name, arguments), given in calls.items():
        times = "" if len(given) == 1 else f" ({len(given)} calls)"
        yield Note(
            "inner jit",
            f"{name}, a jitted function called inside{times}, donates {_first(arguments)}: JAX ignores donation "
            "inside another jit. Donate at the outermost jit instead.",
            tuple(sorted({leaf for passed in given for leaf in passed})),
        )


def _inner_donations(
    jaxpr: Any, user_leaves: Mapping[Any, int]
) -> Iterator[tuple[str, tuple[str, ...], tuple[int, ...]]]:
    """(function, names of its donated arguments, the user's leaves among them) of every inner jit that donates."""
    for equation in jaxpr.eqns:
        donated = equation.params.get("donated_invars")
        passed: list[int | None] = [user_leaves.get(one) if _is_variable(one) else None for one in equation.invars]
        if donated and any(donated):
            inner = equation.params["jaxpr"].jaxpr
            names: Sequence[str] = inner.debug_info.safe_arg_names(len(donated))
            yield (
                str(equation.params.get("name", equation.primitive)),
                tuple(name or f"argument {i}" for i, (name, d) in enumerate(zip(names, donated, strict=True)) if d),
                tuple(leaf for leaf, d in zip(passed, donated, strict=True) if d and leaf is not None),
            )
        for value in equation.params.values():
            for inner in _several(value):
                body = getattr(inner, "jaxpr", inner)
                if hasattr(body, "eqns"):
                    # Only a jit hands its inputs on one for one.
                    known = zip(body.invars, passed, strict=True) if donated is not None else ()
                    yield from _inner_donations(body, {one: leaf for one, leaf in known if leaf is not None})


def _is_variable(operand: Any) -> bool:
    return not hasattr(operand, "val")


def with_ignored(signature: Signature, notes: Sequence[Note]) -> Signature:
    """The signature whose leaves know that an inner jit's donation, or any under a setting, does not count."""
    kinds: Sequence[Ignored] = ("inner jit", *_OFF)
    why: dict[int, Ignored] = {}
    for note in notes:
        for kind in kinds:
            if note.kind == kind:
                why |= {leaf: kind for leaf in note.leaves if not signature.arguments[leaf].donated}
    if not why:
        return signature
    arguments = tuple(dataclasses.replace(leaf, ignored=why.get(leaf.index)) for leaf in signature.arguments)
    return dataclasses.replace(signature, arguments=arguments)


def without_donation(signature: Signature) -> Signature:
    """The signature with nothing donated."""
    arguments = tuple(dataclasses.replace(leaf, donated=False) for leaf in signature.arguments)
    return dataclasses.replace(signature, arguments=arguments)


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple | list) else (value,)  # pyright: ignore[reportUnknownVariableType]
