"""Which part of a differentiated program an operation belongs to, from the name that JAX gave it."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache


class Phase(StrEnum):
    """FORWARD: what is differentiated, run ahead. BACKWARD: its transpose, what it computes anew included."""

    FORWARD = "forward pass"
    BACKWARD = "backward pass"
    OUTSIDE = ""


@lru_cache(100_000)
def phase(op_name: str) -> Phase:
    """The phase that `op_name` says; where XLA has merged operations of several, the first one's."""
    first = op_name.split(";", 1)[0]
    if "transpose(" in first or "rematted_computation" in first:
        return Phase.BACKWARD
    return Phase.FORWARD if "jvp(" in first else Phase.OUTSIDE
