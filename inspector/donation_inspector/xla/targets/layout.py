"""In the child: a mesh on a topology, as JAX itself lays one."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

# public, but untyped; JAX is imported when a mesh is laid: a parent imports this package without it
_FLAT_KINDS = ("TPU v5 lite", "TPU v5e")


def lay(devices: Sequence[Any], count: int, mesh_shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The first `count` devices of a topology in the order of a mesh of this shape, as `jax.make_mesh` puts them.

    A shape that only fits where a physical axis is split splits one, as JAX's own error advises; where none fits, and
    where there is no mesh, the devices are taken as they come.
    """
    first = list(devices[:count])
    if count == 1 or math.prod(mesh_shape) != count:
        return tuple(first)
    mesh_utils: Any = importlib.import_module("jax.experimental.mesh_utils")
    for split in (first[0].device_kind in _FLAT_KINDS, True):
        with suppress(NotImplementedError, ValueError, AssertionError):
            laid: Any = mesh_utils.create_device_mesh(mesh_shape, first, allow_split_physical_axes=split)
            return tuple(laid.flat)
    return tuple(first)
