"""Whose code a source file is, and how a place in it is written."""

from __future__ import annotations

import importlib.util
import re
import sysconfig
from functools import cache
from pathlib import Path, PurePath

from donation_inspector.common.visible import one_line

_LIBRARIES = ("jax", "jaxlib", "flax", "optax", "equinox", "haiku", "chex", "numpy", "donation_inspector")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_CELL = re.compile(r".*[\\/]ipykernel_\d+[\\/]\d+\.py|<ipython-input-.*>")


@cache
def is_user_code(file: str) -> bool:
    """Whether a file is the user's own, a notebook's cell included.

    A file of an installed package (under site-packages or dist-packages), of Python's own library, or of a package such
    as JAX wherever it is installed, is not.
    """
    if file.startswith("<frozen ") or file == "<string>":
        return False
    path = PurePath(file)
    return _INSTALLED.isdisjoint(path.parts) and not any(path.is_relative_to(root) for root in _library_roots())


def place(file: str, line: int) -> str:
    """A place as people write it: "train.py:41", "cell:3" for a notebook's cell, which has no file of its own."""
    name = "cell" if _CELL.fullmatch(file) else re.split(r"[\\/]", file)[-1]
    name = one_line(name)
    return f"{name}:{line}" if line else name


@cache
def _library_roots() -> tuple[Path, ...]:
    roots = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    for package in _LIBRARIES:
        found = importlib.util.find_spec(package)
        if found is not None and found.submodule_search_locations:
            roots += [Path(place) for place in found.submodule_search_locations]
    return tuple(dict.fromkeys(roots))
