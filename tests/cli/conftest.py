"""A file and a module of the user's own, in a folder of the test's own."""

from __future__ import annotations

import pathlib
import sys

import pytest

from shell_programs import SWAP, TRAIN


@pytest.fixture
def swap(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "swap.mlir"
    path.write_text(SWAP)
    return path


@pytest.fixture
def train(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder, a new one for each test: a module is imported once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"train_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(TRAIN)
    return name
