"""The child process: compiles LLVM IR with llvmlite, calls it once, and tells what was counted."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import mmap
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from donation_inspector.bufferized.counting import Counter, renamed, view
from donation_inspector.bufferized.protocol import Array, Ran, Refused, RunJob
from donation_inspector.xla.serving import serve

_ENTRY = "_mlir_ciface_main"
# Relative to the largest of one and JAX's value: another order of additions, other roundings of tanh.
_TOLERANCES = {"float64": 1e-9, "complex128": 1e-9, "float16": 2e-2, "bfloat16": 5e-2}
_TOLERANCE = 1e-4


def main(job_fd: int, events_fd: int) -> None:
    """Do the `RunJob` in the file `job_fd` and write its events to the pipe `events_fd`."""
    serve(job_fd, events_fd, run)


def run(job: RunJob, tell: Callable[[object], None]) -> None:
    """A `Ran`, or a `Refused`. Code that dies takes this process with it."""
    arguments = [_read(array, job.values_fd) for array in job.arguments]
    counter = Counter()
    try:
        compiled = _compile(job.llvm, counter)
    except RuntimeError as error:
        tell(Refused(f"LLVM does not take it: {' '.join(str(error).split())}"))
        return
    expected = [_read(array, job.values_fd) for array in job.results]
    returned = _descriptors(job.results)
    described = [_descriptor(array) for array in arguments]
    pointers = [ctypes.addressof(one) for one in ((returned, *described) if expected else described)]
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(compiled.get_function_address(_ENTRY))
    started = time.perf_counter()
    entry(*pointers)
    seconds = time.perf_counter() - started
    counts = counter.counts()
    results = _results(returned, expected)
    places = [_place(address, arguments) for _, address in results]
    errors = [_error(made, right) for (made, _), right in zip(results, expected, strict=True)]
    close = all(_close(made, right) for (made, _), right in zip(results, expected, strict=True))
    overwritten = tuple(
        position
        for position, (array, before) in enumerate(zip(arguments, job.arguments, strict=True))
        if position not in job.donated and array.tobytes() != _read(before, job.values_fd).tobytes()
    )
    tell(Ran(counts, seconds, tuple(places), tuple(errors), close, overwritten))


def _compile(llvm: str, counter: Counter) -> Any:
    """The program's code, kept by what is returned. Raises RuntimeError where LLVM does not take it."""
    binding: Any = importlib.import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    binding.load_library_permanently(ctypes.util.find_library("m") or "libm.so.6")
    for name, address in counter.addresses().items():
        binding.add_symbol(name, address)
    module = binding.parse_assembly(renamed(llvm))
    module.verify()
    missing = [one.name for one in module.functions if one.is_declaration and not _is_known(binding, one.name)]
    if missing:
        raise RuntimeError(f"it calls {', '.join(missing)}, and no library here has that")
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=2
    )
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def _is_known(binding: Any, name: str) -> bool:
    return name.startswith("llvm.") or binding.address_of_symbol(name) is not None


def _read(array: Array, descriptor: int) -> np.ndarray[Any, Any]:
    """A copy in memory of its own."""
    dtype = _dtype(array.dtype)
    if not array.stored.nbytes:
        return np.empty(array.shape, dtype)
    with mmap.mmap(descriptor, array.stored.nbytes, offset=array.stored.offset, access=mmap.ACCESS_READ) as kept:
        return np.frombuffer(kept[:], dtype).reshape(array.shape).copy()


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), name))


def _descriptor(array: np.ndarray[Any, Any]) -> Any:
    """MLIR's memref descriptor of a C-contiguous array."""
    strides = [stride // array.itemsize for stride in array.strides]
    address = array.ctypes.data
    return (ctypes.c_int64 * (3 + 2 * array.ndim))(address, address, 0, *array.shape, *strides)


def _descriptors(results: Sequence[Array]) -> Any:
    """Room for the descriptors of all results, one after the other."""
    return (ctypes.c_int64 * max(1, sum(3 + 2 * len(array.shape) for array in results)))()


def _results(returned: Any, expected: Sequence[np.ndarray[Any, Any]]) -> list[tuple[np.ndarray[Any, Any], int]]:
    """Each result as an array, and the address of its buffer."""
    results: list[tuple[np.ndarray[Any, Any], int]] = []
    start = 0
    for right in expected:
        fields = returned[start : start + 3 + 2 * right.ndim]
        results.append((view(fields, right.ndim, right.dtype), fields[1]))
        start += len(fields)
    return results


def _place(address: int, arguments: Sequence[np.ndarray[Any, Any]]) -> int | None:
    found = [position for position, array in enumerate(arguments) if array.nbytes and array.ctypes.data == address]
    return found[0] if found else None


def _wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _error(made: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> float:
    if not right.size:
        return 0.0
    with np.errstate(all="ignore"):
        differences = np.abs(_wide(made) - _wide(right))
    same = (made == right) | (np.isnan(_wide(made)) & np.isnan(_wide(right)))
    return float(np.max(np.where(same, 0.0, differences)))


def _close(made: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    if right.dtype.kind in "biu":
        return bool(np.array_equal(made, right))
    tolerance = _TOLERANCES.get(right.dtype.name, _TOLERANCE)
    return bool(np.allclose(_wide(made), _wide(right), rtol=tolerance, atol=tolerance, equal_nan=True))
