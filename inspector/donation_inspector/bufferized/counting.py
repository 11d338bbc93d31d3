"""In the child: what a bufferized program asks of the C library, counted on its way there."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np

from donation_inspector.bufferized.protocol import Counts

_MALLOC, _FREE, _COPY, _COPY_STRIDED = "counted_malloc", "counted_free", "counted_copy", "counted_copy_strided"
_COPIED_BY_LLVM = re.compile(r"@llvm\.memcpy\.p0\.p0\.i64\b")
_DECLARED = re.compile(r"^declare void @llvm\.memcpy\.p0\.p0\.i64\(.*$", re.MULTILINE)


def renamed(llvm: str) -> str:
    """The LLVM IR with our own names for what is counted: LLVM takes calls of malloc and memcpy for its own to move."""
    llvm = _DECLARED.sub(f"declare void @{_COPY}(ptr, ptr, i64, i1)", llvm)
    llvm = _COPIED_BY_LLVM.sub(f"@{_COPY}", llvm)
    for theirs, ours in (("malloc", _MALLOC), ("free", _FREE), ("memrefCopy", _COPY_STRIDED)):
        llvm = re.sub(rf"@{theirs}\b", f"@{ours}", llvm)
    return llvm


class _Unranked(ctypes.Structure):
    """MLIR's UnrankedMemRefType: the rank, and where the descriptor is."""

    _fields_ = [("rank", ctypes.c_int64), ("descriptor", ctypes.c_void_p)]


class Counter:
    """Counting stand-ins of malloc, free and copies, under the names that `renamed` gives them."""

    def __init__(self) -> None:
        libc: Any = ctypes.CDLL(None)
        libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        libc.free.restype, libc.free.argtypes = None, [ctypes.c_void_p]
        self._libc = libc
        self._sizes: dict[int, int] = {}
        self._allocations = self._frees = self._copies = self._copied = self._held = self._peak = 0
        self._functions: dict[str, Any] = {
            _MALLOC: ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(self._malloc),
            _FREE: ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._free),
            _COPY: ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_bool)(self._copy),
            _COPY_STRIDED: ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(_Unranked), ctypes.POINTER(_Unranked))(
                self._copy_strided
            ),
        }

    def addresses(self) -> dict[str, int]:
        """The address of each function by the name that the program calls; they live as long as this object."""
        return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in self._functions.items()}

    def counts(self) -> Counts:
        """What was counted so far."""
        return Counts(self._allocations, self._frees, self._copies, self._copied, self._peak)

    def _malloc(self, nbytes: int) -> int | None:
        # zero bytes may have no address, and a buffer of its own needs one
        address: int | None = self._libc.malloc(max(nbytes, 1))
        if address is not None:
            self._sizes[address] = nbytes
            self._allocations += 1
            self._held += nbytes
            self._peak = max(self._peak, self._held)
        return address

    def _free(self, address: int | None) -> None:
        if address is not None:
            self._frees += 1
            self._held -= self._sizes.pop(address)
        self._libc.free(address)

    def _copy(self, target: int, source: int, nbytes: int, _volatile: bool) -> None:
        self._copies += 1
        self._copied += nbytes
        ctypes.memmove(target, source, nbytes)

    def _copy_strided(self, element_size: int, source: Any, target: Any) -> None:
        taken, given = _view(source.contents, element_size), _view(target.contents, element_size)
        self._copies += 1
        self._copied += taken.nbytes
        given[...] = taken


def _view(unranked: _Unranked, element_size: int) -> np.ndarray[Any, Any]:
    rank = unranked.rank
    fields = (ctypes.c_int64 * (3 + 2 * rank)).from_address(unranked.descriptor)
    return view(fields, rank, np.dtype(f"V{element_size}"))


def view(fields: Any, rank: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The array that a memref descriptor stands for: allocated, aligned, offset, sizes, strides."""
    sizes, strides = tuple(fields[3 : 3 + rank]), tuple(fields[3 + rank : 3 + 2 * rank])
    if 0 in sizes:
        return np.empty(sizes, dtype)
    reach = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    start = fields[1] + fields[2] * dtype.itemsize
    raw: Any = (ctypes.c_char * (reach * dtype.itemsize)).from_address(start)
    flat: np.ndarray[Any, Any] = np.frombuffer(raw, dtype)
    return np.lib.stride_tricks.as_strided(flat, sizes, [stride * dtype.itemsize for stride in strides])
