"""Whose code a file is, and how a place is written."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import donation_inspector
from donation_inspector.common.user_code import is_user_code, place


@pytest.mark.parametrize("file", [jax.__file__, np.__file__, json.__file__, donation_inspector.__file__, "<string>"])
def test_libraries_are_not_the_users(file: str) -> None:
    assert not is_user_code(str(file))


@pytest.mark.parametrize(
    "file",
    [__file__, "/tmp/ipykernel_4711/123.py", "<ipython-input-3-abc>", str(Path.home() / "jax_tricks" / "step.py")],
)
def test_the_rest_is(file: str) -> None:
    assert is_user_code(file)


def test_a_place_is_short() -> None:
    assert place("/home/me/train.py", 41) == "train.py:41"
    assert place("C:\\me\\train.py", 41) == "train.py:41"
    assert place("/tmp/ipykernel_4711/123.py", 3) == "cell:3"
    assert place("<ipython-input-3-abc>", 3) == "cell:3"
    assert place("train.py", 0) == "train.py"
