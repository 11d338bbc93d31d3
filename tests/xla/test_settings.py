"""Which settings of JAX turn donation off, found by trying all that are on or off."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from donation_inspector.xla.notes import Setting

_TRY = """
import jax, jax.numpy as jnp

def donates():
    step = jax.jit(lambda p, x: (p - 0.1 * x.sum(), x.mean()), donate_argnums=0)
    given = jax.block_until_ready((jnp.ones((64, 64)), jnp.ones(8)))
    jax.block_until_ready(step(*given))
    return given[0].is_deleted()

assert donates()
for name, value in sorted(jax.config.values.items()):
    if not isinstance(value, bool) or name in {passed}:
        continue
    jax.clear_caches()
    try:
        jax.config.update(name, not value)
        if not donates():
            print(name)
    except RuntimeError:
        # under this setting nothing runs at all
        pass
    finally:
        jax.config.update(name, value)
"""
_BEFORE_JAX_STARTS = ("jax_distributed_debug",)


@pytest.mark.exhaustive
def test_these_settings_turn_donation_off_and_no_other() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _TRY.format(passed=_BEFORE_JAX_STARTS)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) == {f"jax_{setting}" for setting in get_args(Setting)}
