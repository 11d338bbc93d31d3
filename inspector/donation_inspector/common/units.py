"""Bytes as people read them: the one way every layer writes a size."""

from __future__ import annotations

import re
from collections.abc import Iterable

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(?:([KMGTPE])(i?)B?|B)?\s*", re.IGNORECASE)
_UNITS = ("KB", "MB", "GB", "TB", "PB", "EB")


def total_bytes(sizes: Iterable[int | None]) -> int | None:
    """The sum of sizes in bytes; None, unknown, when one of them is."""
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total


def format_bytes(n: int | None) -> str:
    """`n` bytes in decimal units, as "4 B", "9.0 KB", "28.3 MB" or "305 MB"; None is "unknown".

    One decimal below 100 units, none from there on. A negative size keeps its sign.
    """
    if n is None:
        return "unknown"
    if abs(n) < 1000:
        return f"{n} B"
    value, unit = abs(n) / 1000, 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 1 if value < 99.95 else 0
    return f"{'-' if n < 0 else ''}{value:.{digits}f} {_UNITS[unit]}"


def parse_bytes(amount: str) -> int | None:
    """The bytes in "24GB", "1.5 GiB", "512M" or "1000": decimal units, binary ones with an i. None: no such amount."""
    match = _AMOUNT.fullmatch(amount)
    if match is None:
        return None
    number, unit, binary = match.groups()
    power = 0 if unit is None else "KMGTPE".index(unit.upper()) + 1
    return round(float(number) * (1024 if binary else 1000) ** power)
