"""In the child: the buffers a program is called with, made on the device, and what comes back. Imports JAX.

An array that numpy gave may share numpy's memory, and XLA then donates a copy; so every input, real ones too, is the
output of a compiled computation.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

# The public shardings name mesh axes; the compiled module has only XLA's own description.
from jax._src.sharding_impls import GSPMDSharding
from jax.experimental.layout import Format, Layout
from jaxlib.mlir import ir

from .program import Input, Program
from .protocol import Stored


class Runner:
    """A loaded executable with the forms of its arguments and results."""

    def __init__(self, program: Program, executable: Any, values: Sequence[Stored | None], values_fd: int | None) -> None:
        self._executable = executable
        self._program = program
        self._values = values
        self._values_fd = values_fd
        self._formats = _formats(program, executable)
        self._result_shardings = _result_shardings(program, executable)

    def inputs(self) -> list[jax.Array]:
        """Fresh buffers for one call, finished."""
        made = [
            _generate(described, form, position) if stored is None else self._stored(described, form, stored)
            for position, (described, form, stored) in enumerate(
                zip(self._program.inputs, self._formats, self._values, strict=True)
            )
        ]
        return jax.block_until_ready(made)

    def call(self, inputs: list[jax.Array]) -> list[list[jax.Array]]:
        """One call, finished: for each result its buffer on each device."""
        results = self._executable.execute_sharded(inputs).disassemble_into_single_device_arrays()
        jax.block_until_ready(results)
        return results

    def hashes(self, results: list[list[jax.Array]]) -> tuple[str, ...]:
        """sha256 of each result's bits, whole arrays."""
        return tuple(_hash(self._whole(result, i)) for i, result in enumerate(results))

    def _whole(self, shards: list[jax.Array], index: int) -> jax.Array:
        if self._result_shardings is None:
            return shards[0]
        shape, sharding = self._result_shardings[index]
        return jax.make_array_from_single_device_arrays(shape, sharding, shards)

    def _stored(self, described: Input, form: Any, stored: Stored) -> jax.Array:
        assert self._values_fd is not None
        dtype = jnp.dtype(described.dtype)
        sharding = form.sharding if isinstance(form, Format) else form
        if stored.nbytes == 0:
            return _copy(jax.device_put(np.empty(described.shape, dtype), sharding), form)
        view = mmap.mmap(self._values_fd, stored.nbytes, offset=stored.offset, access=mmap.ACCESS_READ)
        placed = jax.device_put(np.frombuffer(view, dtype).reshape(described.shape), sharding)
        copied = jax.block_until_ready(_copy(placed, form))
        # the runtime lets go of the view when it likes; its pages must not count as the program's until then
        if hasattr(mmap, "MADV_DONTNEED"):
            view.madvise(mmap.MADV_DONTNEED)
        return copied


def _formats(program: Program, executable: Any) -> list[Any]:
    """A sharding for each argument, with a layout where XLA wants another than row-major."""
    devices = _devices(program)
    op_shardings = executable.get_parameter_shardings() if len(devices) > 1 else None
    layouts = executable.get_parameter_layouts()
    forms: list[Any] = []
    for position, described in enumerate(program.inputs):
        sharding = (
            jax.sharding.SingleDeviceSharding(devices[0])
            if op_shardings is None
            else GSPMDSharding(devices, op_shardings[position])
        )
        layout = Layout.from_pjrt_layout(layouts[position])
        row_major = layout.major_to_minor == tuple(range(len(described.shape)))
        forms.append(sharding if row_major else Format(layout, sharding))
    return forms


def _result_shardings(program: Program, executable: Any) -> list[tuple[tuple[int, ...], Any]] | None:
    """Whole shape and sharding of each result; None on one device, where the buffer is the array."""
    devices = _devices(program)
    if len(devices) == 1:
        return None
    shardings = executable.get_output_shardings()
    return [
        (shape, GSPMDSharding(devices, sharding))
        for shape, sharding in zip(_result_shapes(program), shardings, strict=True)
    ]


def _result_shapes(program: Program) -> list[tuple[int, ...]]:
    from jax._src.interpreters.mlir import make_ir_context  # as in `executable`

    with make_ir_context():
        module: Any = ir.Module.parse(program.bytecode)
        main = next(op for op in module.body if op.operation.name == "func.func" and op.name.value == "main")
        return [tuple(ir.RankedTensorType(result).shape) for result in main.type.results]


def _devices(program: Program) -> list[Any]:
    by_id = {device.id: device for device in jax.devices()}
    return [by_id[number] for number in program.device_ids]


def _copy(array: jax.Array, form: Any) -> jax.Array:
    return jax.jit(jnp.copy, out_shardings=form)(array)


def _generate(described: Input, form: Any, seed: int) -> jax.Array:
    is_key = described.logical_dtype.startswith("key<")
    return _generator(described.shape, described.dtype, is_key, form)(jnp.uint32(seed))


@cache
def _generator(shape: tuple[int, ...], dtype: str, is_key: bool, form: Any) -> Any:
    return jax.jit(partial(generated, shape=shape, dtype=dtype, is_key=is_key), out_shardings=form)


def generated(seed: jax.Array, *, shape: tuple[int, ...], dtype: str, is_key: bool) -> jax.Array:
    """Values that keep programs out of trouble: floats in [0.5, 1), integers and booleans 0 or 1, any bits for a key.

    The same for the same `seed` (uint32) on every device and in every process.
    """
    bits = seed * jnp.uint32(0x9E3779B9)
    for dimension in range(len(shape)):
        stride = jnp.uint32((0x85EBCA6B * (2 * dimension + 1)) & 0xFFFFFFFF)
        bits = bits * jnp.uint32(31) + lax.broadcasted_iota(jnp.uint32, shape, dimension) * stride
    bits = jnp.broadcast_to(_mixed(bits), shape)
    kind = jnp.dtype(dtype)
    if is_key:
        return bits.astype(kind)
    if jnp.issubdtype(kind, jnp.complexfloating):
        part = jnp.float64 if kind == jnp.complex128 else jnp.float32
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
    limits = jnp.finfo(dtype)
    # a type whose normal numbers begin above 0.5 has nothing between 0.5 and 1
    mantissa = min(limits.nmant, 23) if limits.smallest_normal <= 0.5 else 0
    wide = jnp.float64 if dtype == jnp.float64 else jnp.float32
    steps = (bits >> (32 - mantissa)).astype(wide) if mantissa else jnp.zeros_like(bits, wide)
    return (0.5 + steps * wide(0.5 / 2**mantissa)).astype(dtype)


def _hash(array: jax.Array) -> str:
    values = np.ascontiguousarray(np.asarray(array))
    return hashlib.sha256(values.reshape(-1).view(np.uint8)).hexdigest()
