"""Versions that are too old are told as such: what is there, what is needed, what to do."""

from __future__ import annotations

import sys
import types

import pytest

from donation_inspector.errors import TraceError
from donation_inspector.frameworks.versions import require


def installed(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    module = types.ModuleType("some_framework")
    if version is not None:
        module.__dict__["__version__"] = version
    monkeypatch.setitem(sys.modules, "some_framework", module)


@pytest.mark.parametrize("version", ["0.11.2", "0.9", "0.11.99rc1"])
def test_an_older_version_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    installed(monkeypatch, version)

    with pytest.raises(TraceError, match=rf"some_framework {version} is too old.*from some_framework 0\.12 on") as told:
        require("some_framework", "0.12")

    assert "pip install -U 'some_framework>=0.12'" in str(told.value)


@pytest.mark.parametrize("version", ["0.12", "0.12.0.dev1", "0.12.8", "1.0", "unknown", None])
def test_a_newer_version_and_an_untold_one_are_taken(monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    installed(monkeypatch, version)

    require("some_framework", "0.12")


def test_what_is_not_imported_is_not_asked_for() -> None:
    require("a_framework_that_nobody_imported", "99")
