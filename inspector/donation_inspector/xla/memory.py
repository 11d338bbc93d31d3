"""What the operating system says about memory: how much there is, and how much this process holds.

Everything here reads Linux's /proc and its control groups; elsewhere the answers are None.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")

# mallopt(3); the largest and the default threshold that glibc takes on 64 bits
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGEST_MMAP_THRESHOLD = 32 * 1024 * 1024
_DEFAULT_THRESHOLD = 128 * 1024


def _number(path: Path) -> int | None:
    """The file's one number; None where there is no such file or it says "max"."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _field(path: Path, name: str) -> int | None:
    """The number after `name` in a file of "name value" lines; None where it is not there."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split()
        if words and words[0] == name:
            return int(words[1])
    return None


def _groups() -> Iterator[tuple[Path, str, str]]:
    """Every memory control group above this process: its folder, its limit's file, its usage's file."""
    try:
        lines = (_PROC / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            base, limit, usage = _CGROUPS / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        elif not controllers:
            base, limit, usage = _CGROUPS, "memory.max", "memory.current"
        else:
            continue
        folder = base / path.lstrip("/")
        while True:
            yield folder, limit, usage
            if folder == base or base not in folder.parents:
                break
            folder = folder.parent


def available() -> int | None:
    """Bytes that a new process can take without swapping or passing a control group's limit; None means unknown."""
    kilobytes = _field(_PROC / "meminfo", "MemAvailable:")
    bounds = [] if kilobytes is None else [kilobytes * 1024]
    for folder, limit_file, usage_file in _groups():
        limit, usage = _number(folder / limit_file), _number(folder / usage_file)
        if limit is None or usage is None:
            continue
        # pages of files that the kernel drops when memory is short count as used there
        droppable = _field(folder / "memory.stat", "inactive_file") or 0
        bounds.append(max(0, limit - usage + droppable))
    return min(bounds, default=None)


def out_of_memory_kills() -> int | None:
    """How many processes the kernel has killed since it started because memory ran out; None means unknown."""
    return _field(_PROC / "vmstat", "oom_kill")


def resident() -> int | None:
    """Bytes of this process that are in memory now; None means unknown."""
    kilobytes = _field(_PROC / "self/status", "VmRSS:")
    return None if kilobytes is None else kilobytes * 1024


def reset_peak() -> bool:
    """Make `peak` count from now on; False where the system does not offer it."""
    try:
        # 5: proc(5), /proc/[pid]/clear_refs, "reset the peak resident set size"
        (_PROC / "self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def peak() -> int | None:
    """The most bytes of this process that were in memory at once since `reset_peak`; None means unknown."""
    kilobytes = _field(_PROC / "self/status", "VmHWM:")
    return None if kilobytes is None else kilobytes * 1024


def trim() -> None:
    """Give freed memory back to the system where the C library can, so that it is not counted as held."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def keep_freed(*, below: int) -> bool:
    """From now on malloc keeps freed blocks smaller than `below` bytes, and takes and returns larger ones singly.

    0 goes back to the C library's own fixed thresholds. False where it has no such setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mapped = min(below, _LARGEST_MMAP_THRESHOLD) or _DEFAULT_THRESHOLD
    kept = 2**31 - 1 if below else _DEFAULT_THRESHOLD
    return bool(mallopt(_M_MMAP_THRESHOLD, mapped)) and bool(mallopt(_M_TRIM_THRESHOLD, kept))


def prefer_as_victim() -> None:
    """Tell the kernel to end this process first when memory runs out, rather than the notebook."""
    with contextlib.suppress(OSError):
        (_PROC / "self/oom_score_adj").write_text("1000")


def demand_address_space(nbytes: int) -> None:
    """Raise MemoryError where a limit (ulimit -v) leaves less than this: OpenBLAS, once loaded, would wait for ever."""
    try:
        mmap.mmap(-1, nbytes, prot=mmap.PROT_READ).close()
    except OSError as error:
        raise MemoryError(f"{nbytes >> 20} MB of address space are needed to start, and are not left") from error
