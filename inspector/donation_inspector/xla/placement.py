"""On which devices a call's arrays are, where that keeps them from being one call's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from donation_inspector.xla import internals
from donation_inspector.xla.leaves import Name

_NAMED = 4


def apart(inputs: Sequence[Any]) -> Mapping[str, tuple[int, ...]]:
    """The places of flat inputs that are fixed to devices, by the devices in words; empty where those are the same."""
    found: dict[str, list[int]] = {}
    for index, value in enumerate(inputs):
        if isinstance(value, jax.Array) and not isinstance(value, internals.Tracer) and value.committed:
            sharding: Any = value.sharding
            found.setdefault(_words(sharding.device_set), []).append(index)
    return {where: tuple(places) for where, places in found.items()} if len(found) > 1 else {}


def told(name: str, apart: Mapping[str, Sequence[int]], names: Sequence[Name]) -> str:
    """One sentence for each group of devices, and how to bring the arrays together: to where most of them are."""
    home = max(apart, key=lambda where: len(apart[where]))
    listed = "; ".join(f"{_listed([names[i].path for i in places])} on {where}" for where, places in apart.items())
    stray = next(names[places[0]].path for where, places in apart.items() if where != home)
    return (
        f"{name} cannot run on arrays that are on different devices: {listed}. Put them together, as in "
        f"jax.device_put({stray}, {names[apart[home][0]].path}.sharding)."
    )


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more


def _words(devices: Any) -> str:
    names = [f"{one.platform}:{one.id}" for one in sorted(devices, key=lambda one: one.id)]
    return names[0] if len(names) == 1 else f"{len(names)} devices ({names[0]} … {names[-1]})"
