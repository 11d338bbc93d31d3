"""The shown text is the real pass's output, also where the pass rewrites more than the entry function."""

from __future__ import annotations

import pytest

from inspection.test_cases import inspect_case


@pytest.mark.parametrize("name", ["01_adam_step", "29_exported_call"])
def test_the_outline_shows_what_the_whole_module_shows(name: str) -> None:
    inspection = inspect_case(name)
    outlined = inspection.apply()
    # A pipeline of two is run on the whole module; running the pass again changes nothing.
    whole = inspection.apply("jax-use-donated-arguments,jax-use-donated-arguments")
    assert outlined.after == whole.after
    assert dict(outlined.pairs) == dict(whole.pairs)
    assert [(one.kind, one.after) for one in outlined.diff] == [(one.kind, one.after) for one in whole.diff]


def test_a_private_function_that_the_pass_rewrites_is_in_the_text() -> None:
    applied = inspect_case("29_exported_call").apply()
    entry, _, private = applied.after.partition("func.func private")
    assert "materialize_in_destination" in entry
    assert "materialize_in_destination" in private
    assert any(diagnostic.code == "other-functions" for diagnostic in applied.diagnostics)
