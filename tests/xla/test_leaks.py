"""What tracing leaves outside the function is put back: the caller's own next call works on arrays."""

from __future__ import annotations

import functools
import importlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import small_programs
from donation_inspector.errors import TraceError
from donation_inspector.xla import traces
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


def test_a_derivative_of_ones_own_is_nothing_stored() -> None:
    """JAX keeps the trace of such a call in the program that it makes of it."""
    square = jax.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
    assert [note.kind for note in lower(jax.jit(lambda x: square(x).sum()), (X,), {}).notes] == []


def test_an_item_of_a_list_that_is_replaced_is_put_back() -> None:
    held: list[Any] = [jnp.ones(3), jnp.zeros(3)]
    before = list(held)

    def train(x: Any) -> Any:
        held[0] = step({"w": held[0]}, x)["w"]
        return held[0].sum()

    lower(train, (X,), {})
    assert [one is other for one, other in zip(held, before, strict=True)] == [True, True]
    assert float(train(2 * X)) == 6.0


class Slotted:
    __slots__ = ("last",)


class Meter:
    """Keeps in its class, in a slot, in a module, in what a method of its own names."""

    last: Any = None

    def __init__(self) -> None:
        self.slotted = Slotted()

    def __call__(self, x: Any) -> Any:
        Meter.last, Meter.newest = x, x  # pyright: ignore[reportAttributeAccessIssue]
        self.slotted.last = small_programs.kept = x  # pyright: ignore[reportAttributeAccessIssue]
        return self.keep(x)

    def keep(self, x: Any) -> Any:
        global kept
        kept = x
        return x


kept: Any = None


def test_classes_slots_and_what_methods_name_are_put_back() -> None:
    meter = Meter()

    notes = [str(note) for note in lower(meter, (X,), {}).notes if note.kind == "leak"]

    assert "put back" in notes[0]
    assert Meter.last is None
    assert kept is None
    assert not hasattr(Meter, "newest")
    assert not hasattr(small_programs, "kept")
    assert not hasattr(meter.slotted, "last")


def test_what_is_stored_out_of_reach_is_told() -> None:
    remembered = functools.lru_cache(lambda size: jnp.zeros(size) + 1)

    notes = [str(note) for note in lower(lambda x: x * remembered(3), (X,), {}).notes if note.kind == "leak"]

    assert len(notes) == 1
    assert "put back" not in notes[0]


def test_a_cycle_that_waits_for_the_collector_is_no_leak() -> None:
    def cyclic(x: Any) -> Any:
        held: list[Any] = [x]
        held.append(held)
        return x * 2

    assert [note for note in lower(cyclic, (X,), {}).notes if note.kind == "leak"] == []


def test_another_threads_trace_is_no_leak() -> None:
    begun, end = threading.Event(), threading.Event()

    def waits(x: Any) -> Any:
        begun.set()
        end.wait(20)
        return x

    other = threading.Thread(target=jax.eval_shape, args=(waits, X))

    def step(x: Any) -> Any:
        other.start()
        begun.wait(20)
        return x * 2

    notes = [note for note in lower(step, (X,), {}).notes if note.kind == "leak"]
    end.set()
    other.join()
    assert notes == []


def test_looking_for_leaks_never_walks_over_the_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("the heap was looked through")

    monkeypatch.setattr("gc.get_objects", never)
    monkeypatch.setattr("gc.collect", never)
    lower(lambda x: x * 3, (X,), {})


def test_jax_is_as_it_was_whatever_raises() -> None:
    core = importlib.import_module("jax._src.core")
    before = dict(vars(core))
    with pytest.raises(KeyboardInterrupt), traces.made(), traces.made():
        raise KeyboardInterrupt
    assert dict(vars(core)) == before


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
