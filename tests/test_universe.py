"""What xdsl-opt finds: JAX's dialects, unless another package brings one of them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from xdsl.ir import Dialect
from xdsl.universe import Universe

from donation_inspector import universe

JAX = {"stablehlo", "chlo", "mhlo", "sdy", "mpmd", "verbatim"}


def test_xdsl_has_no_dialect_of_these_names_itself() -> None:
    assert set(universe.UNIVERSE.all_dialects) == JAX
    assert set(Universe.get_multiverse().all_dialects) > JAX


def test_a_dialect_of_another_package_stays_that_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs: dict[str, Callable[[], Dialect]] = {"stablehlo": lambda: Dialect("stablehlo")}
    plugins = [
        SimpleNamespace(name="donation-inspector", load=lambda: universe.UNIVERSE),
        SimpleNamespace(name="xdsl-jax", load=lambda: Universe(all_dialects=theirs)),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: plugins if group == "xdsl.universe" else [])
    monkeypatch.setattr(universe, "entry_points", lambda group: plugins if group == "xdsl.universe" else [])
    ours = universe._dialects()
    assert set(ours) == JAX - {"stablehlo"}
    monkeypatch.setattr(universe.UNIVERSE, "all_dialects", ours)
    # with both in it, xDSL would raise
    assert Universe.get_multiverse().all_dialects["stablehlo"] is theirs["stablehlo"]
