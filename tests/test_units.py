import json
import pathlib

import pytest

from donation_inspector.common.units import format_bytes, parse_bytes, total_bytes


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (None, "unknown"),
        (0, "0 B"),
        (4, "4 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (9_000, "9.0 KB"),
        (28_300_000, "28.3 MB"),
        (99_940, "99.9 KB"),
        (99_950, "100 KB"),
        (305_000_000, "305 MB"),
        (999_499, "999 KB"),
        (999_500, "1.0 MB"),
        (999_999_999, "1.0 GB"),
        (17_460_000_000, "17.5 GB"),
        (-4, "-4 B"),
        (-262_144, "-262 KB"),
        (2**80, "1208926 EB"),
    ],
)
def test_sizes_read_as_people_write_them(n: int | None, text: str) -> None:
    assert format_bytes(n) == text


def test_the_front_end_writes_sizes_the_same_way() -> None:
    """vitest holds the front end's formatter to the same file."""
    shared = json.loads((pathlib.Path(__file__).parents[1] / "widgets/tests/bytes.json").read_text())
    assert len(shared) > 20
    assert [[size, format_bytes(size)] for size, _ in shared] == shared


def test_a_sum_with_an_unknown_size_is_unknown() -> None:
    assert total_bytes([4, 0, 8]) == 12
    assert total_bytes([]) == 0
    assert total_bytes([4, None]) is None


@pytest.mark.parametrize(
    ("amount", "size"),
    [
        ("24GB", 24_000_000_000),
        ("24 GiB", 24 * 2**30),
        ("1.5gb", 1_500_000_000),
        (".5M", 500_000),
        ("1000", 1000),
        ("80 B", 80),
        ("1e9", None),
        ("-1GB", None),
        ("24 GBit", None),
        ("many", None),
        ("", None),
    ],
)
def test_amounts_are_read_as_people_write_them(amount: str, size: int | None) -> None:
    assert parse_bytes(amount) == size
