"""`assert_donated`: silent where every donated buffer is handed over, else each argument with JAX's or XLA's reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.errors import CompileError
from donation_inspector.questions.compare import ask as compiling


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def step(p: Any, state: Any, x: Any) -> Any:
    return p * x.sum(), state + 1


ARGUMENTS = f32(8, 8), f32(8), f32(3)


def second(p: Any, q: Any) -> Any:  # noqa: ARG001
    return q + 1


def inner(p: Any) -> Any:
    return jax.jit(step, donate_argnums=0)(p, p, p)


@pytest.fixture
def compiles(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is compiled, as the donations of each time."""
    asked: list[Any] = []
    real: Callable[..., None] = compiling.compile_donations

    def listening(subject: Any, donations: Any, *args: Any, **kwargs: Any) -> None:
        asked.append(donations)
        real(subject, donations, *args, **kwargs)

    monkeypatch.setattr(compiling, "compile_donations", listening)
    return asked


def told(fn: Any, *args: Any) -> str:
    with pytest.raises(di.DonationError) as caught:
        di.assert_donated(fn, *args)
    assert isinstance(caught.value, AssertionError)
    return str(caught.value)


def test_it_holds_and_gives_the_inspection(compiles: list[Any]) -> None:
    array = jnp.ones((8, 8))
    inspection = di.assert_donated(jax.jit(step, donate_argnames=("p", "state")), array, state=f32(8), x=f32(3))
    assert [one.path for one in inspection.arguments if one.donated] == ["p", "state"]
    assert not array.is_deleted()
    # An alias is JAX's own decision: XLA is not asked.
    assert compiles == []


def test_an_alias_that_saves_nothing_holds() -> None:
    """It is handed over; that XLA copies elsewhere is another question."""
    di.assert_donated(jax.jit(lambda a, b: (b, a), donate_argnums=(0, 1)), f32(8), f32(8))


def test_an_array_without_bytes_has_nothing_to_hand_over() -> None:
    fn = jax.jit(lambda p, q: p + 1 + q.sum(), donate_argnums=(0, 1))
    di.assert_donated(fn, f32(8), f32(0))


@pytest.mark.parametrize(
    ("fn", "args", "reasons"),
    [
        (jax.jit(step, donate_argnums=(0, 1, 2)), ARGUMENTS, ["1 of 3 donated", "x (12 B): donated, but no result is"]),
        (jax.jit(second, donate_argnums=(0, 1)), (f32(8), f32(8)), ["p (32 B)", "JAX drops it", "keep_unused"]),
        (inner, (f32(8),), ["1 of 1", "an inner jit donates it, which JAX ignores", "at the outermost jit"]),
    ],
)  # fmt: skip
def test_each_argument_with_its_reason(fn: Any, args: Any, reasons: list[str], compiles: list[Any]) -> None:
    text = told(fn, *args)
    assert all(reason in text for reason in reasons)
    assert text.endswith("donation_inspector.inspect shows more.")
    assert compiles == []


@pytest.mark.parametrize("setting", [jax.debug_nans, jax.disable_jit])
def test_a_setting_makes_jax_ignore_all(setting: Any) -> None:
    donating = jax.jit(step, donate_argnums=(0, 1))
    with setting(True):
        text = told(donating, *ARGUMENTS)
        report = di.inspect(donating, *ARGUMENTS).report()
    assert "2 of 2 donated arguments are not handed over" in text
    assert text.count(f"JAX ignores every donation while jax_{setting.__name__} is on") == 2
    assert f"note: jax_{setting.__name__} is on" in report
    assert "Change one line" not in report


def test_what_is_left_to_xla_is_compiled_and_xla_has_the_word(compiles: list[Any]) -> None:
    """A reshaped result has as many bytes: XLA reuses the buffer. One of another dtype has not."""
    di.assert_donated(jax.jit(lambda p: p.reshape(8, 8) + 1, donate_argnums=0), f32(64))
    assert len(compiles) == 1
    assert list(compiles[0]) == ["jax"]
    text = told(jax.jit(lambda p: p.astype(jnp.bfloat16), donate_argnums=0), f32(8))
    assert "left to XLA without a warning, but XLA cannot use it" in text
    assert "XLA did not reuse it: no result has as many bytes (32 B)" in text


def test_where_xla_does_not_compile_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_donations", lambda *_args, **_kwargs: None)
    with pytest.raises(CompileError, match="no answer came"):
        di.assert_donated(jax.jit(lambda p: p.reshape(8, 8) + 1, donate_argnums=0), f32(64))


def test_nothing_donated_comes_with_what_could_be_and_the_line() -> None:
    text = told(step, *ARGUMENTS)
    assert text.startswith("step donates nothing. What could be donated:\n  p (256 B): result [0]")
    assert text.endswith('step = jax.jit(step, donate_argnames=("p", "state"))')
    assert told(lambda x: x.sum(), f32(8)) == (
        "<lambda> donates nothing, and no result could take over an argument's buffer."
    )


def test_it_takes_what_di_jit_made() -> None:
    di.assert_donated(di.jit(lambda a, b: (b, a), pairs={"a": "[1]"}), f32(8), f32(8))
