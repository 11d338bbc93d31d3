"""One saved Inspection, compiled and measured, for all tests of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di


def sgd(params: dict[str, Any], x: jax.Array) -> dict[str, Any]:
    grads = jax.grad(lambda p: (jnp.tanh(x @ p["w"]) ** 2).sum())(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[di.Inspection, Path]:
    step = di.inspect(jax.jit(sgd), {"w": jnp.ones((128, 128))}, jnp.ones((32, 128))).donate("params")
    step.compare()
    step.measure(runs=1)
    path = tmp_path_factory.mktemp("saved") / "step.di"
    step.save(path)
    return step, path
