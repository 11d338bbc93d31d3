"""Bytes given away once, against a set of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from donation_inspector.attribution.stretches import Stretches


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=20))
def test_every_byte_is_taken_once(spans: list[tuple[int, int]]) -> None:
    stretches, taken = Stretches(), set[int]()
    for low, high in spans:
        new = set(range(low, high)) - taken
        assert stretches.take(low, high) == len(new)
        taken |= new
