"""Reads the cases of tests/cases/ : what each expects without importing jax, and the case itself when it is run.

A case is a module with `make() -> dict(fn, args, kwargs, jit_kwargs, env)`, a literal `ENV` and a literal `EXPECT` (the
facts that JAX and XLA gave for it).
"""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

_CASES = Path(__file__).parent / "cases"

CASE_NAMES: list[str] = sorted(path.stem for path in _CASES.glob("[0-9][0-9]_*.py"))


@cache
def load(name: str) -> ModuleType:
    """The case as an imported module; its `make()` imports jax."""
    spec = importlib.util.spec_from_file_location(f"case_{name}", _CASES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _literals(name: str) -> dict[str, Any]:
    literals: dict[str, Any] = {}
    for node in ast.parse((_CASES / f"{name}.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            literals[node.targets[0].id] = ast.literal_eval(node.value)
    return literals


def expect(name: str) -> dict[str, Any]:
    """The case's EXPECT."""
    return _literals(name)["EXPECT"]


def unstable(name: str) -> tuple[str, ...]:
    """Fields of EXPECT that differ between machines and versions."""
    return tuple(_literals(name).get("UNSTABLE", ()))


def env(name: str) -> dict[str, str]:
    """Environment variables that the case needs before jax is imported."""
    return _literals(name)["ENV"]
