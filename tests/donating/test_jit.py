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
    return [{"b": jnp.full(4, i + 1, jnp.float32), "w": jnp.full((4, 4), i + 2, jnp.float32)} for i in range(count)]


def addresses(tree: Tree) -> list[int]:
    return [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]


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


def test_an_argument_that_is_not_used_gives_its_own_buffer_where_it_is_kept() -> None:
    step = donating.jit(lambda _a, b, c: (b + c, b - c), pairs={"_a": "[1]", "b": "[0]"}, keep_unused=True)
    assert taken(step, jnp.zeros(8), jnp.ones(8), jnp.ones(8)) == {0: 1, 1: 0}


@pytest.mark.parametrize("pairs", [{"_a": "[1]", "t['b']": "[0]['b']"}, {"_a": "[1]", "t": "[0]"}])
def test_a_pair_of_an_argument_that_jax_drops_is_refused(pairs: Any) -> None:
    """The next one's buffer would go to its result. A loop may use it and drop what comes of it, as JAX sees too."""

    def step(_a: Any, t: Any) -> Any:
        unread, b = jax.lax.fori_loop(0, 2, lambda _, c: (c[0] * 2, c[1] + 1), (_a, t["b"]))
        del unread
        return {"b": b}, b * 2

    made = donating.jit(step, pairs=pairs)
    for ask in (made, made.lower, made.eval_shape):
        with pytest.raises(TraceError, match=r"pairs name _a, which is not used by it.*keep_unused=True"):
            ask(jnp.zeros(8), {"b": jnp.ones(8)})


@pytest.mark.parametrize("pairs", [{"p": "[1]", "q": "[0]"}, {"p['w']": "[1]['w']", "q": "[0]"}])
def test_what_is_not_used_is_dropped_as_by_jax(pairs: Any) -> None:
    def step(p: Any, unused: Any, q: Any) -> Any:  # noqa: ARG001
        return jax.tree.map(lambda x: x * 2, q), jax.tree.map(lambda x: x + 1, p)

    arguments = {"b": jnp.ones(8), "w": jnp.ones(8)}, jnp.zeros(1024), {"b": jnp.ones(8), "w": jnp.ones(8)}
    sizes = [
        fn.lower(*arguments).compile().memory_analysis().argument_size_in_bytes
        for fn in (donating.jit(step, pairs=pairs), jax.jit(step), donating.jit(step, pairs=pairs, keep_unused=True))
    ]
    assert sizes[0] == sizes[1] == sizes[2] - 4096


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


@settings(max_examples=25, deadline=None, derandomize=True)
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


# ---- what calls may look like


def step_of(p: Tree, *more: Tree, lr: Any = 1.0, **named: Tree) -> Tree:
    return {"p": jax.tree.map(lambda x: x * lr, p), "rest": [x + 1 for x in (*more, *named.values())]}


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ({"p": "['p']"}, {0: 0, 1: 1}),
        ({"p['w']": "['p']['w']", "more[0]": "['rest'][0]"}, {1: 1, 2: 2}),
        ({"named['x']": "['rest'][1]", "p": "['p']"}, {0: 0, 1: 1, 3: 3}),
        # By index, keywords are sorted: "lr" would come before "x".
        ({2: 3, 3: 2}, {2: 3, 3: 2}),
    ],
)
def test_arguments_by_position_by_keyword_and_behind_stars(pairs: Any, expected: dict[int, int]) -> None:
    step = donating.jit(step_of, pairs=pairs)
    assert taken(step, *trees(1), jnp.zeros(8), x=jnp.ones(8)) == expected


def test_an_argument_keeps_its_pair_however_it_is_passed() -> None:
    step = donating.jit(adam, pairs={"m": "[0]"})
    assert taken(step, *trees()) == {2: 0, 3: 1}
    p, m, v, g = trees()
    # Keywords are flattened in the order of their names: g, m, v.
    assert taken(step, p, m=m, v=v, g=g) == {4: 0, 5: 1}
    assert taken(step, *trees()) == {2: 0, 3: 1}


@pytest.mark.parametrize("pairs", [{"state": "[0]"}, {"state['a']": "[0]['a']"}])
@pytest.mark.parametrize("by_keyword", [False, True])
def test_static_arguments_that_are_equal_and_of_other_types_are_traced_for_each(pairs: Any, by_keyword: bool) -> None:
    def scaled(state: Any, factor: Any) -> Any:
        return {"a": state["a"] + 1, "b": state["b"]}, state["b"] * factor

    step, expected = (
        donating.jit(scaled, pairs=pairs, static_argnames="factor"),
        jax.jit(scaled, static_argnames="factor"),
    )
    for factor in (2, 2.0, True, 1, 1.0):
        given = {"factor": factor} if by_keyword else {}
        results = [
            fn({"a": jnp.ones(4, int), "b": jnp.ones(4, int)}, *([] if given else [factor]), **given)
            for fn in (step, expected)
        ]
        assert [leaf.dtype for leaf in jax.tree.leaves(results[0])] == [
            leaf.dtype for leaf in jax.tree.leaves(results[1])
        ]


@pytest.mark.parametrize("static", [{"static_argnums": 1}, {"static_argnames": "kind"}, {"static_argnames": ("kind",)}])
@pytest.mark.parametrize("pairs", [{"p": "[0]", "q": "[1]"}, {"p['w']": "[0]['w']", "q": "[1]"}])
def test_static_arguments_are_static_and_are_not_counted(static: Any, pairs: Any) -> None:
    def scaled(p: Tree, kind: str, q: Any) -> Tree:
        return jax.tree.map(lambda x: x * {"two": 2, "three": 3}[kind], p), q + len(kind)

    step = donating.jit(scaled, pairs=pairs, **static)
    for kind in ("two", "three", "two"):
        expected = jax.jit(scaled, static_argnames="kind")(*trees(1), kind, jnp.ones(8))
        assert same(step(*trees(1), kind, jnp.ones(8)), expected)
    w = {1: 1, 2: 2}
    assert taken(step, *trees(1), "three", jnp.ones(8)) == (w if "p" not in pairs else {0: 0, **w})
    if "static_argnames" in static:
        assert same(step(*trees(1), kind="two", q=jnp.ones(8)), step(*trees(1), "two", jnp.ones(8)))
    assert same(
        step.lower(*trees(1), "two", jnp.ones(8)).compile()(*trees(1), jnp.ones(8)), step(*trees(1), "two", jnp.ones(8))
    )


@pytest.mark.parametrize("pairs", [{"p": "[0]"}, {"p['w']": "[0]['w']"}])
def test_a_static_argument_without_a_hash_is_refused_in_jax_words(pairs: Any) -> None:
    step = donating.jit(lambda p, sizes: (p, len(sizes)), pairs=pairs, static_argnums=1)
    for sizes in ((1, 2), (1, 2, 3)):
        assert step(*trees(1), sizes)[1] == len(sizes)
        with pytest.raises(ValueError, match="Non-hashable static arguments"):
            step(*trees(1), [1, 2])


@pytest.mark.parametrize("pairs", ["p", ["p", "[0]"], 3])
def test_pairs_that_are_no_mapping(pairs: Any) -> None:
    with pytest.raises(TraceError, match="is no mapping of arguments to results"):
        donating.jit(lambda p: p, pairs=pairs)


def test_calls_of_other_structures_find_their_own_step() -> None:
    step = donating.jit(lambda p, x: jax.tree.map(lambda leaf: leaf * x, p), pairs={"p": ""})
    single = donating.jit(lambda p, x: jax.tree.map(lambda leaf: leaf * x, p), pairs={"p['w']": "['w']"})
    for _ in range(2):
        assert taken(step, *trees(1), 2.0) == taken(step, trees(1)[0], jnp.ones(())) == {0: 0, 1: 1}
        assert taken(step, {"a": jnp.ones(3)}, 2.0) == {0: 0}
        # Once a whole argument, once one of its leaves.
        assert taken(single, {"w": jnp.ones(3)}, 2.0) == {0: 0}
        assert taken(single, *trees(1), 2.0) == {1: 1}
        assert taken(single, {"w": jnp.ones(3), "z": jnp.ones(3)}, 2.0) == {0: 0}


@pytest.mark.parametrize("pairs", [{"p": "[0]"}, {"p['w']": "[0]['w']"}])
def test_numbers_and_numpy_arrays_keep_their_types(pairs: Any) -> None:
    def scaled(p: Tree, x: Any, y: Any) -> Tree:
        return jax.tree.map(lambda leaf: leaf * x, p), x * 2, y + 1

    step, others = donating.jit(scaled, pairs=pairs), (3.0, np.ones(3, np.int32))
    assert same(step(*trees(1), *others), jax.jit(scaled)(*trees(1), *others))


# ---- as jax.jit in all else


@pytest.mark.parametrize("pairs", [ADAM, SINGLE])
def test_stages_take_and_give_what_the_user_does(pairs: Any) -> None:
    step, plain = donating.jit(adam, pairs=pairs), jax.jit(adam)
    traced, lowered = step.trace(*trees()), step.lower(*trees())
    assert traced.out_info == plain.trace(*trees()).out_info
    assert lowered.out_info == plain.lower(*trees()).out_info
    assert step.eval_shape(*trees()) == plain.eval_shape(*trees())
    assert lowered.in_tree == plain.lower(*trees()).in_tree
    assert lowered.out_tree == plain.lower(*trees()).out_tree
    donated = [info.donated for info in jax.tree.leaves(lowered.args_info)]
    arguments = trees()
    result = traced.lower().compile()(*arguments)
    assert same(result, plain(*trees()))
    assert deleted(*arguments) == donated
    assert lowered.compile().memory_analysis().alias_size_in_bytes > 0
    with pytest.raises(TypeError):
        lowered.compile()(*trees(3))


@pytest.mark.parametrize("pairs", [ADAM, SINGLE])
def test_what_a_stage_tells_of_arguments_and_results_is_told_of_the_users(pairs: Any) -> None:
    step, plain = donating.jit(adam, pairs=pairs).trace(*trees()), jax.jit(adam).trace(*trees())
    assert step.out_avals == plain.out_avals
    assert step.in_avals == plain.in_avals
    assert step.lower().in_avals == plain.lower().in_avals
    for name in ("input_shardings", "output_shardings", "input_formats", "output_formats"):
        assert getattr(step.lower().compile(), name) == getattr(plain.lower().compile(), name)
    infos = jax.tree.leaves(step.args_info)
    assert step.donate_argnums == tuple(leaf for leaf, info in enumerate(infos) if info.donated)
    with pytest.raises(AttributeError):
        step.no_such_thing  # noqa: B018


def test_what_cannot_be_exported_says_what_can() -> None:
    with pytest.raises(TraceError, match=re.escape("in the order [2]['b'], [2]['w'], [0]['b'], [0]['w'], [1]['b']")):
        jax.export.export(donating.jit(adam, pairs=ADAM))(*trees())
    with pytest.raises(TraceError, match=r"takes the donated leaves as arguments of their own and returns its results"):
        jax.export.export(donating.jit(adam, pairs=SINGLE))(*trees())


def test_what_has_the_functions_own_order_is_exported() -> None:
    step = donating.jit(adam, pairs={"p": "[0]", "m": "[1]", "v": "[2]"})
    exported = jax.export.export(step)(*trees())
    assert exported.out_tree == jax.tree.structure(adam(*trees()))
    assert same(exported.call(*trees()), jax.jit(adam)(*trees()))
    assert exported.mlir_module().count("tf.aliasing_output") == 6


def test_it_has_the_functions_name_doc_and_signature_and_can_be_a_method() -> None:
    step = donating.jit(adam, pairs=ADAM, inline=True)
    assert (step.__name__, step.__doc__, step.__wrapped__) == (adam.__name__, adam.__doc__, adam)
    assert inspect.signature(step) == inspect.signature(adam)

    class Trainer:
        @functools.partial(donating.jit, pairs={"p": "result"}, static_argnums=0)
        def step(self, p: Any) -> Any:
            return p + 1

    assert taken(Trainer().step, jnp.ones(8)) == {0: 0}
    assert re.search("module @jit_adam", donating.jit(adam, pairs=SINGLE).lower(*trees()).as_text())


@pytest.mark.parametrize("pairs", [ADAM, SINGLE])
def test_vmap_grad_and_jit_go_through_it_as_through_jax_jit(pairs: Any) -> None:
    step, plain = donating.jit(adam, pairs=pairs), jax.jit(adam, donate_argnums=(0, 1, 2))

    def stacked() -> list[Tree]:
        return jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), trees())

    assert same(jax.vmap(step)(*stacked()), jax.vmap(plain)(*stacked()))
    before = stacked()
    places = addresses(before)
    mapped = addresses(jax.block_until_ready(jax.vmap(step)(*before)))
    assert {places.index(place): i for i, place in enumerate(mapped) if place in places} == taken(step, *trees())

    def loss(fn: Any, p: Tree, g: Tree) -> Any:
        m, v, new = fn(p, *trees(3)[1:], g)
        return sum(leaf.sum() for leaf in jax.tree.leaves((m, v, new)))

    for transform in (jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.jit(f)):
        got = transform(lambda p: loss(step, p, trees()[3]))(*trees(1))
        assert same(got, transform(lambda p: loss(jax.jit(adam), p, trees()[3]))(*trees(1)))


@pytest.mark.parametrize(
    ("pairs", "expected"), [(ADAM, {0: 4, 1: 5, 2: 0, 3: 1, 4: 2, 5: 3}), (SINGLE, {1: 5, 2: 0, 3: 1, 4: 2})]
)
@pytest.mark.parametrize("tree", [False, True])
def test_shardings_over_eight_devices(pairs: Any, expected: dict[int, int], tree: bool) -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    on = {"b": NamedSharding(mesh, P("x")), "w": NamedSharding(mesh, P(None, "y"))}
    whole = NamedSharding(mesh, P("x"))
    shardings = {"in_shardings": (on, on, on, on), "out_shardings": (on, on, on)} if tree else {}
    if not tree:
        shardings = {"in_shardings": whole, "out_shardings": whole}
    step = donating.jit(adam, pairs=pairs, **shardings)
    placed = jax.tree.map(jax.device_put, trees(), [on if tree else {"b": whole, "w": whole}] * 4)
    plain = jax.jit(adam, **shardings)(*placed)
    before = [leaf.addressable_shards[5].data.unsafe_buffer_pointer() for leaf in jax.tree.leaves(placed)]
    result = jax.block_until_ready(step(*placed))
    after = [leaf.addressable_shards[5].data.unsafe_buffer_pointer() for leaf in jax.tree.leaves(result)]
    assert {before.index(place): i for i, place in enumerate(after) if place in before} == expected
    assert jax.tree.leaves(jax.tree.map(lambda leaf: leaf.sharding, result)) == [
        leaf.sharding for leaf in jax.tree.leaves(plain)
    ]
    assert same(result, plain)


def test_what_is_compiled_can_be_forgotten() -> None:
    calls: list[int] = []

    def counted(p: Any) -> Any:
        calls.append(1)
        return p + 1

    step = donating.jit(counted, pairs={"p": "result"})
    step(jnp.ones(8))
    step(jnp.ones(8))
    assert len(calls) == 1
    step.clear_cache()
    step(jnp.ones(8))
    assert len(calls) == 2


# ---- what it refuses


@pytest.mark.parametrize(
    ("pairs", "kind", "told"),
    [
        (
            {"q": "[0]"},
            PathError,
            r"adam: pairs name the argument 'q', which this call does not have; there are p\['b'\]",
        ),
        ({"p['ww']": "[0]"}, PathError, r"near it: p\['w'\]"),
        ({"p": "[3]"}, PathError, r"the result '\[3\]', which this call does not have; there are \[0\]"),
        ({8: 0}, PathError, r"argument number 8, and this call has 8"),
        ({0: -1}, PathError, r"result number -1, and this call has 6"),
        ({0.5: 0}, PathError, r"0.5 of type float"),
        ({"p": "[0]['w']"}, PathError, r"2 arrays on the argument's side and 1 array on the result's"),
        ({"p": "[0]", "p['w']": "[1]['w']"}, TraceError, r"the argument p\['w'\] twice"),
        ({"p": "[0]", "m": "[0]"}, TraceError, r"the result \[0\]\['b'\] twice"),
        (
            {"p['b']": "[0]['w']"},
            TraceError,
            r"p\['b'\] \(float32\[4\]\) cannot hand .* \[0\]\['w'\] \(float32\[4,4\]\)",
        ),
    ],
)
def test_pairs_that_do_not_fit_the_call(pairs: Any, kind: type[Exception], told: str) -> None:
    step = donating.jit(adam, pairs=pairs)
    for ask in (step, step.lower, step.eval_shape):
        with pytest.raises(kind, match=told):
            ask(*trees())


def test_a_pair_of_another_dtype_and_one_that_is_not_donated() -> None:
    step = donating.jit(lambda p: p.astype(jnp.bfloat16), pairs={"p": "result"})
    with pytest.raises(TraceError, match=r"float32\[8\].*bfloat16\[8\].*equal shapes and dtypes only"):
        step(jnp.ones(8))
    step = donating.jit(adam, pairs={"p": "[0]"}, donate_argnames="m")
    with pytest.raises(PathError, match=r"pairs name p\['b'\], p\['w'\], but donate_argnums and donate_argnames leave"):
        step(*trees())
    with pytest.raises(ValueError, match="invalid argnames"):
        donating.jit(adam, pairs=ADAM, donate_argnames="nobody")
    with pytest.raises(TypeError):
        donating.jit(adam, pairs=ADAM, nonsense=1)


def test_a_call_that_the_function_does_not_take_is_refused_as_by_jax() -> None:
    def step(p: Any, x: Any) -> Any:
        return x, p

    made = donating.jit(step, pairs={"x": "[0]"})
    for args, kwargs in (((1.0,), {}), ((1.0,), {"y": 2.0}), ((1.0, 2.0, 3.0), {})):
        with pytest.raises(TypeError) as own:
            jax.jit(step)(*args, **kwargs)
        with pytest.raises(TypeError) as ours:
            made(*args, **kwargs)
        assert str(ours.value) == str(own.value)


@pytest.mark.parametrize("pairs", [None, {0: 0}])
def test_what_is_no_function_is_told_at_once(pairs: Any) -> None:
    with pytest.raises(TraceError, match=r"3 \(int\) is no function. Give the function"):
        donating.jit(3, pairs=pairs)
