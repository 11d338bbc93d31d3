"""In the child: a mesh on a topology, as JAX itself lays one."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

# public, but untyped; JAX is imported when a mesh is laid: a parent imports this package without it
_FLAT_KINDS = ("TPU v5 lite", "TPU v5e")


def lay(devices: Sequence[Any], count: int, mesh_shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The first `count` devices of a topology in the order of a mesh of this shape, as `jax.make_mesh` puts them.

    A shape that it cannot lay on these devices, and no mesh at all, takes them as they come.
    """
    first = list(devices[:count])
    if count == 1 or math.prod(mesh_shape) != count:
        return tuple(first)
    mesh_utils: Any = importlib.import_module("jax.experimental.mesh_utils")
    try:
        laid: Any = mesh_utils.create_device_mesh(
            mesh_shape, first, allow_split_physical_axes=first[0].device_kind in _FLAT_KINDS
        )
    except (NotImplementedError, ValueError, AssertionError):
        return tuple(first)
    return tuple(laid.flat)
