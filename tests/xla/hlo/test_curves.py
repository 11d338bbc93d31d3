"""Needed, held and reserved: by hand, and against a count byte by byte."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from donation_inspector.xla.hlo.allocation import Allocation, Kind
from donation_inspector.xla.hlo.curves import curves


@dataclass
class Piece:
    allocation: int
    offset: int
    nbytes: int
    start: int
    end: int


def allocation(index: int, nbytes: int, kind: Kind) -> Allocation:
    return Allocation(index, nbytes, kind, 0, None, (), False)


def test_each_kind_counts_where_it_belongs() -> None:
    answered = curves(
        [
            allocation(0, 100, "parameter"),
            allocation(1, 10, "output"),
            allocation(2, 1000, "temp"),
            allocation(3, 7, "constant"),
            allocation(4, 5, "thread-local"),
        ],
        [
            Piece(0, 0, 100, 0, 2),
            Piece(1, 0, 10, 3, 5),
            Piece(2, 0, 600, 1, 1),
            Piece(2, 600, 400, 1, 3),
            Piece(2, 0, 300, 3, 4),
            Piece(3, 0, 7, 0, 4),
            Piece(4, 0, 5, 2, 2),
        ],
        5,
    )
    assert answered.needed.tolist() == [100, 1100, 500, 710, 310]
    assert answered.held.tolist() == [110, 1110, 510, 810, 410]
    assert (answered.reserved, answered.constant) == (1110, 7)
    assert (answered.peak, answered.peak_at) == (1110, 1)


def test_the_earliest_of_equal_peaks() -> None:
    answered = curves([allocation(0, 8, "temp")], [Piece(0, 0, 8, 1, 1), Piece(0, 0, 8, 3, 3)], 5)
    assert (answered.peak, answered.peak_at) == (8, 1)


def test_a_program_of_nothing() -> None:
    answered = curves([], [], 0)
    assert (answered.needed.tolist(), answered.peak, answered.peak_at, answered.reserved) == ([], 0, 0, 0)


def counted(pieces: list[Piece], nbytes: int, length: int) -> list[int]:
    """Byte by byte: which of them are covered at each time."""
    covered = np.zeros((length, nbytes), bool)
    for piece in pieces:
        covered[piece.start : piece.end + 1, piece.offset : piece.offset + piece.nbytes] = True
    return covered.sum(1).tolist()


@st.composite
def pieces(draw: st.DrawFn) -> Piece:
    offset, nbytes = draw(st.integers(0, 12)), draw(st.integers(0, 12))
    start = draw(st.integers(0, 9))
    return Piece(0, offset, nbytes, start, draw(st.integers(start, 10)))


@given(st.lists(pieces(), max_size=12))
def test_a_byte_that_several_buffers_hold_counts_once(drawn: list[Piece]) -> None:
    answered = curves([allocation(0, 24, "temp")], drawn, 10)
    assert answered.needed.tolist() == answered.held.tolist() == counted(drawn, 24, 10)
