"""What tracing leaves outside the function is put back: the caller's own next call works on arrays."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from donation_inspector.errors import TraceError
from donation_inspector.xla.lowering import lower

X = jnp.ones(3)
step: Any = jax.jit(lambda params, x: {"w": params["w"] * x})
params: Any = {"w": jnp.ones(3)}


class Lazy:
    """As a proxy of what is not there yet."""

    @property
    def __dict__(self) -> Any:
        raise RuntimeError("nothing is bound")


class Trainer:
    """Keeps its state in attributes and containers, as trainers do."""

    def __init__(self) -> None:
        self.params: Any = {"w": jnp.ones(3)}
        self.losses: list[Any] = []
        self.window: Any = deque([0.0], maxlen=1)
        self.lazy = Lazy()
        self.state: dict[str, Any] = {"count": jnp.zeros(())}

    def train_one(self, x: Any) -> Any:
        self.params = step(self.params, x)
        self.losses.append(self.params["w"].sum())
        self.window.append(self.losses[-1])
        self.state["count"] += 1
        self.state["last"] = self.losses[-1]
        self.grads = self.params
        return self.losses[-1]

    @functools.partial(jax.jit, static_argnums=0)
    def jitted(self, x: Any) -> Any:
        self.params = step(self.params, x)
        return self.params["w"].sum()

    def fails(self, x: Any) -> Any:
        self.train_one(x)
        raise ValueError("not today")


def train_global(x: Any) -> Any:
    global params
    params = step(params, x)
    return params["w"].sum()


def closed_over() -> tuple[Callable[[Any], Any], Callable[[], Any]]:
    held: Any = {"w": jnp.ones(3)}

    def train(x: Any) -> Any:
        nonlocal held
        held = step(held, x)
        return held["w"].sum()

    return train, lambda: held


def test_a_trainer_trains_on_after_its_method_was_looked_at() -> None:
    trainer = Trainer()
    before, losses, state = trainer.params, trainer.losses, dict(trainer.state)

    notes = [str(note) for note in lower(trainer.train_one, (X,), {}).notes if note.kind == "leak"]

    assert trainer.params is before
    assert trainer.losses is losses
    assert list(trainer.window) == [0.0]
    assert not losses
    assert trainer.state == state
    assert not hasattr(trainer, "grads")
    assert len(notes) == 1
    assert "put back" in notes[0]
    assert "di.watch()" in notes[0]
    assert float(trainer.train_one(2 * X)) == 6.0


def test_also_where_it_raises_and_where_it_is_jitted() -> None:
    trainer = Trainer()
    with pytest.raises(TraceError, match="not today"):
        lower(trainer.fails, (X,), {})
    assert float(trainer.train_one(2 * X)) == 6.0

    lower(trainer.jitted, (X,), {})
    assert trainer.params["w"].tolist() == [2.0, 2.0, 2.0]


def test_globals_and_closures_are_put_back() -> None:
    lower(train_global, (X,), {})
    assert float(train_global(2 * X)) == 6.0

    train, held = closed_over()
    before = held()
    lower(train, (X,), {})
    assert held() is before
    assert float(train(2 * X)) == 6.0


def test_what_else_is_stored_stays() -> None:
    trainer = Trainer()
    trainer.state["calls"] = 0

    def counts(x: Any) -> Any:
        trainer.state["calls"] += 1
        trainer.losses.append("traced")
        return x

    lower(counts, (X,), {})

    assert trainer.state["calls"] == 1
    assert trainer.losses == ["traced"]
