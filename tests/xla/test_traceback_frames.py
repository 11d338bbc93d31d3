"""The frames of an exception, and the call of a `jax.jit` function that one of them holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from donation_inspector.xla.traceback_frames import chain, frames, jit_call


def failing(x: Any) -> Any:
    assert x is not None
    raise LookupError("inside")


STEP = jax.jit(failing, donate_argnames="x")


def raised_under(mode: str) -> BaseException:
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", mode)
    try:
        with pytest.raises(LookupError) as raised:
            STEP(x=jnp.ones(3))
    finally:
        jax.config.update("jax_traceback_filtering", before)
    return raised.value


@pytest.mark.parametrize("mode", ["off", "tracebackhide", "remove_frames"])
def test_the_outermost_frame_of_jaxs_holds_the_call(mode: str) -> None:
    found = [call for frame in frames(raised_under(mode)) if (call := jit_call(frame)) is not None]
    assert found[0].function.__name__ == "failing"
    assert found[0].args == ()
    assert found[0].kwargs["x"].shape == (3,)


def test_a_frame_knows_the_code_that_it_was_running() -> None:
    mine = [frame for frame in frames(raised_under("quiet_remove_frames")) if frame.file == __file__]
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert lines[mine[0].line - 1][mine[0].column : mine[0].end_column] == "STEP(x=jnp.ones(3))"
    assert lines[mine[-1].line - 1].strip() == 'raise LookupError("inside")'


def test_a_compile_that_fails_is_its_lowering() -> None:
    lowered = jax.jit(lambda x: x + 1).lower(jnp.ones(3))
    with pytest.raises(Exception, match="no_such_option") as raised:
        lowered.compile({"no_such_option": True})
    calls = [call for frame in frames(raised.value) if (call := jit_call(frame)) is not None]
    assert calls[0].function is lowered


def test_the_chain_leaves_out_what_only_carries_tracebacks_and_ends() -> None:
    inner = raised_under("remove_frames")
    assert type(inner.__cause__).__name__ == "UnfilteredStackTrace"
    outer = SystemError("outer")
    outer.__cause__ = inner
    assert list(chain(outer)) == [outer, inner]
    first, second = ValueError(), KeyError()
    first.__context__, second.__context__ = second, first
    assert list(chain(first)) == [first, second]
    first.__suppress_context__ = True
    assert list(chain(first)) == [first]
