"""What `di.jit` made is inspected under the user's own names and order, with the pairs that JAX then made."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.xla import lowering

Tree = Any
WHOLE = {"p": "[2]", "m": "[0]", "v": "[1]"}
SINGLE = {"p['w']": "[2]['w']", "m": "[0]", "v['b']": "[1]['b']"}
PAIRS = {"whole": {0: 4, 1: 5, 2: 0, 3: 1, 4: 2, 5: 3}, "single": {1: 5, 2: 0, 3: 1, 4: 2}}
ARGUMENTS = ["p['b']", "p['w']", "m['b']", "m['w']", "v['b']", "v['w']", "g['b']", "g['w']"]
RESULTS = ["[0]['b']", "[0]['w']", "[1]['b']", "[1]['w']", "[2]['b']", "[2]['w']"]


def adam(p: Tree, m: Tree, v: Tree, g: Tree, kind: str = "") -> Tree:  # noqa: ARG001
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.9 * v + 0.1 * g * g, v, g)
    return m, v, jax.tree.map(lambda p, m, v: p - m / (jnp.sqrt(v) + 1e-8), p, m, v)


def trees() -> list[Tree]:
    return [{"b": jnp.full((4,), i, jnp.float32), "w": jnp.full((4, 4), i, jnp.float32)} for i in range(4)]


@pytest.fixture(params=["whole", "single"])
def case(request: pytest.FixtureRequest) -> tuple[Any, dict[int, int]]:
    return di.jit(adam, pairs=WHOLE if request.param == "whole" else SINGLE), PAIRS[request.param]


def pairs_in(inspection: di.Inspection) -> dict[int, int]:
    return {one.index: one.result for one in inspection.arguments if one.result is not None}


def paths(leaves: Any) -> list[str]:
    return [leaf.path for leaf in leaves]


@pytest.mark.parametrize("how", ["function", "trace", "lower"])
def test_names_and_order_are_the_users_and_the_pairs_are_those_of_the_lowering(case: Any, how: str) -> None:
    step, pairs = case
    given = trees()
    inspection = di.inspect(step, *given) if how == "function" else di.inspect(getattr(step, how)(*given))
    assert paths(inspection.arguments) == ARGUMENTS
    assert paths(inspection.results) == RESULTS
    assert pairs_in(inspection) == pairs
    assert [one.donated for one in inspection.arguments] == [one.index in pairs for one in inspection.arguments]
    assert [one.nbytes for one in inspection.arguments] == [16, 64] * 4
    # The very lowering that JAX makes of a call: its attributes by position, where each leaf is in the program.
    assert inspection.donation.aliases == {
        inspection.arguments[a].position: inspection.results[r].position for a, r in pairs.items()
    }
    assert inspection.notes == ()
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(given))


def test_the_compiled_module_has_them_too(case: Any) -> None:
    step, pairs = case
    assert di.inspect(step, *trees()).compare().variants["jax"].input_output_alias == pairs


def test_other_donated_sets_are_decided_as_jax_would_in_this_program(
    case: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By JAX's pairing function, and by lowering again where that one is not known."""
    step, pairs = case
    sets = [("donate", "g"), ("keep", "m"), ("keep", "p['w']")]
    asked = [pairs_in(getattr(di.inspect(step, *trees()), how)(path)) for how, path in sets]
    monkeypatch.setattr(lowering, "known_here", lambda: False)
    again = [pairs_in(getattr(di.inspect(step, *trees()), how)(path)) for how, path in sets]
    assert asked == again
    # What the pairs leave free, the last argument takes over: all but one b and one w, or nothing.
    assert asked[0] == (pairs if len(pairs) == 6 else {**pairs, 6: 4, 7: 3})
    assert asked[1].keys() == pairs.keys() - {2, 3}


def test_static_arguments_and_the_platform_of_another_device(case: Any) -> None:
    _, pairs = case
    wanted = WHOLE if len(pairs) == 6 else SINGLE
    step = di.jit(adam, pairs=wanted, static_argnames="kind")
    inspection = di.inspect(step, *trees(), "fast")
    assert paths(inspection.arguments) == ARGUMENTS
    assert pairs_in(inspection) == pairs
    for_tpu = inspection._subject.on("tpu")
    assert [leaf.path for leaf in for_tpu.signature.arguments] == ARGUMENTS
    assert for_tpu.origin.decide(frozenset(pairs)) == inspection.donation


def test_pairs_that_do_not_fit_are_told_as_by_the_call_itself() -> None:
    with pytest.raises(di.PathError, match=r"pairs name the argument 'q', which this call does not have"):
        di.inspect(di.jit(adam, pairs={"q": "[0]"}), *trees())
    with pytest.raises(di.TraceError, match="twice"):
        di.inspect(di.jit(adam, pairs={"p": "[0]", "m": "[0]"}), *trees())


def test_values_are_handed_on_in_the_programs_own_order() -> None:
    inspection = di.inspect(di.jit(adam, pairs=SINGLE), *trees())
    by_position = inspection._subject.origin.values()
    for leaf, value in zip(inspection.arguments, jax.tree.leaves(trees()), strict=True):
        assert jnp.array_equal(by_position[leaf.position], value)
