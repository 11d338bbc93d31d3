"""What arguments and results are: by what the program does with them, by their paths where that says nothing."""

from __future__ import annotations

import pytest

from attribution.compiled import PROGRAMS, compiled
from donation_inspector.attribution.role import Role

P, S, B, A, G, R = (
    Role.PARAMETERS,
    Role.OPTIMIZER,
    Role.BATCH,
    Role.ARGUMENTS,
    Role.GRADIENTS,
    Role.RESULTS,
)

BY_ROOT = {
    "gpt": {"params": P, "opt_state": S, "ids": B},
    "nnx": {"model": P, "optimizer": S, "x": B, "y": B},
    "equinox": {"model": P, "opt_state": S, "x": B, "y": B},
    "bare momentum": {"w": P, "m": S, "x": B},
    "unnamed trees": {"a": P, "b": S, "c": A},
    "scanned steps": {"w": P, "m": S, "x": B},
    "gradients alone": {"params": P, "x": B},
    "elementwise": {"a": A, "b": A},
}


@pytest.mark.parametrize("variant", ["jax", "none"])
@pytest.mark.parametrize("name", BY_ROOT)
def test_whole_arguments(name: str, variant: str) -> None:
    program = compiled(name, variant)
    roles = program.roles.entry.arguments

    found = {leaf.path: roles[leaf.position] for leaf in program.signature.arguments if leaf.position is not None}
    assert found == {
        leaf.path: BY_ROOT[name][leaf.root] for leaf in program.signature.arguments if leaf.position is not None
    }


def test_parts_of_one_tree() -> None:
    program = compiled("one tree")
    roles = program.roles.entry.arguments

    assert {leaf.path: roles[leaf.position or 0] for leaf in program.signature.arguments} == {
        "state['params']": P,
        "state['slots']": S,
        "state['step']": A,
        "x": B,
    }


def test_a_mirrored_path_counts_more_than_the_name_of_the_whole() -> None:
    program = compiled("one model")
    roles = program.roles.entry.arguments

    assert roles[program.position("model['layers']['k']")] is P
    assert roles[program.position("model['memory']['k']")] is S


RESULTS = {
    "gpt": {"[0]": P, "[1]": S, "[2]": R},
    "nnx": {"model": P, "optimizer": S, "result": R},
    "bare momentum": {"[0]": P, "[1]": S},
    "unnamed trees": {"[0]": P, "[1]": S},
    "gradients alone": {"[0]": R, "[1]": G},
    "elementwise": {"[0]": R, "[1]": R},
}


@pytest.mark.parametrize("variant", ["jax", "none"])
@pytest.mark.parametrize("name", RESULTS)
def test_results_are_what_they_are_the_new_value_of(name: str, variant: str) -> None:
    program = compiled(name, variant)
    roles = program.roles.entry.results

    for leaf in program.signature.results:
        expected = next(role for root, role in RESULTS[name].items() if leaf.path.startswith(root))
        assert roles[leaf.position or 0] is expected, leaf.path


def test_no_argument_is_left_out() -> None:
    for name in PROGRAMS:
        program = compiled(name)
        positions = {leaf.position for leaf in program.signature.arguments} - {None}
        assert set(program.roles.entry.arguments) == positions
