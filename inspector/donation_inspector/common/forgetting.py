"""Values that are kept because they are slow to make, and let go where memory is worth more."""

from __future__ import annotations

from functools import cached_property


def forget(thing: object) -> None:
    """Let go of the values of a thing's cached properties: they are made again when they are asked for."""
    cached = [name for name in vars(thing) if isinstance(getattr(type(thing), name, None), cached_property)]
    for name in cached:
        vars(thing).pop(name, None)
