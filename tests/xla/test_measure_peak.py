"""The measured peak against XLA's own figures, on programs large enough to tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from donation_inspector.xla.measure import Measured, measure_variants
from small_programs import program

SQUARE_64_MB = (4096, 4096)
SQUARE_16_MB = (2048, 2048)


def pair(a: Any, b: Any) -> Any:
    return jnp.tanh(a) * 2, jnp.sin(b) + 1


def crossed(a: Any, b: Any) -> Any:
    """Donation saves nothing: each result would overwrite what the other still reads."""
    return jnp.tanh(b) * 2, jnp.sin(a) + 1


def adam(p: Any, m: Any, v: Any, x: Any) -> Any:
    """With the gradient of a small loss, so that matrix multiplications take work space."""
    gradient = jax.grad(lambda p: (jnp.tanh(x @ p) ** 2).sum())(p)
    m = 0.9 * m + 0.1 * gradient
    v = 0.99 * v + 0.01 * gradient * gradient
    return p - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v


def elementwise_adam(p: Any, m: Any, v: Any, gradient: Any) -> Any:
    m = 0.9 * m + 0.1 * gradient
    v = 0.99 * v + 0.01 * gradient * gradient
    return p - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v


def measured(
    fn: Callable[..., Any], shape: tuple[int, int], count: int, donate: tuple[int, ...]
) -> dict[str, Measured]:
    variants = {
        "none": program(fn, *[shape] * count),
        "jax": program(fn, *[shape] * count, donate=donate),
    }
    return measure_variants(variants, None, runs=3)


@pytest.mark.parametrize(
    ("fn", "shape", "count", "donate", "units"),
    [
        (pair, SQUARE_64_MB, 2, (0, 1), {"none": 4, "jax": 2}),
        (crossed, SQUARE_64_MB, 2, (0, 1), {"none": 4, "jax": 4}),
        (elementwise_adam, SQUARE_16_MB, 4, (0, 1, 2), {"none": 7, "jax": 4}),
        (adam, SQUARE_16_MB, 4, (0, 1, 2), {"none": 7, "jax": 6}),
    ],
)
def test_measured_is_predicted(
    fn: Callable[..., Any], shape: tuple[int, int], count: int, donate: tuple[int, ...], units: dict[str, int]
) -> None:
    answers = measured(fn, shape, count, donate)
    nbytes = shape[0] * shape[1] * 4
    for name, answer in answers.items():
        assert (answer.status, answer.error, answer.runs) == ("ok", None, 3)
        assert answer.peak is not None
        assert answer.spread is not None
        assert answer.predicted is not None
        # not from XLA: whole arrays that must be there at once
        assert answer.predicted == pytest.approx(units[name] * nbytes, rel=1e-3)
        assert answer.peak == pytest.approx(answer.predicted, rel=0.02)
        assert answer.spread[0] <= answer.peak <= answer.spread[1]
        assert answer.workspace is not None
        assert 0 <= answer.workspace < nbytes
        assert answer.seconds is not None
        assert answer.seconds > 0
    none, donated = answers["none"], answers["jax"]
    assert none.output_hashes == donated.output_hashes
    assert none.peak is not None
    assert donated.peak is not None
    saved, compiled_saved = none.peak - donated.peak, (units["none"] - units["jax"]) * nbytes
    assert saved == pytest.approx(compiled_saved, rel=0.05, abs=0.005 * nbytes * units["none"])
