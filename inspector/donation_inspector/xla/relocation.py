"""Why JAX copies an argument before a call: it is then the copy that is donated, and the caller's array stays."""

from __future__ import annotations

from typing import Any

import jax

from donation_inspector.xla.facts import Facts
from donation_inspector.xla.leaves import sharding_text
from donation_inspector.xla.pointers import spoken


def why_moved(facts: Facts, leaf: int, value: jax.Array) -> str | None:
    """What differs between where an argument lies and what the program is compiled for; None where it stays in place.

    Also None where the program was written for no devices in particular.
    """
    if leaf not in facts.kept or not facts.devices:
        return None
    argument = len(facts.constants) + facts.kept.index(leaf)
    array: Any = value
    lies, wanted = array.sharding, facts.in_shardings[argument]
    if set(lies.device_set) != set(facts.devices):
        return f"it lies on {_devices(lies.device_set)}, and the call runs on {_devices(facts.devices)}"
    if wanted is not None and not lies.is_equivalent_to(wanted, array.ndim):
        return f"it lies {_placed(lies)}, and the call is compiled for {_placed(wanted)}"
    wanted_layout = None if facts.in_layouts is None else facts.in_layouts[argument]
    order, wanted_order = _order(getattr(array, "format", None)), _order(wanted_layout)
    if None not in (order, wanted_order) and order != wanted_order:
        return f"its dimensions lie in the order {order}, and the call is compiled for {wanted_order} (major to minor)"
    return None


def _order(layout: Any) -> tuple[int, ...] | None:
    order = getattr(getattr(layout, "layout", layout), "major_to_minor", None)
    return None if order is None else tuple(order)


def _placed(sharding: Any) -> str:
    return sharding_text(sharding) or f"in {sharding.memory_kind} of {_devices(sharding.device_set)}"


def _devices(devices: Any) -> str:
    names = [spoken(device) for device in sorted(devices, key=lambda device: device.id)]
    return ", ".join(names) if len(names) <= 2 else f"{len(names)} devices ({names[0]} to {names[-1]})"
