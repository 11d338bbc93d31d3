"""In the child: values for arguments of which only shape and type are known. Imports JAX."""

from __future__ import annotations

import importlib
from functools import cache, partial
from typing import Any

import jax

from donation_inspector.xla import internals

# public, but partly untyped
jnp: Any = importlib.import_module("jax.numpy")
lax: Any = importlib.import_module("jax.lax")


@cache
def generator(shape: tuple[int, ...], dtype: str, is_key: bool, form: Any) -> Any:
    """Compiled `generated` for one kind of buffer, from a seed (uint32) to an array of sharding and layout `form`."""
    return internals.jit(partial(generated, shape=shape, dtype=dtype, is_key=is_key), out_shardings=form)


def generated(seed: jax.Array, *, shape: tuple[int, ...], dtype: str, is_key: bool) -> jax.Array:
    """Values that keep programs out of trouble: floats in [0.5, 1), integers and booleans 0 or 1, any bits for a key.

    The same for the same `seed` on every device and in every process. JAX's own generators would do, but their work
    space would be tens of times the buffer.
    """
    bits = seed * jnp.uint32(0x9E3779B9)
    for dimension in range(len(shape)):
        stride = jnp.uint32((0x85EBCA6B * (2 * dimension + 1)) & 0xFFFFFFFF)
        bits = bits * jnp.uint32(31) + lax.broadcasted_iota(jnp.uint32, shape, dimension) * stride
    bits = jnp.broadcast_to(_mixed(bits), shape)
    kind: Any = jnp.dtype(dtype)
    if is_key:
        return bits.astype(kind)
    if jnp.issubdtype(kind, jnp.complexfloating):
        part: Any = jnp.dtype("float64" if kind == jnp.complex128 else "float32")
        return lax.complex(_half_to_one(bits, part), _half_to_one(_mixed(bits + jnp.uint32(1)), part))
    if jnp.issubdtype(kind, jnp.floating):
        return _half_to_one(bits, kind)
    return (bits & jnp.uint32(1)).astype(kind)


def _mixed(bits: jax.Array) -> jax.Array:
    """A 32-bit finaliser (C. Wellons, "lowbias32"): neighbours get unrelated values, without tables or state."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x846CA68B)
    return bits ^ (bits >> 16)


def _half_to_one(bits: jax.Array, dtype: Any) -> jax.Array:
    """Floats of [0.5, 1), each exact in `dtype`, so that none is rounded up to 1."""
    limits: Any = jnp.finfo(dtype)
    # a type whose normal numbers begin above 0.5 has nothing between 0.5 and 1
    mantissa = min(int(limits.nmant), 23) if float(limits.smallest_normal) <= 0.5 else 0
    wide: Any = jnp.dtype("float64" if dtype == jnp.float64 else "float32")
    steps = (bits >> jnp.uint32(32 - mantissa)).astype(wide) if mantissa else jnp.zeros_like(bits, wide)
    return (0.5 + steps * jnp.asarray(0.5 / 2**mantissa, wide)).astype(dtype)
