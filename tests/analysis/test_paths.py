"""Results by name: a noun for a sentence, and the steps in which they are an argument's namesake."""

from __future__ import annotations

import pytest

from donation_inspector.analysis.paths import argument_name, noun, result_names
from donation_inspector.common.signature import Leaf


def leaf(path: str, root: str = "", updates: str | None = None) -> Leaf:
    return Leaf(0, path, (2,), "float32", 8, (2,), 8, 0, root=root, updates=updates)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (leaf("[0]['w']"), "result [0]['w']"),
        (leaf("result"), "the result"),
        (leaf(""), "the result"),
        (leaf("[0]['w']", updates="params['w']"), "the updated params['w']"),
        (leaf("model.l1.kernel, updated", updates="model.l1.kernel"), "the updated model.l1.kernel"),
        (leaf("model.cache, new"), "result model.cache, new"),
        (leaf("result[0]['w']"), "result [0]['w']"),
        (leaf("results"), "result results"),
    ],
)
def test_a_result_as_a_noun(result: Leaf, expected: str) -> None:
    assert noun(result.title) == expected


def test_a_path_that_is_called_updated_is_a_noun_too() -> None:
    assert noun("model.l1.kernel, updated") == "the updated model.l1.kernel"


@pytest.mark.parametrize(
    "result",
    [leaf("[3]", updates="model.l1.kernel"), leaf("model.l1.kernel, updated", updates="model.l1.kernel")],
)
def test_the_new_value_is_the_namesake_of_its_argument(result: Leaf) -> None:
    assert argument_name(leaf("model.l1.kernel", root="model")) in result_names(result)
    assert argument_name(leaf("other.l2.kernel", root="other")) not in result_names(result)
