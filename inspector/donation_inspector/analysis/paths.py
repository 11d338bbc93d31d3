"""Pytree paths in steps: which argument and which result have one name."""

from __future__ import annotations

import re
from functools import lru_cache

from donation_inspector.common.signature import Leaf, updated

_UPDATED = updated("")


def noun(title: str) -> str:
    """A result as a noun: "the updated params['w']", "result [0]['w']", "the result" when it is one bare array."""
    argument = title.removesuffix(_UPDATED)
    if argument != title:
        return f"the updated {argument}"
    # in a file JAX's own `jax.result_info` names it: "result[0]['w']"
    place = re.sub(r"^result(?=[\[.]|$)", "", title)
    return f"result {place}" if place else "the result"


def argument_name(argument: Leaf) -> tuple[str, ...]:
    """The argument's path below the whole argument it belongs to; () when it is one itself."""
    return steps(argument.path.removeprefix(argument.root))


def result_names(result: Leaf) -> tuple[tuple[str, ...], ...]:
    """A result's path, whole and below its first step: a function returns one pytree or a tuple of several."""
    whole = steps(result.updates or result.path)
    return tuple(name for name in (whole, whole[1:]) if name)


@lru_cache(maxsize=65536)
def steps(path: str) -> tuple[str, ...]:
    """The steps of a pytree path: "opt_state[0].mu['w']" is ("opt_state", "[0]", ".mu", "['w']")."""
    return tuple(re.findall(r"\[(?:'[^']*'|\"[^\"]*\"|[^\]])*\]|\.?[^.\[]+", path))
