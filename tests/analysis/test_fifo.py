"""First in, first out, held to JAX's own pairing where JAX pairs by type alone."""

import pytest

from donation_inspector.analysis.fifo import pair_in_order
from donation_inspector.signature import Donation, Leaf, Shape, Signature
from lowered_cases import lower_case


@pytest.mark.parametrize(
    "name",
    ["03_kv_cache_batch_ints", "08_one_value_returned_twice", "15_zero_size_and_empty", "24_complex_fft"],
)
def test_types_are_paired_as_jax_pairs_them(name: str) -> None:
    lowered = lower_case(name)
    donated = frozenset(leaf.index for leaf in lowered.signature.arguments if leaf.donated)
    assert pair_in_order(lowered.signature, Donation(), donated) == lowered.donation


def leaves(*shapes: Shape) -> tuple[Leaf, ...]:
    return tuple(
        Leaf(index, f"x{index}", shape, "float32", None, shape, None, index) for index, shape in enumerate(shapes)
    )


def test_what_the_file_says_is_kept_and_its_results_are_taken() -> None:
    signature = Signature(leaves((2,), (2,), (2,), (3,)), leaves((2,), (2,), (3,)))
    written = Donation({1: 0}, frozenset({3}))
    assert pair_in_order(signature, written, frozenset({0, 1, 2, 3})) == Donation({1: 0, 0: 1}, frozenset({3}))
    assert pair_in_order(signature, written, frozenset({0})) == Donation({0: 0})
    assert pair_in_order(signature, written, frozenset()) == Donation()


def test_a_dynamic_size_fits_nothing() -> None:
    signature = Signature(leaves((None, 2)), leaves((None, 2)))
    assert pair_in_order(signature, Donation(), frozenset({0})) == Donation()
