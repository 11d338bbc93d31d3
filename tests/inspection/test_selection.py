"""Paths to leaves."""

from __future__ import annotations

import pytest

from donation_inspector.common.signature import Leaf, Signature
from donation_inspector.errors import PathError
from donation_inspector.program.selection import select


def _signature(*paths: str) -> Signature:
    leaves = tuple(
        Leaf(index, path, (2,), "float32", 8, (2,), 8, index, root=path.split("[")[0].split(".")[0])
        for index, path in enumerate(paths)
    )
    return Signature(leaves, ())


TRAIN = _signature("params['w']", "params['w2']", "opt_state[0].mu['w']", "opt_state[0].count", "x")


@pytest.mark.parametrize(
    ("paths", "leaves"),
    [
        (["params"], {0, 1}),
        (["params['w']"], {0}),
        (["opt_state[0]"], {2, 3}),
        (["opt_state[0].mu"], {2}),
        (["x", "params['w2']"], {1, 4}),
        ([], set()),
    ],
)
def test_a_path_is_a_leaf_or_a_prefix_at_a_boundary(paths: list[str], leaves: set[int]) -> None:
    assert select(TRAIN, paths) == leaves


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("param", "near it: params"),
        ("opt_state[0].m", "near it: opt_state"),
        ("params['w", "near it: params"),
        ("zzz", "the arguments are params, opt_state, x"),
    ],
)
def test_a_path_that_does_not_exist_names_the_near_ones(path: str, words: str) -> None:
    with pytest.raises(PathError, match=words) as raised:
        select(TRAIN, [path])
    assert repr(path) in str(raised.value)


def test_without_arguments_it_says_so() -> None:
    with pytest.raises(PathError, match="has no array arguments"):
        select(_signature(), ["x"])
