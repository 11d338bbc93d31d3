"""Where an array's buffers lie, as plain numbers: nothing here keeps a buffer alive, or from being donated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

Buffer = tuple[str, int]
"""(device, address): `("cpu:0", 94661423100864)`; a memory other than the device's own is named with it."""


def buffers(value: Any) -> Mapping[Buffer, int] | None:
    """The bytes of each of an array's buffers on this process's devices; none for an array without bytes.

    Waits until the array is computed. None where there is no telling: no `jax.Array`, a deleted or traced one, or a
    runtime that hides its addresses.
    """
    if not isinstance(value, jax.Array):
        return None
    try:
        parts: list[Any] = [shard.data for shard in value.addressable_shards]
        return {(device_name(part), part.unsafe_buffer_pointer()): int(part.nbytes) for part in parts if part.nbytes}
    except Exception:
        # runtimes and array types refuse in ways of their own, and each of them means the same
        return None


def is_deleted(value: Any) -> bool:
    """Whether a call took the array's buffers."""
    return isinstance(value, jax.Array) and value.is_deleted()


def device_name(array: Any) -> str:
    """`cuda:0` for an array on one device, `cuda:0 pinned_host` where it lies in another memory than the device's own."""
    (device,) = array.sharding.device_set
    kind: str | None = array.sharding.memory_kind
    return spoken(device) if kind in (None, device.default_memory().kind) else f"{spoken(device)} {kind}"


def spoken(device: Any) -> str:
    """`cuda:0`."""
    return f"{device.platform}:{device.id}"
