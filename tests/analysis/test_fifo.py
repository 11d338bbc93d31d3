"""First in, first out, for programs without a lowering: held to JAX's own pairing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import donation_inspector as di
from donation_inspector.analysis.fifo import pair_in_order
from donation_inspector.common.signature import Donation, Leaf, Signature

SHAPES = ((2,), (3,), (2, 2))


def _leaf(index: int, shape: tuple[int | None, ...]) -> Leaf:
    return Leaf(index, f"a{index}", shape, "float32", None, shape, None, index)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_it_pairs_as_jax_does(data: st.DataObject) -> None:
    shapes = data.draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=5))
    order = data.draw(st.permutations(range(len(shapes))))
    donated = data.draw(st.frozensets(st.integers(0, len(shapes) - 1)))

    def f(*arrays: jax.Array) -> list[jax.Array]:
        return [arrays[i] + 1 for i in order]

    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    lowered = di.inspect(jax.jit(f, donate_argnums=tuple(donated)), *arrays)
    signature = Signature(
        tuple(_leaf(i, shape) for i, shape in enumerate(shapes)),
        tuple(_leaf(i, shapes[source]) for i, source in enumerate(order)),
    )
    assert dict(pair_in_order(signature, Donation(), donated).aliases) == dict(lowered.donation.aliases)


def test_what_the_file_says_is_kept() -> None:
    signature = Signature(tuple(_leaf(i, (2,)) for i in range(3)), tuple(_leaf(i, (2,)) for i in range(2)))
    written = Donation({1: 0}, frozenset({2}))
    everything = pair_in_order(signature, written, frozenset({0, 1, 2}))
    assert everything == Donation({1: 0, 0: 1}, frozenset({2}))
    assert pair_in_order(signature, written, frozenset({0})) == Donation({0: 0})


@pytest.mark.parametrize("shape", [(None,), (None, 2)])
def test_a_dynamic_size_fits_nothing(shape: tuple[int | None, ...]) -> None:
    signature = Signature((_leaf(0, shape),), (_leaf(0, shape),))
    assert pair_in_order(signature, Donation(), frozenset({0})) == Donation()
