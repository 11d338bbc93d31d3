"""`decide` against real lowerings that donate the same leaves."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import case_loader
from donation_inspector.common.signature import Arrangement, Donation
from donation_inspector.errors import TraceError
from donation_inspector.xla import attributes
from donation_inspector.xla.decide import PARAMETERS, known_here
from donation_inspector.xla.lowering import Lowered, decide, decide_arranged, lower
from lowered_cases import lower_case, lower_case_anew


def really_lowered(fn: Callable[..., Any], args: Sequence[Any], donated: frozenset[int], **options: Any) -> Donation:
    """The outcome of `jax.jit(fn, donate_argnums=donated)`: each argument is one leaf."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lowered = jax.jit(fn, donate_argnums=tuple(sorted(donated)), **options).lower(*args)
    return attributes.read_donation(lowered.compiler_ir())


def flat(name: str) -> tuple[Callable[..., Any], list[Any], dict[str, Any]]:
    """A case as a function of its flat leaves, so that JAX donates them one by one."""
    case = case_loader.load(name).make()
    options = {k: v for k, v in case["jit_kwargs"].items() if not k.startswith("donate")}
    static_argnums, static_argnames = options.pop("static_argnums", ()), options.pop("static_argnames", ())
    static = {i: value for i, value in enumerate(case["args"]) if i in static_argnums}
    named = {k: v for k, v in case["kwargs"].items() if k in static_argnames}
    traced_args = [value for i, value in enumerate(case["args"]) if i not in static]
    traced_kwargs = {k: v for k, v in case["kwargs"].items() if k not in named}
    leaves, tree = jax.tree.flatten((traced_args, traced_kwargs))

    def fn(*leaves: Any) -> Any:
        args, kwargs = jax.tree.unflatten(tree, leaves)
        for i in sorted(static):
            args.insert(i, static[i])
        return case["fn"](*args, **kwargs, **named)

    return fn, leaves, options


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_decides_as_jax_on_random_subsets_of_every_case(name: str) -> None:
    lowered = lower_case(name)
    fn, leaves, options = flat(name)
    everything = frozenset(range(len(leaves)))
    draw = random.Random(name)
    subsets = [everything, *(frozenset(i for i in everything if draw.random() < 0.5) for _ in range(3))]
    if len(leaves) > 100:
        subsets = subsets[:2]

    for subset in subsets:
        assert decide(lowered, subset) == really_lowered(fn, leaves, subset, **options)


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_the_functions_own_donation_comes_back(name: str) -> None:
    lowered = lower_case(name)

    own = frozenset(leaf.index for leaf in lowered.signature.arguments if leaf.donated)
    assert decide(lowered, own) == lowered.donation
    assert decide(lowered, frozenset()) == Donation()


SHAPES = [(), (4,), (2, 2), (2, 4), (8,)]
DTYPES = ["float32", "int32", "bfloat16", "bool"]
types = st.tuples(st.sampled_from(SHAPES), st.sampled_from(DTYPES))


@st.composite
def programs(draw: st.DrawFn) -> tuple[Callable[..., Any], list[Any], frozenset[int]]:
    """A function of arrays that leaves some unread, returns some as they are and makes others of chosen types."""
    inputs = draw(st.lists(types, min_size=1, max_size=5))
    used = [draw(st.booleans()) for _ in inputs]
    made = draw(st.lists(types, max_size=4))
    returned = draw(st.lists(st.integers(0, len(inputs) - 1), max_size=2))

    def fn(*args: Any) -> Any:
        total = sum(x.astype("float32").sum() for x, use in zip(args, used, strict=True) if use)
        return [jnp.full(shape, total).astype(dtype) for shape, dtype in made], [args[i] for i in returned]

    donated = draw(st.sets(st.integers(0, len(inputs) - 1)))
    return fn, [jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)) for shape, dtype in inputs], frozenset(donated)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(programs())
def test_decides_as_jax_on_generated_functions(program: Any) -> None:
    fn, args, donated = program
    lowered = lower(fn, tuple(args), {}) if _has_arrays(fn, args) else None
    if lowered is not None:
        assert decide(lowered, donated) == really_lowered(fn, args, donated)


def _has_arrays(fn: Callable[..., Any], args: Sequence[Any]) -> bool:
    return bool(args) or bool(jax.tree.leaves(jax.eval_shape(fn, *args)))


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("a", "b"))


SPECS = [PartitionSpec(), PartitionSpec("a"), PartitionSpec(None, "b"), PartitionSpec("a", "b")]
OUT_SPECS = [*SPECS, None]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(SPECS), min_size=3, max_size=3),
    st.lists(st.sampled_from(OUT_SPECS), min_size=3, max_size=3),
    st.sets(st.integers(0, 2)),
)
def test_decides_as_jax_under_a_mesh(inputs: Any, outputs: Any, donated: Any) -> None:
    def fn(x: Any, y: Any, z: Any) -> Any:
        return x + 1, (y * z).reshape(16, 8), z.astype("int32")

    devices = mesh()
    options = {
        "in_shardings": tuple(NamedSharding(devices, spec) for spec in inputs),
        "out_shardings": tuple(None if spec is None else NamedSharding(devices, spec) for spec in outputs),
    }
    args = [jax.ShapeDtypeStruct((8, 16), jnp.float32)] * 3

    lowered = lower(jax.jit(fn, **options), tuple(args), {})

    assert decide(lowered, frozenset(donated)) == really_lowered(fn, args, frozenset(donated), **options)


def test_decides_as_jax_where_a_result_goes_to_another_memory() -> None:
    def fn(x: Any, y: Any) -> Any:
        return x + 1, y * 2

    device = jax.devices()[0]
    here = jax.sharding.SingleDeviceSharding(device)
    host = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    options: dict[str, Any] = {"in_shardings": (here, host), "out_shardings": (host, here)}
    args = [jax.ShapeDtypeStruct((8,), jnp.float32)] * 2
    lowered = lower(jax.jit(fn, **options), tuple(args), {})

    for donated in (frozenset({0}), frozenset({1}), frozenset({0, 1})):
        assert decide(lowered, donated) == really_lowered(fn, args, donated, **options)
    assert decide(lowered, frozenset({0, 1})).aliases == {0: 1, 1: 0}


def test_decides_as_jax_beside_a_mutable_reference() -> None:
    counter = jax.new_ref(jnp.zeros(4))

    def fn(x: Any, y: Any) -> Any:
        counter[...] += x
        return y * 2

    args = [jnp.ones(4), jnp.ones(4)]
    lowered = lower(fn, tuple(args), {})

    for donated in (frozenset[int](), frozenset({0}), frozenset({1}), frozenset({0, 1})):
        assert decide(lowered, donated) == really_lowered(fn, args, donated)


def test_decides_as_jax_behind_a_token() -> None:
    def fn(x: Any, y: Any) -> Any:
        jax.debug.print("{}", x.sum(), ordered=True)
        return y * 2, x + 1

    args = [jnp.ones(4), jnp.ones(8)]
    lowered = lower(fn, tuple(args), {})

    assert decide(lowered, frozenset({0, 1})) == really_lowered(fn, args, frozenset({0, 1}))


def test_this_jax_pairs_by_the_function_that_is_known() -> None:
    assert known_here(), (
        f"JAX {jax.__version__} changed its private pairing function mlir._set_up_aliases: its parameters are no "
        f"longer {PARAMETERS}. `decide` lowers again for every toggle until xla/decide.py knows the new ones."
    )


def force_lowering_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("donation_inspector.xla.lowering.known_here", lambda: False)


def adam() -> Lowered:
    return lower_case_anew("01_adam_step")


def test_lowers_again_where_the_pairing_function_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    subsets = [frozenset[int](), frozenset({0}), frozenset({1, 2, 5}), frozenset(range(10))]
    known = [decide(adam(), subset) for subset in subsets]
    force_lowering_again(monkeypatch)

    assert [decide(adam(), subset) for subset in subsets] == known


def test_lowers_again_where_the_pairing_function_disagrees_with_the_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = decide(adam(), frozenset({1, 2}))
    monkeypatch.setattr("donation_inspector.xla.decide.Pairing.decide", lambda *_: Donation({0: 3}))

    assert decide(adam(), frozenset({1, 2})) == expected


def test_a_lowering_alone_cannot_be_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = lower(jax.jit(jnp.sin).lower(jnp.ones(3)), (), {})
    assert decide(lowered, frozenset({0})).aliases == {0: 0}
    force_lowering_again(monkeypatch)

    with pytest.raises(TraceError, match=r"Give the function and its arguments, or what \.trace\(\) returned"):
        decide(lower(jax.jit(jnp.sin).lower(jnp.ones(3)), (), {}), frozenset({0}))


def test_layouts_that_jax_refuses_together_are_one_message() -> None:
    from jax.experimental.layout import Format, Layout

    lowered = lower(
        jax.jit(lambda x: x + 1, in_shardings=Format(Layout.AUTO)), (jax.ShapeDtypeStruct((4, 4), jnp.float32),), {}
    )

    with pytest.raises(TraceError, match="JAX refuses to donate these arguments together: Input layout"):
        decide(lowered, frozenset({0}))


@pytest.mark.parametrize("taken", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
@pytest.mark.parametrize("sharded", [False, True])
def test_in_another_order_it_is_what_jax_makes_of_the_function_in_that_order(
    taken: tuple[int, ...], sharded: bool
) -> None:
    def step(a: Any, b: Any, c: Any) -> Any:
        return b * 2, (a + c).reshape(4, 4), c.sum(), a * 3

    arguments = [jnp.ones((2, 8)), jnp.ones((2, 8)), jnp.ones((2, 8))]
    returned, over = (3, 1, 2, 0), NamedSharding(Mesh(np.array(jax.devices()[:2]), ("x",)), PartitionSpec("x"))
    told = [over, None, None, over]
    options = {"in_shardings": over} if sharded else {}

    def reordered(*values: Any) -> Any:
        results = step(*(values[taken.index(place)] for place in range(3)))
        return tuple(results[place] for place in returned)

    def lowered(fn: Any, shardings: list[Any], **donated: Any) -> Lowered:
        more = {"out_shardings": tuple(shardings)} if sharded else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return lower(jax.jit(fn, **options, **more, **donated), tuple(arguments), {})

    own, order = lowered(step, told), Arrangement(taken, returned)
    for count in (1, 2, 3):
        donated = frozenset(taken[:count])
        other = lowered(reordered, [told[place] for place in returned], donate_argnums=tuple(range(count)))
        made = decide_arranged(own, donated, order)
        assert made is not None
        assert order.applied_to(made) == other.donation
