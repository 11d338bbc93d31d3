"""What the words of a path say."""

from __future__ import annotations

import jax
import pytest

from donation_inspector.attribution.names import Certainty, keys, read_name
from donation_inspector.attribution.role import Role


def test_keys_are_those_of_jaxs_own_paths() -> None:
    tree = {"blocks": [{"w": 0}, {"b'c": 1}], "a.b": (2,)}
    for path, _ in jax.tree_util.tree_leaves_with_path(tree):
        expected = tuple(str(getattr(key, "key", getattr(key, "idx", None))) for key in path)
        assert keys("params" + jax.tree_util.keystr(path)) == ("params", *expected)
    assert keys("model.layers[0].weight") == ("model", "layers", "0", "weight")


@pytest.mark.parametrize(
    ("path", "role", "certainty"),
    [
        ("params['w']", Role.PARAMETERS, Certainty.PLAIN),
        ("opt_state[0].mu['params']['w']", Role.OPTIMIZER, Certainty.PLAIN),
        ("state.params['momentum']", Role.PARAMETERS, Certainty.PLAIN),
        ("trainState.optState.count", Role.OPTIMIZER, Certainty.PLAIN),
        ("model.optimizer.mu", Role.OPTIMIZER, Certainty.PLAIN),
        ("model.layers[0].weight", Role.PARAMETERS, Certainty.LIKELY),
        ("grads['w']", Role.GRADIENTS, Certainty.PLAIN),
        ("batch['tokens']", Role.BATCH, Certainty.PLAIN),
        ("x", Role.BATCH, Certainty.WEAK),
        ("w", Role.PARAMETERS, Certainty.WEAK),
        ("nu", Role.OPTIMIZER, Certainty.WEAK),
    ],
)
def test_words(path: str, role: Role, certainty: Certainty) -> None:
    assert read_name(keys(path)) == (role, certainty)


@pytest.mark.parametrize("path", ["a", "state['x']", "carry[0]", "args[0]", "cache['k']", "adamant"])
def test_words_that_say_nothing(path: str) -> None:
    assert read_name(keys(path)) is None
