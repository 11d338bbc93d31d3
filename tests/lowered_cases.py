"""The cases of tests/cases/ as our own lowering."""

from __future__ import annotations

from functools import cache

import jax

import case_loader
from donation_inspector.xla.lowering import Lowered, lower


@cache
def lower_case(name: str) -> Lowered:
    """A case under its own jit options, lowered once for all tests."""
    return lower_case_anew(name)


def lower_case_anew(name: str) -> Lowered:
    """A case under its own jit options."""
    case = case_loader.load(name).make()
    return lower(jax.jit(case["fn"], **case["jit_kwargs"]), tuple(case["args"]), case["kwargs"])
