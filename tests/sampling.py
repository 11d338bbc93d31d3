"""Long sweeps: a fixed sample of them is in every run, and all of it in `make test-exhaustive`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def sampled(everything: Iterable[Any], sample: Collection[Any]) -> list[Any]:
    """The parameters of a test: all of `sample`, and what else there is marked as exhaustive."""
    parameters = list(everything)
    unknown = [one for one in sample if one not in parameters]
    assert not unknown, f"in the sample and not in the sweep: {unknown}"
    return [one if one in sample else pytest.param(one, marks=pytest.mark.exhaustive) for one in parameters]
