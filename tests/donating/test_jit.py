"""`di.jit`: who holds whose buffer after a call, by address; and in all else what `jax.jit` does."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from donation_inspector import donating
from donation_inspector.errors import PathError, TraceError

Tree = Any
ADAM = {"p": "[2]", "m": "[0]", "v": "[1]"}


def adam(p: Tree, m: Tree, v: Tree, g: Tree) -> Tree:
    """Returned as (m, v, p): first in, first out gives p's buffers to m."""
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.9 * v + 0.1 * g * g, v, g)
    return m, v, jax.tree.map(lambda p, m, v: p - m / (jnp.sqrt(v) + 1e-8), p, m, v)


def trees(count: int = 4) -> list[Tree]:
    """Trees of arrays that own their buffers: {"b": [4], "w": [4, 4]}."""
    return [{"b": jnp.full(4, i + 1.0), "w": jnp.full((4, 4), i + 2.0)} for i in range(count)]


def addresses(tree: Tree) -> list[int]:
    return [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(tree)]


def taken(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[int, int]:
    """{flat argument: flat result} for each result that lies where an argument lay, once `fn` has run."""
    before = addresses((args, kwargs))
    result = jax.block_until_ready(fn(*args, **kwargs))
    return {before.index(address): i for i, address in enumerate(addresses(result)) if address in before}


def deleted(*trees: Tree) -> list[bool]:
    return [leaf.is_deleted() for leaf in jax.tree.leaves(trees)]


def written(lowered: Any) -> dict[int, int]:
    """`tf.aliasing_output` by position."""
    main = re.search(r"@main\((.*?)\) ->", lowered.as_text()).group(1)
    arguments = re.split(r", (?=%arg)", main)
    found = {i: re.search(r"tf.aliasing_output = (\d+)", one) for i, one in enumerate(arguments)}
    return {i: int(match.group(1)) for i, match in found.items() if match}


def compiled_alias(compiled: Any) -> dict[int, int]:
    """`input_output_alias` of the compiled module, by position."""
    header = re.search(r"input_output_alias={(.*?) }", compiled.as_text()).group(1)
    return {int(a): int(r) for r, a in re.findall(r"\{(\d*)\}: \((\d+), \{\}, may-alias\)", header)}


def same(one: Tree, other: Tree) -> bool:
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    alike = all(a.dtype == b.dtype and a.weak_type == b.weak_type and np.array_equal(a, b) for a, b in leaves)
    return alike and jax.tree.structure(one) == jax.tree.structure(other)


# ---- the pairs


def test_whole_arguments_hand_their_buffers_to_the_results_that_are_named() -> None:
    step = donating.jit(adam, pairs=ADAM)
    arguments = trees()
    lowered = step.lower(*arguments)
    # In the program the results stand in the arguments' order, under the user's names.
    assert written(lowered) == {i: i for i in range(6)} == compiled_alias(lowered.compile())
    assert re.findall(r"result_info = \"result(.*?)\"", lowered.as_text()) == [
        *["[2]['b']", "[2]['w']", "[0]['b']", "[0]['w']", "[1]['b']", "[1]['w']"]
    ]
    assert isinstance(lowered.lowered, jax.stages.Lowered)
    assert taken(step, *arguments) == {0: 4, 1: 5, 2: 0, 3: 1, 4: 2, 5: 3}
    assert deleted(*arguments) == [True] * 6 + [False] * 2
    assert same(step(*trees()), jax.jit(adam)(*trees()))


def test_without_pairs_it_is_jax_jit() -> None:
    plain = donating.jit(adam, donate_argnums=(0, 1, 2))
    assert type(plain) is type(jax.jit(adam))
    assert taken(plain, *trees()) == {i: i for i in range(6)}


def test_jax_alone_would_have_paired_in_another_way() -> None:
    """What the others are held against: the order of the results decides."""
    assert written(jax.jit(adam, donate_argnums=(0, 1, 2)).lower(*trees())) == {i: i for i in range(6)}
    assert re.search(r"result\[0\]\['b'\]", jax.jit(adam).lower(*trees()).as_text())


SINGLE = {"p['w']": "[2]['w']", "m": "[0]", "v['b']": "[1]['b']"}


def test_single_leaves_hand_over_theirs_and_the_others_stay() -> None:
    step = donating.jit(adam, pairs=SINGLE)
    arguments = trees()
    assert taken(step, *arguments) == {1: 5, 2: 0, 3: 1, 4: 2}
    assert deleted(*arguments) == [False, True, True, True, True, False, False, False]
    assert same(step(*trees()), jax.jit(adam)(*trees()))


@pytest.mark.parametrize("pairs", [{0: 1, 1: 0}, {"a": "[1]", "b": "[0]"}, {np.int64(0): "[1]", "b": 0}])
def test_a_swap(pairs: Any) -> None:
    step = donating.jit(lambda a, b: (a + 1, b + 1), pairs=pairs)
    assert taken(step, jnp.zeros(8), jnp.ones(8)) == {0: 1, 1: 0}


def test_the_one_result_and_an_argument_returned_twice() -> None:
    assert taken(donating.jit(lambda a, b: a + b, pairs={"b": "result"}), jnp.zeros(8), jnp.ones(8)) == {1: 0}
    step = donating.jit(lambda a, b: (a + b, a + b), pairs={"a": "[1]"})
    assert taken(step, jnp.zeros(8), jnp.ones(8)) == {0: 1}


def test_an_argument_that_is_not_used_still_gives_its_own_buffer() -> None:
    """JAX drops it unless told otherwise, and the next one's buffer would go to its result."""
    step = donating.jit(lambda a, b, c: (b + c, b - c), pairs={"a": "[1]", "b": "[0]"})
    assert taken(step, jnp.zeros(8), jnp.ones(8), jnp.ones(8)) == {0: 1, 1: 0}


@pytest.mark.parametrize("donated", [{"donate_argnums": (0, 1, 2)}, {"donate_argnames": ("a", "b", "c")}])
def test_donated_arguments_without_a_pair_come_after_those_with_one(donated: Any) -> None:
    step = donating.jit(lambda a, b, c: (a + c, b + c), pairs={"c": "[0]"}, **donated)
    with pytest.warns(UserWarning, match="donated buffers were not usable"):
        assert taken(step, jnp.zeros(8), jnp.ones(8), jnp.ones(8)) == {2: 0, 0: 1}


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Tree], list[int], dict[int, int]]:
    """Trees of arguments, a permutation of their leaves as results, and pairs of equal shape."""
    shapes = [(2,), (3, 2), ()]
    leaves = draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=7))
    cuts = draw(st.lists(st.booleans(), min_size=len(leaves), max_size=len(leaves)))
    arguments: list[list[tuple[int, ...]]] = [[]]
    for shape, cut in zip(leaves, cuts, strict=True):
        arguments = [*arguments, [shape]] if cut else [*arguments[:-1], [*arguments[-1], shape]]
    order = draw(st.permutations(range(len(leaves))))
    donated = draw(st.lists(st.sampled_from(range(len(leaves))), unique=True))
    pairs: dict[int, int] = {}
    for leaf in donated:
        free = [r for r, source in enumerate(order) if leaves[source] == leaves[leaf] and r not in pairs.values()]
        if free:
            pairs[leaf] = draw(st.sampled_from(free))
    trees = [{"b": tuple(one[1:]), "a": one[:1]} for one in arguments]
    return trees, list(order), pairs


@settings(max_examples=40, deadline=None, derandomize=True)
@given(programs())
def test_any_pairs_of_equal_types_are_what_comes_out(program: tuple[list[Tree], list[int], dict[int, int]]) -> None:
    shapes, order, pairs = program

    def is_shape(one: Any) -> bool:
        return isinstance(one, tuple) and all(isinstance(size, int) for size in one)

    # "b" holds a tuple of shapes, () of which is also the shape of a scalar: lists tell them apart.
    shapes = [{"b": list(tree["b"]), "a": tree["a"]} for tree in shapes]
    values = iter(range(100))
    arguments = jax.tree.map(lambda shape: jnp.full(shape, next(values) + 0.5), shapes, is_leaf=is_shape)

    def permuted(*trees: Tree) -> Tree:
        # "a" comes before "b" in a dict's flat order.
        leaves = jax.tree.leaves(trees)
        return [leaves[source] * 2 + 1 for source in order[:1]], {"rest": [leaves[s] * 2 + 1 for s in order[1:]]}

    expected = permuted(*arguments)
    flat = jax.tree.leaves(arguments)
    by_flat = {i: leaf.shape for i, leaf in enumerate(flat)}
    results = [flat[source].shape for source in order]
    wanted = {a: r for a, r in pairs.items() if by_flat[a] == results[r]}
    step = donating.jit(permuted, pairs=wanted)
    before = addresses(arguments)
    result = jax.block_until_ready(step(*arguments))
    after = addresses(result)
    assert {a: r for a, r in wanted.items() if before[a] == after[r]} == wanted
    assert [leaf.is_deleted() for leaf in flat] == [i in wanted for i in range(len(flat))]
    assert same(result, expected)
