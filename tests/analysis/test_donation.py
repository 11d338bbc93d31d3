"""Verdicts and sentences on signatures written by hand, and on what JAX made of the cases."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from donation_inspector.analysis.donation import Argument, Verdict, candidates, verdicts
from donation_inspector.common.signature import Donation, Implicit, Leaf, Shape, Signature
from lowered_cases import lower_case

ITEM_SIZES = {"float32": 4, "int32": 4, "bfloat16": 2, "float64": 8}


def leaf(
    index: int,
    path: str,
    shape: Shape,
    dtype: str = "float32",
    *,
    position: int | None = -1,
    shard_shape: Shape | None = None,
    spec: str | None = None,
) -> Leaf:
    return Leaf(
        index=index,
        path=path,
        shape=shape,
        dtype=dtype,
        nbytes=count(shape, dtype),
        shard_shape=shape if shard_shape is None else shard_shape,
        nbytes_per_device=count(shape if shard_shape is None else shard_shape, dtype),
        position=index if position == -1 else position,
        sharding=None if spec is None else f"{spec} over (d: 8)",
        spec=spec,
        mesh=None if spec is None else "d: 8",
        root=path.split("[")[0].split(".")[0],
    )


def count(shape: Shape, dtype: str) -> int | None:
    size = ITEM_SIZES[dtype]
    for dimension in shape:
        if dimension is None:
            return None
        size *= dimension
    return size


def signature(arguments: list[Leaf], results: list[Leaf]) -> Signature:
    several = any(None in one.shard_shape and None not in one.shape for one in results)
    several = several or any(one.spec is not None for one in (*arguments, *results))
    return Signature(tuple(arguments), tuple(results), devices=8 if several else 1)


def aliased(pairs: dict[int, int], donors: frozenset[int] = frozenset()) -> Donation:
    return Donation(MappingProxyType(pairs), donors)


def only(
    signature: Signature,
    donation: Donation,
    *,
    donated: frozenset[int] = frozenset({0}),
    warned: frozenset[int] = frozenset(),
) -> Argument:
    arguments, _ = verdicts(signature, donation, donated=donated, warned=warned)
    return arguments[0]


W = leaf(0, "params['w']", (64, 128))


def test_an_aliased_argument_names_the_result_that_takes_it() -> None:
    arguments, results = verdicts(
        signature([W], [leaf(0, "[0]", ()), leaf(1, "[1]['w']", (64, 128))]),
        aliased({0: 1}),
        donated=frozenset({0}),
        warned=frozenset(),
    )
    (argument,) = arguments
    assert (argument.verdict, argument.result) == (Verdict.ALIASED, 1)
    assert argument.reason == "result [1]['w'] takes over its buffer"
    assert [result.argument for result in results] == [None, 0]


def test_the_only_result_has_no_path_to_show() -> None:
    argument = only(signature([W], [leaf(0, "result", (64, 128))]), aliased({0: 0}))
    assert argument.reason == "the result takes over its buffer"


def test_a_pair_across_names_is_told() -> None:
    results = [leaf(0, "[0]['v']", (64, 128)), leaf(1, "[0]['w']", (64, 128))]
    argument = only(signature([W], results), aliased({0: 0}))
    assert argument.reason == (
        "result [0]['v'] takes over its buffer; pairs are made in order, not by name: result [0]['w'] has its name"
    )


def test_an_alias_to_a_result_that_is_not_the_users() -> None:
    with_ref = Signature((W,), (), implicit_results=(Implicit(0, "ref", "tensor<64x128xf32>"),))
    argument = only(with_ref, aliased({0: 0}))
    assert (argument.verdict, argument.result) == (Verdict.ALIASED, None)
    assert argument.reason == "a result that the program adds by itself takes over its buffer"


def test_positions_are_not_leaf_indices() -> None:
    arguments = [leaf(0, "dropped", (2,), position=None), leaf(1, "x", (2,), position=1)]
    results = [leaf(0, "[0]", (3,), position=1), leaf(1, "[1]", (2,), position=2)]
    found, taken = verdicts(
        Signature(tuple(arguments), tuple(results), (Implicit(0, "token", "!t"),), (Implicit(0, "token", "!t"),)),
        aliased({1: 2}),
        donated=frozenset({1}),
        warned=frozenset(),
    )
    assert [(argument.verdict, argument.result) for argument in found] == [
        (Verdict.UNUSED, None),
        (Verdict.ALIASED, 1),
    ]
    assert [result.argument for result in taken] == [None, 1]


@pytest.mark.parametrize(
    ("argument", "results", "reason"),
    [
        (
            leaf(0, "x", (64,)),
            [leaf(0, "[0]", (64,), "int32"), leaf(1, "[1]", (2, 2))],
            "donated, but no result is float32[64]: the nearest, result [0] (int32[64]), differs in dtype; "
            "the buffer is not reused (JAX warns about it)",
        ),
        (
            leaf(0, "x", (64,)),
            [leaf(0, "[0]", (32, 64)), leaf(1, "[1]", (8,))],
            "donated, but no result is float32[64]: the nearest, result [1] (float32[8]), differs in shape; "
            "the buffer is not reused (JAX warns about it)",
        ),
        (
            leaf(0, "x", (64,)),
            [leaf(0, "[0]", (3, 3), "int32")],
            "donated, but no result is float32[64]: the nearest, result [0] (int32[3,3]), differs in dtype and shape; "
            "the buffer is not reused (JAX warns about it)",
        ),
        (
            leaf(0, "x['a']", (64,)),
            [leaf(0, "['b']", (64,), "int32"), leaf(1, "['a']", (64,), "bfloat16")],
            "donated, but no result is float32[64]: the nearest, result ['a'] (bfloat16[64]), differs in dtype; "
            "the buffer is not reused (JAX warns about it)",
        ),
        (
            leaf(0, "x", (64, 128), shard_shape=(8, 128), spec="P('d')"),
            [leaf(0, "[0]", (64, 128), spec="P()")],
            "donated, but no result is float32[64,128], P('d'), 8×128 a device: the nearest, result [0] "
            "(float32[64,128], P(), 64×128 a device), is split differently over the devices; the buffer is not reused "
            "(JAX warns about it); if the result may be sharded like it, NamedSharding(mesh, P('d')) for result [0] in "
            "jax.jit(..., out_shardings=...) pairs them",
        ),
        (
            leaf(0, "x", (64,)),
            [],
            "donated, but the function returns no array; the buffer is not reused (JAX warns about it)",
        ),
    ],
)
def test_an_unusable_argument_names_the_nearest_result_and_what_differs(
    argument: Leaf, results: list[Leaf], reason: str
) -> None:
    found = only(signature([argument], results), Donation(), warned=frozenset({0}))
    assert (found.verdict, found.reason) == (Verdict.UNUSABLE, reason)


def test_an_unusable_argument_names_who_took_the_results() -> None:
    arguments = [leaf(0, "x", (64,)), leaf(1, "params['a']", (64,)), leaf(2, "b", (64,))]
    one = only(signature(arguments[:2], [leaf(0, "[0]", (64,))]), aliased({1: 0}), donated=frozenset({0, 1}))
    assert one.reason == (
        "donated, but the only result that fits, result [0] (float32[64]), is taken by params['a']; "
        "the buffer is not reused"
    )
    both = only(
        signature(arguments, [leaf(0, "[0]", (64,)), leaf(1, "[1]", (64,))]),
        aliased({1: 0, 2: 1}),
        donated=frozenset({0, 1, 2}),
    )
    assert "all 2 results that fit are taken, the first, result [0] (float32[64]), by params['a']" in both.reason


@pytest.mark.parametrize(
    ("argument", "results", "reason"),
    [
        (
            leaf(0, "x", (128, 64)),
            [leaf(0, "result", (128, 64))],
            "left to XLA: the result matches, but not in its layout or memory kind, so JAX pairs nothing; "
            "give both the same",
        ),
        (
            leaf(0, "x", (128, 64), shard_shape=(16, 64), spec="P('d')"),
            [leaf(0, "[0]", (128, 64), shard_shape=(None, None))],
            "left to XLA: x is float32[128,64], P('d'), 16×64 a device; result [0] has its sharding left to XLA, so "
            "JAX pairs nothing; NamedSharding(mesh, P('d')) for result [0] in jax.jit(..., out_shardings=...) pairs "
            "them",
        ),
        (
            leaf(0, "x", (128, 64)),
            [leaf(0, "[0]", (64, 128))],
            "left to XLA: no free result is float32[128,64], but result [0] (float32[64,128]) has as many bytes, "
            "so XLA may use the buffer for it",
        ),
        (
            leaf(0, "x", (128, 64), "bfloat16"),
            [leaf(0, "[0]", (128, 64))],
            "left to XLA without a warning, but XLA cannot use it: result [0] (float32[128,64]) has as many elements, "
            "but 32.8 KB against 16.4 KB, and XLA compares bytes",
        ),
        (
            leaf(0, "x", (128, 64), shard_shape=(16, 64), spec="P('d')"),
            [leaf(0, "[0]", (2,), shard_shape=(None,))],
            "left to XLA without a warning, because a result's sharding is left to it, but nothing is known to fit: no "
            "result is float32[128,64], P('d'), 16×64 a device: the nearest, result [0] (float32[2], its sharding left "
            "to XLA), differs in shape",
        ),
        (
            leaf(0, "x", (8,)),
            [leaf(0, "[0]", (2,))],
            "left to XLA, which cannot use it: no result is float32[8]: the nearest, result [0] (float32[2]), "
            "differs in shape",
        ),
    ],
)
def test_a_donor_says_whether_xla_can_use_it(argument: Leaf, results: list[Leaf], reason: str) -> None:
    found = only(signature([argument], results), aliased({}, frozenset({0})))
    assert (found.verdict, found.result, found.reason) == (Verdict.DONOR, None, reason)


@pytest.mark.parametrize(
    ("donated", "reason"),
    [
        (
            frozenset({0}),
            "donated, but the results do not depend on it: JAX drops it without a warning, and its buffer is not "
            "reused; jax.jit(..., keep_unused=True) would keep it",
        ),
        (frozenset(), "the results do not depend on it: JAX drops it"),
    ],
)
def test_a_dropped_argument(donated: frozenset[int], reason: str) -> None:
    dropped = leaf(0, "x", (2,), position=None)
    found = only(signature([dropped], [leaf(0, "[0]", (2,))]), Donation(), donated=donated)
    assert (found.verdict, found.donated, found.reason) == (Verdict.UNUSED, bool(donated), reason)


def test_an_argument_that_could_be_donated_says_to_what() -> None:
    results = [leaf(0, "[0]['v']", (64, 128)), leaf(1, "[0]['w']", (64, 128))]
    found = only(signature([W], results), Donation(), donated=frozenset())
    assert (found.verdict, found.reason) == (
        Verdict.NOT_DONATED,
        "result [0]['w'] (float32[64,128]) could take over its buffer",
    )


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        (leaf(0, "x", (0, 4)), "it has 0 bytes, so there is nothing to save"),
        (
            leaf(0, "x", (None, 4)),
            "its size, float32[?,4], is unknown before the program runs, so no result is known to fit",
        ),
    ],
)
def test_sizes_that_save_nothing_or_are_unknown(argument: Leaf, reason: str) -> None:
    results = [leaf(0, "[0]", argument.shape)]
    found = only(signature([argument], results), Donation(), donated=frozenset())
    assert found.reason == reason
    assert candidates([found]) == ()


def test_a_donor_is_told_of_a_result_that_nobody_has_taken() -> None:
    """Of two results with as many bytes, and of two with as many elements, the first is another argument's."""
    arguments = [leaf(0, "x", (64,)), leaf(1, "y", (64,), "int32"), leaf(2, "z", (64,), "bfloat16")]
    results = [leaf(0, "[0]", (64,), "int32"), leaf(1, "[1]", (8, 8), "int32"), leaf(2, "[2]", (64,), "bfloat16")]
    told = only(signature(arguments, results), aliased({1: 0, 2: 2}, frozenset({0})), donated=frozenset({0, 1, 2}))
    assert told.reason.startswith("left to XLA: no free result is float32[64], but result [1] (int32[8,8]) has as many")
    fewer = [leaf(0, "[0]", (64,), "bfloat16"), leaf(1, "[1]", (8, 8), "bfloat16")]
    told = only(signature(arguments, fewer), aliased({2: 0}, frozenset({0})), donated=frozenset({0, 2}))
    assert "XLA cannot use it: result [1] (bfloat16[8,8]) has as many elements" in told.reason


def test_a_donor_of_unknown_size_is_like_no_result_of_unknown_size() -> None:
    results = [leaf(0, "[0]", (None, 4))]
    told = only(signature([leaf(0, "x", (None, 4))], results), aliased({}, frozenset({0})))
    assert "matches" not in told.reason
    assert "as many" not in told.reason


def test_a_donation_that_never_reached_the_program_says_why() -> None:
    result = leaf(0, "[0]", (64, 128))
    inside = signature([replace(W, ignored="inner jit")], [result])
    inner = only(inside, Donation(), donated=frozenset())
    assert (inner.verdict, inner.reason) == (
        Verdict.NOT_DONATED,
        "an inner jit donates it, which JAX ignores inside another jit without a warning; donate it at the outermost "
        "jit: result [0] (float32[64,128]) could take over its buffer",
    )
    nans = only(signature([replace(W, ignored="debug_nans")], [result]), Donation(), donated=frozenset())
    assert (nans.verdict, nans.reason) == (
        Verdict.NOT_DONATED,
        "JAX ignores every donation while jax_debug_nans is on, without a warning",
    )
    outer = only(inside, aliased({0: 0}))
    assert (outer.verdict, outer.reason) == (Verdict.ALIASED, "result [0] takes over its buffer")
    assert "inner" not in only(signature([replace(W, ignored="inner jit")], []), Donation()).reason


def test_candidates_are_those_that_a_free_result_could_take_most_bytes_first() -> None:
    arguments = [
        leaf(0, "small", (4,)),
        leaf(1, "big", (64, 128)),
        leaf(2, "donated", (64, 128)),
        leaf(3, "dropped", (4,), position=None),
        leaf(4, "no result", (5,)),
        leaf(5, "taken", (9,)),
        leaf(6, "split", (4, 4), shard_shape=(2, 4)),
        leaf(7, "alias", (9,)),
    ]
    results = [leaf(0, "[0]", (4,)), leaf(1, "[1]", (64, 128)), leaf(2, "[2]", (9,)), leaf(3, "[3]", (4, 4))]
    found, _ = verdicts(
        signature(arguments, results), aliased({7: 2}), donated=frozenset({2, 7}), warned=frozenset({2})
    )
    assert [argument.path for argument in candidates(found)] == ["big", "small"]


def test_a_result_whose_sharding_is_left_to_xla_makes_a_candidate_by_its_shape() -> None:
    split = leaf(0, "w", (64, 128), shard_shape=(8, 128), spec="P('d')")
    other = leaf(1, "v", (64, 64), shard_shape=(8, 64), spec="P('d')")
    found, taken = verdicts(
        signature([split, other], [leaf(0, "[0]", (64, 128), shard_shape=(None, None))]),
        Donation(),
        donated=frozenset(),
        warned=frozenset(),
    )
    assert [argument.path for argument in candidates(found)] == ["w"]
    assert found[0].spec == "P('d')"
    assert taken[0].spec is None
    assert found[0].reason == (
        "result [0] (float32[64,128], its sharding left to XLA) could take over its buffer (float32[64,128], P('d'), "
        "8×128 a device): JAX pairs them where out_shardings gives it this one, and leaves it to XLA otherwise"
    )


def test_each_result_is_offered_to_one_argument_its_own_new_value_first() -> None:
    arguments = [leaf(number, name, (4,)) for number, name in enumerate("abc")]
    found, _ = verdicts(
        signature(arguments, [leaf(0, "[0]", (4,)), leaf(1, "[1]", (4,))]),
        Donation(),
        donated=frozenset(),
        warned=frozenset(),
        replaced={2: 0},
    )
    assert [(one.path, one.offered) for one in candidates(found)] == [("a", 1), ("c", 0)]
    assert [one.reason for one in found] == [
        "result [1] (float32[4]) could take over its buffer",
        "result [0] (float32[4]) fits, and is rather for c",
        "result [0] (float32[4]) could take over its buffer",
    ]


def test_unknown_sizes_come_last_among_candidates() -> None:
    odd = Leaf(0, "odd", (4,), "f4E2M1FN", None, (4,), None, 0)
    known = leaf(1, "known", (4,))
    found, _ = verdicts(signature([odd, known], [odd, known]), Donation(), donated=frozenset(), warned=frozenset())
    assert [argument.path for argument in candidates(found)] == ["known", "odd"]


@pytest.mark.parametrize(
    ("name", "path", "reason"),
    [
        (
            "05_reshape_donation",
            "a",
            "left to XLA: no free result is float32[256,256], but the result (float32[16,16,16,16]) has as many bytes, "
            "so XLA may use the buffer for it",
        ),
        (
            "24_complex_fft",
            "kin",
            "donated, but the only result that fits, result [1] (complex64[64,64]), is taken by psi; the buffer is not "
            "reused (JAX warns about it)",
        ),
        (
            "41_replay_ring_buffer",
            "obs",
            "donated, but no result is float32[64]: the nearest, result [1]['rew'] (float32[32]), differs in shape; "
            "the buffer is not reused (JAX warns about it)",
        ),
        (
            "42_layouts_differ",
            "x",
            "left to XLA: the result matches, but not in its layout, so JAX pairs nothing; give both the same",
        ),
    ],
)
def test_the_sentence_on_a_program_of_jax(name: str, path: str, reason: str) -> None:
    lowered = lower_case(name)
    donated = frozenset(leaf.index for leaf in lowered.signature.arguments if leaf.donated)
    arguments, _ = verdicts(lowered.signature, lowered.donation, donated=donated, warned=donated)
    assert {argument.path: argument.reason for argument in arguments}[path] == reason
