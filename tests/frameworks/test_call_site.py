"""The name that a proposed line is assigned to: what the person calls, as their own code has it, or none."""

from __future__ import annotations

import gc
import types
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.frameworks.call_site import CallSite

X = jnp.ones((64, 64))
library = types.ModuleType("library")
exec("def update(state, x):\n    return state + x.sum()", library.__dict__)


def update(_params: Any) -> None:
    """The person's own, which has the name of the library's."""


class Trainer:
    """One whose step is an attribute."""

    def __init__(self) -> None:
        self.jitted = jax.jit(self.method)

    def method(self, state: Any, x: Any) -> Any:
        return state * 0.9 + x.sum()


class Slots:
    """One that takes no attributes."""

    __slots__ = ()

    def method(self, state: Any, x: Any) -> Any:
        return state * 0.9 + x.sum()


def below(state: Any, x: Any) -> Any:
    return state + x.sum()


@jax.jit
def decorated(state: Any, x: Any) -> Any:
    return state * x.sum()


solver_step = jax.jit(library.update)
another = decorated
trainer = Trainer()


def line_of(inspection: di.Inspection) -> str | None:
    return inspection.line_that_donates(["state"])


def test_a_variable_of_the_module_whatever_the_function_is_called() -> None:
    assert (line_of(di.inspect(solver_step, X, X)) or "").startswith("solver_step = jax.jit(solver_step")


def test_what_is_written_where_one_function_is_in_two_variables() -> None:
    assert (line_of(di.inspect(another, X, X)) or "").startswith("another = jax.jit(another.")
    assert (line_of(di.inspect(decorated, X, X)) or "").startswith("decorated = jax.jit(decorated.")


@pytest.mark.parametrize("which", ["jitted", "method"])
def test_an_attribute_is_assigned_on_its_object(which: str) -> None:
    inspection = di.inspect(trainer.jitted, X, X) if which == "jitted" else di.inspect(trainer.method, X, X)
    line = line_of(inspection) or ""
    assert line.startswith(f"trainer.{which} = jax.jit(trainer.{which}")
    own = Trainer()
    exec(line, {"trainer": own, "jax": jax})
    given = jnp.copy(X)
    getattr(own, which)(given, X)
    assert given.is_deleted()


def test_an_attribute_is_found_where_its_object_is_in_a_variable() -> None:
    assert CallSite({"t": trainer, "_": trainer}).name_of(trainer.jitted) == "t.jitted"
    assert CallSite({"t": trainer, "u": trainer}).name_of(trainer.jitted) == ""


@pytest.mark.parametrize("fn", [lambda state, x: state + x.sum(), jax.jit(lambda state, x: state + x.sum())])
def test_what_is_written_in_the_call_itself_has_no_name(fn: Any) -> None:
    holder = [fn]
    del fn
    assert line_of(di.inspect(holder[0], X, X)) is None


def test_a_library_is_not_changed_and_an_object_without_attributes_has_no_line() -> None:
    slots = Slots()
    assert line_of(di.inspect(library.update, X, X)) is None
    assert line_of(di.inspect(slots.method, X, X)) is None


def test_a_variable_of_a_function_under_way_comes_with_that_of_the_module() -> None:
    step = jax.jit(below)
    line = line_of(di.inspect(step, X, X))
    assert line == 'below = step = jax.jit(below, donate_argnames=("state",))'
    scope: dict[str, Any] = {"below": below, "step": step, "jax": jax}
    exec(line, scope)
    for name in ("below", "step"):
        given = jnp.copy(X)
        scope[name](given, X)
        assert given.is_deleted()


def test_two_local_variables_and_nothing_written_are_undecidable() -> None:
    site = CallSite({}, {"one": decorated, "two": decorated})
    assert site.name_of(decorated) == ""
    assert CallSite({}, {"one": decorated, "two": decorated}, "two").name_of(decorated) == "two"


def test_code_without_a_source_is_told_by_its_variables() -> None:
    scope: dict[str, Any] = {"di": di, "mine": solver_step, "X": X}
    exec("inspection = di.inspect(mine, X, X)", scope)
    assert (line_of(scope["inspection"]) or "").startswith("mine = jax.jit(mine.")


def test_an_inspection_leaves_no_garbage_that_holds_the_callers_arrays() -> None:
    array = jnp.ones((1024, 1024)) + 1
    alive = weakref.ref(array)
    gc.collect()
    gc.disable()
    try:
        inspection = di.inspect(decorated, array, X[0])
        del array
        assert alive() is None
    finally:
        gc.enable()
    assert inspection.arguments[0].shape == (1024, 1024)
