"""Whatever is given where something else is meant is one error of the inspector's, which can be read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import donation_inspector as di


class NoRepr:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class NoAttributes:
    """An object that raises for whatever it is asked."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(f"no {name}")


JUNK: list[Any] = [
    *(3, -1, 2.5, float("nan"), b"x", "nope", "\0", [], ["nope"], {}, {"a": 1}, (1, 2), set(), 10**400),
    *(object(), NoRepr(), [NoRepr()], NoAttributes(), np.ones(3), lambda: 0, int),
]
STEP = jax.jit(lambda p, x: (p * x + 1, x.sum()), donate_argnums=0)
X = jnp.ones((8, 8))
INSPECTION = di.inspect(STEP, X, X)
STOPPED = threading.Event()
STOPPED.set()


def watched(name: Any) -> None:
    with di.watch(name):
        pass


CALLS: dict[str, Callable[[Any], object]] = {
    "inspect(fn)": di.inspect,
    "inspect(argument)": lambda junk: di.inspect(STEP, junk, X),
    "inspect_ir(source)": di.inspect_ir,
    "load(path)": di.load,
    "verify(fn)": di.verify,
    "verify(argument)": lambda junk: di.verify(lambda p: p + 1, junk),
    "assert_donated(fn)": di.assert_donated,
    "assert_donated(argument)": lambda junk: di.assert_donated(STEP, junk, X),
    "jit(pairs)": lambda junk: di.jit(lambda p: p + 1, pairs=junk),
    "jit(pair)": lambda junk: di.jit(lambda p: p + 1, pairs={"p": junk})(X),
    "watch(name)": watched,
    "donate": INSPECTION.donate,
    "keep": INSPECTION.keep,
    "with_pipeline": lambda junk: INSPECTION.with_pipeline(junk).apply(),
    "apply(pipeline)": INSPECTION.apply,
    "where": INSPECTION.where,
    "compare(target)": lambda junk: INSPECTION.compare(junk, cancel=STOPPED),
    "compare([target])": lambda junk: INSPECTION.compare([junk], cancel=STOPPED),
    "compare(pipeline)": lambda junk: INSPECTION.compare(None, junk, cancel=STOPPED),
    "compare(fits)": lambda junk: INSPECTION.compare(fits=junk, cancel=STOPPED),
    "measure(inputs)": lambda junk: INSPECTION.measure(junk, cancel=STOPPED),
    "measure(runs)": lambda junk: INSPECTION.measure(runs=junk, cancel=STOPPED),
    "measure(timeout)": lambda junk: INSPECTION.measure(timeout=junk, cancel=STOPPED),
    "measure(pipeline)": lambda junk: INSPECTION.measure(pipeline=junk, cancel=STOPPED),
    "measure(in_kernel)": lambda junk: INSPECTION.measure(in_kernel=junk, cancel=STOPPED),
    "recommend(target)": lambda junk: INSPECTION.recommend(junk, cancel=STOPPED),
    "recommend(budget)": lambda junk: INSPECTION.recommend(budget=junk, cancel=STOPPED),
    "recommend(compiles)": lambda junk: INSPECTION.recommend(compiles=junk, cancel=STOPPED),
    "sweep(sizes)": lambda junk: INSPECTION.sweep(junk, cancel=STOPPED),
    "sweep(size)": lambda junk: INSPECTION.sweep({"p": [junk]}, cancel=STOPPED),
    "sweep(name)": lambda junk: INSPECTION.sweep(p=junk, cancel=STOPPED),
    "sweep(target)": lambda junk: INSPECTION.sweep(p=[8], target=junk, cancel=STOPPED),
}
for _method in ("compare", "measure", "recommend", "sweep"):
    _ask: Any = getattr(INSPECTION, _method)
    _needed: dict[str, Any] = {"p": [8]} if _method == "sweep" else {}
    CALLS[f"{_method}(cancel)"] = lambda junk, ask=_ask, needed=_needed: ask(**needed, cancel=junk)


def answered(call: Callable[[Any], object], junk: Any) -> str:
    """What the error says; "" where it is an answer."""
    try:
        call(junk)
    except di.DonationInspectorError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", CALLS)
def test_what_is_given_wrongly_is_an_error_that_can_be_read(name: str) -> None:
    for junk in JUNK:
        said = answered(CALLS[name], junk)
        assert len(said) < 2000


@pytest.mark.parametrize("method", ["compare", "measure", "recommend", "sweep"])
def test_what_cannot_be_called_is_no_progress(method: str) -> None:
    sizes = {"p": [8]} if method == "sweep" else {}

    with pytest.raises(di.DonationInspectorError, match=r"progress must be a function of .*, got 3"):
        getattr(INSPECTION, method)(**sizes, progress=3)


@pytest.mark.parametrize("method", ["save", "write_mlir", "to_html"])
def test_what_is_no_path_and_what_cannot_be_written(method: str, tmp_path: Path) -> None:
    write = getattr(INSPECTION, method)
    for junk in (None, 3, [], NoRepr(), np.ones(3)):
        with pytest.raises(di.MachineError, match="A path to write to is needed, got"):
            write(junk)
    for path in (tmp_path, tmp_path / "nowhere" / "x"):
        with pytest.raises(di.DonationInspectorError, match="cannot be written"):
            write(path)


def test_measure_and_compare_inside_a_trace() -> None:
    """The arrays of a trace have no values: the program is looked at, its inputs are generated or refused."""
    seen: list[str] = []

    def outer(x: Any) -> Any:
        inside = di.inspect(STEP, x, x)
        seen.append(inside.report())
        for ask in (inside.measure, inside.compare):
            try:
                seen.append(repr(ask(cancel=STOPPED)))
            except di.DonationInspectorError as error:
                seen.append(str(error))
        return x

    jax.jit(outer)(X)

    assert len(seen) == 3


def test_there_is_no_real_call_inside_a_trace() -> None:
    with pytest.raises(di.TraceError, match="inside of a transformation"):
        jax.jit(lambda x: di.verify(STEP, x, x).result)(X)
