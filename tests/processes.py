"""The children that this test's process has: they must be gone after every answer."""

from __future__ import annotations

import os
from pathlib import Path


def children() -> set[int]:
    """Process ids of the direct children of this process, zombies included."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
            found.add(int(folder.name))
    return found


def group_exists(leader: int) -> bool:
    """Whether any process of that group is left."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True
