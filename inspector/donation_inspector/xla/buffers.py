"""In the child: the buffers a program is called with, made on the device, and what comes back. Imports JAX.

An array that numpy gave may share numpy's memory, and XLA then donates a copy; so every input, real ones too, is the
output of a compiled computation.
"""

from __future__ import annotations

import hashlib
import importlib
import mmap
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from donation_inspector.xla import internals
from donation_inspector.xla.executable import devices_of, parse
from donation_inspector.xla.generate import generator
from donation_inspector.xla.program import Input, Program
from donation_inspector.xla.protocol import Stored

# public, but partly untyped
jax: Any = importlib.import_module("jax")
jnp: Any = importlib.import_module("jax.numpy")
_layouts: Any = importlib.import_module("jax.experimental.layout")

# The public shardings name mesh axes; a compiled module has only XLA's own description.


class Runner:
    """A loaded executable with the forms of its arguments and results.

    `values` has one entry for each argument: its place in the file `values_fd`, or None to generate it.
    """

    def __init__(
        self, program: Program, executable: Any, values: Sequence[Stored | None], values_fd: int | None
    ) -> None:
        self._executable = executable
        self._values_fd = values_fd
        self._on_accelerator = program.platform != "cpu"
        self._arguments = list(zip(program.inputs, _forms(program, executable), values, strict=True))
        self._results = _result_forms(program, executable)

    def inputs(self) -> list[Any]:
        """Fresh buffers for one call, finished."""
        made = [self._input(described, form, stored) for described, form, stored in self._arguments]
        return jax.block_until_ready(made)

    def call(self, inputs: list[Any]) -> list[list[Any]]:
        """One call, finished: for each result its buffer on each device."""
        results = self._executable.execute_sharded(inputs).disassemble_into_single_device_arrays()
        return jax.block_until_ready(results)

    def hashes(self, results: list[list[Any]]) -> tuple[str, ...]:
        """sha256 of each result's bits, all devices' parts put together."""
        if self._results is None:
            return tuple(_hash(buffer) for (buffer,) in results)
        return tuple(
            _hash(jax.make_array_from_single_device_arrays(shape, sharding, buffers))
            for (shape, sharding), buffers in zip(self._results, results, strict=True)
        )

    def _input(self, described: Input, form: Any, stored: Stored | None) -> Any:
        if described.kind == "token":
            return jax.device_put(np.zeros((0,), np.bool_), form)
        if stored is None:
            is_key = described.logical_dtype.startswith("key<")
            return generator(described.shape, described.dtype, is_key, form)(np.uint32(described.position))
        return self._read(described, form, stored)

    def _read(self, described: Input, form: Any, stored: Stored) -> Any:
        dtype: Any = jnp.dtype(described.dtype)
        sharding = form.sharding if isinstance(form, _layouts.Format) else form
        if self._values_fd is None or stored.nbytes == 0:
            return _copier(form)(jax.device_put(np.empty(described.shape, dtype), sharding))
        view = mmap.mmap(self._values_fd, stored.nbytes, offset=stored.offset, access=mmap.ACCESS_READ)
        values = np.frombuffer(view, dtype).reshape(described.shape)
        if self._on_accelerator:
            # on its way there it is copied, and a second copy would raise the peak that is to be measured
            return jax.block_until_ready(jax.device_put(values, form))
        copied = jax.block_until_ready(_copier(form)(jax.device_put(values, sharding)))
        # the runtime lets go of the view when it likes; until then its pages must not count as the program's
        if hasattr(mmap, "MADV_DONTNEED"):
            view.madvise(mmap.MADV_DONTNEED)
        return copied


def sizes(arrays: Sequence[Any]) -> list[int]:
    """Bytes of each on its first device."""
    return [int(array.addressable_shards[0].data.nbytes) for array in arrays]


def stored(arrays: Sequence[Any], descriptor: int) -> tuple[Stored, ...]:
    """Writes arrays of one device behind what the file holds, each where it can be mapped."""
    places: list[Stored] = []
    for array in arrays:
        values = np.ascontiguousarray(np.asarray(array)).reshape(-1).view(np.uint8)
        end = os.fstat(descriptor).st_size
        places.append(Stored(-(-end // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY, values.nbytes))
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.seek(places[-1].offset)
            file.write(values.data)
    return tuple(places)


@cache
def _copier(form: Any) -> Any:
    return jax.jit(jnp.copy, out_shardings=form)


def _forms(program: Program, executable: Any) -> list[Any]:
    """A sharding for each argument, with a layout where XLA wants another than row-major."""
    devices: Any = devices_of(program)
    op_shardings: Any = executable.get_parameter_shardings() if len(devices) > 1 else None
    forms: list[Any] = []
    for described, pjrt_layout in zip(program.inputs, executable.get_parameter_layouts(), strict=True):
        sharding = (
            internals.GSPMDSharding(devices, op_shardings[described.position])
            if op_shardings
            else jax.sharding.SingleDeviceSharding(devices[0])
        )
        order = _layouts.Layout.from_pjrt_layout(pjrt_layout).major_to_minor
        row_major = described.kind == "token" or order == tuple(range(len(described.shape)))
        forms.append(sharding if row_major else _layouts.Format(_layouts.Layout(order), sharding))
    return forms


def _result_forms(program: Program, executable: Any) -> list[tuple[tuple[int, ...], Any]] | None:
    """Whole shape and sharding of each result; None on one device, where the buffer is the array."""
    devices = devices_of(program)
    if len(devices) == 1:
        return None
    with internals.mlir.make_ir_context():
        main = next(op for op in parse(program).body if op.operation.name == "func.func" and op.name.value == "main")
        shapes = [tuple(ir.RankedTensorType(result).shape) for result in main.type.results]
    op_shardings = executable.get_output_shardings()
    return [
        (shape, internals.GSPMDSharding(devices, sharding))
        for shape, sharding in zip(shapes, op_shardings, strict=True)
    ]


def _hash(array: Any) -> str:
    values = np.ascontiguousarray(np.asarray(array))
    return hashlib.sha256(values.reshape(-1).view(np.uint8).data).hexdigest()
