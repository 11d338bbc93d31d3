"""In the process that asks: whether another process could run on the device while this one lives.

A GPU's memory is taken by the first process that starts JAX on it (three quarters of it by default), a TPU as a whole.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from typing import Any

from donation_inspector.common.units import format_bytes
from donation_inspector.xla import internals

_jax: Any = importlib.import_module("jax")

WAYS_OUT = (
    'Either save it, inspection.save("step.di"), and run `donation-inspector measure step.di` in a shell when this '
    "kernel has ended; or measure(in_kernel=True) runs it in this kernel, where earlier use of the device can hide a "
    "lower peak."
)
_QUERY = ("nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits")


def why_not_beside(platform: str, needs: int | None) -> str | None:
    """Why a fresh process cannot run a program of `needs` bytes a device while this process lives; None where it can.

    None needs no other process either: on a CPU, and where this process has not started JAX on a device.
    """
    if platform == "cpu" or not internals.xla_bridge.backends_are_initialized():
        return None
    if platform == "tpu":
        return f"A TPU belongs to one process, and this kernel holds it: no fresh process can run on it. {WAYS_OUT}"
    held, free = held_bytes(platform), free_bytes()
    if held is None and free is None:
        return None
    if free is not None and needs is not None and needs <= free:
        return None
    if free is None and not _preallocates():
        return None
    there = "" if free is None else f", {format_bytes(free)} are left"
    wanted = "" if needs is None else f", the program takes {format_bytes(needs)}"
    return (
        f"This kernel holds {format_bytes(held)} of the {platform} device{there}{wanted}: a fresh process cannot run "
        f"beside it. {WAYS_OUT} A kernel started with XLA_PYTHON_CLIENT_PREALLOCATE=false takes only what it needs."
    )


def held_bytes(platform: str) -> int | None:
    """Bytes of its first device's memory that this process has taken from the system; None where it is not told."""
    stats: Any = _jax.local_devices(backend=platform)[0].memory_stats() or {}
    if _preallocates():
        return stats.get("pool_bytes", stats.get("bytes_limit"))
    return stats.get("pool_bytes", stats.get("bytes_in_use"))


def free_bytes() -> int | None:
    """Bytes that are free on the GPU with the least of them, as the driver says; None without its tool."""
    if shutil.which(_QUERY[0]) is None:
        return None
    try:
        said = subprocess.run(_QUERY, capture_output=True, text=True, timeout=10, check=True).stdout
        return min(int(line) for line in said.split()) << 20
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _preallocates() -> bool:
    asked = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "true").lower()
    return asked not in ("false", "0") and os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default") != "platform"
