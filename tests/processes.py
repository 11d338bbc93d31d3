"""The children that this test's process has: they must be gone after every answer."""

from __future__ import annotations

import os
from pathlib import Path


def children(parent: int | None = None) -> set[int]:
    """Process ids of the direct children of a process, of this one where none is given, zombies included."""
    wanted = os.getpid() if parent is None else parent
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == wanted:
            found.add(int(folder.name))
    return found


def group_exists(leader: int) -> bool:
    """Whether any process of that group is left."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True
