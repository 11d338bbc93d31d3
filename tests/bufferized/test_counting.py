"""What the child counts, called as a compiled program calls it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from donation_inspector.bufferized.counting import Counter, renamed, view
from donation_inspector.bufferized.protocol import Counts

STRIDED = """
declare ptr @malloc(i64)
declare void @memrefCopy(i64, ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64, i1 immarg) #1
  %57 = call ptr @malloc(i64 16)
  call void @llvm.memcpy.p0.p0.i64(ptr %99, ptr %96, i64 %93, i1 false)
  call void @free(ptr %57)
  call void @mallocated()
"""


def functions(counter: Counter) -> dict[str, Any]:
    types = {
        "counted_malloc": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t),
        "counted_free": ctypes.CFUNCTYPE(None, ctypes.c_void_p),
        "counted_copy": ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_bool),
        "counted_copy_strided": ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p),
    }
    return {name: types[name](address) for name, address in counter.addresses().items()}


def test_the_peak_is_what_was_held_at_once() -> None:
    counter = Counter()
    call = functions(counter)
    first = call["counted_malloc"](100)
    second = call["counted_malloc"](50)
    call["counted_free"](first)
    third = call["counted_malloc"](80)
    nothing = call["counted_malloc"](0)
    assert nothing not in (None, second, third)
    call["counted_free"](None)
    assert counter.counts() == Counts(allocations=4, frees=1, copies=0, copied=0, peak=150)
    ctypes.memset(second, 7, 50)
    call["counted_copy"](third, second, 50, False)
    assert ctypes.string_at(third, 50) == b"\x07" * 50
    assert counter.counts() == Counts(allocations=4, frees=1, copies=1, copied=50, peak=150)


def descriptor(array: np.ndarray[Any, Any]) -> Any:
    strides = [stride // array.itemsize for stride in array.strides]
    fields = (ctypes.c_int64 * (3 + 2 * array.ndim))(0, array.ctypes.data, 0, *array.shape, *strides)
    return (ctypes.c_int64 * 2)(array.ndim, ctypes.addressof(fields)), fields


def test_a_strided_copy_moves_what_numpy_moves() -> None:
    counter = Counter()
    whole, target = np.arange(48, dtype=np.int32).reshape(6, 8), np.zeros((4, 3), np.int32)
    source = whole[1:5, ::3]
    (given, keep_given), (taken, keep_taken) = descriptor(source), descriptor(target)
    functions(counter)["counted_copy_strided"](4, ctypes.addressof(given), ctypes.addressof(taken))
    assert np.array_equal(target, source)
    assert counter.counts() == Counts(0, 0, 1, source.nbytes, 0)
    assert np.array_equal(view(list(keep_given), 2, source.dtype), source)
    assert view(list(keep_taken), 2, target.dtype).shape == (4, 3)


def test_only_what_is_counted_is_renamed() -> None:
    lines = renamed(STRIDED).split("\n")
    assert lines[1:] == [
        "declare ptr @counted_malloc(i64)",
        "declare void @counted_copy_strided(i64, ptr, ptr)",
        "declare void @counted_copy(ptr, ptr, i64, i1)",
        "  %57 = call ptr @counted_malloc(i64 16)",
        "  call void @counted_copy(ptr %99, ptr %96, i64 %93, i1 false)",
        "  call void @counted_free(ptr %57)",
        "  call void @mallocated()",
        "",
    ]
