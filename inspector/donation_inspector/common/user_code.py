"""Whose code a source file is, and how a place in it is written."""

from __future__ import annotations

import importlib.util
import re
import sys
import sysconfig
import types
from functools import cache
from pathlib import Path, PurePath
from typing import Any

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


def locals_of(frame: types.FrameType) -> dict[str, Any]:
    """The variables of a function under way.

    Before Python 3.13 a frame keeps what it has told here until its function returns: it is made to forget, so that no
    array stays alive for it; but not what the user holds as well, who called `locals()`. While a debugger traces, what
    it forgets would be lost.
    """
    told = frame.f_locals
    variables = dict(told)
    if sys.version_info < (3, 13) and sys.getrefcount(told) <= _OWN_REFERENCES:
        told.clear()
    return variables


_OWN_REFERENCES = 3
"""To what a frame tells: the frame's, the variable's and the question's own."""


@cache
def _library_roots() -> tuple[Path, ...]:
    roots = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    for package in _LIBRARIES:
        found = importlib.util.find_spec(package)
        if found is not None and found.submodule_search_locations:
            roots += [Path(place) for place in found.submodule_search_locations]
    return tuple(dict.fromkeys(roots))
