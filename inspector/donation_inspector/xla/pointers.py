"""Where an array's buffers lie, as plain numbers: nothing here keeps a buffer alive, or from being donated."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jax

Buffer = tuple[str, int]
"""(device, address): `("cpu:0", 94661423100864)`; a memory other than the device's own is named with it."""


def buffers(value: Any) -> Mapping[Buffer, int] | None:
    """The bytes of each of an array's buffers on this process's devices; none for an array without bytes.

    Waits until the array is computed. None where there is no telling: no `jax.Array`, a deleted or traced one, one
    whose computation failed, or a runtime that hides its addresses.
    """
    if not isinstance(value, jax.Array):
        return None
    try:
        array: Any = value
        # raises where its computation failed: asked for the address of such an array, jaxlib ends the process
        array.block_until_ready()
        # asked for its shards, JAX makes an array of each and keeps it
        alone = len(array.sharding.device_set) == 1
        parts: list[Any] = [array] if alone else [shard.data for shard in array.addressable_shards]
        return {(_place(one.sharding), one.unsafe_buffer_pointer()): int(one.nbytes) for one in parts if one.nbytes}
    except Exception:
        # runtimes and array types refuse in ways of their own, and each of them means the same
        return None


def is_deleted(value: Any) -> bool:
    """Whether a call took the array's buffers."""
    return isinstance(value, jax.Array) and value.is_deleted()


@functools.lru_cache(maxsize=256)
def _place(sharding: Any) -> str:
    (device,) = sharding.device_set
    kind: str | None = sharding.memory_kind
    return spoken(device) if kind in (None, device.default_memory().kind) else f"{spoken(device)} {kind}"


def spoken(device: Any) -> str:
    """`cuda:0`."""
    return f"{device.platform}:{device.id}"
