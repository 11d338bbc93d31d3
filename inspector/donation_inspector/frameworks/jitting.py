"""The jit that a user would write to donate: what is suggested must run, and must not harm live objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from donation_inspector.frameworks.ways import Way


def line_that_donates(way: Way, roots: Sequence[str]) -> str | None:
    """The assignment that jits the function so that it donates these whole arguments; None where there is no such line.

    An NNX step keeps to `nnx.jit`, because `jax.jit` would lose what it changes in live objects, and static arguments
    stay static. Nothing is suggested for `eqx.filter_jit`, whose donation goes by groups of arguments, for `di.jit`,
    whose pairs another jit would not make, for a jit with options that another around it would not have, for a method,
    a partial, an object or an Exported, which no plain assignment replaces, or for arguments that have neither a name
    nor a number.
    """
    donating = way.donating(roots)
    if way.kind not in ("jax", "nnx") or way.shardings or not donating:
        return None
    parts = ", ".join(part for part in (way.function, way.static, donating) if part)
    return f"{way.assigned} = {way.kind}.jit({parts})"


def names_tuple(names: tuple[str, ...]) -> str:
    """The names as Python writes a tuple of them: `("params", "state")`."""
    written = ", ".join(f'"{name}"' for name in names)
    return f"({written},)" if len(names) == 1 else f"({written})"
