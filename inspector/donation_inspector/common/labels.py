"""Types as people write them."""

from __future__ import annotations

from donation_inspector.common.signature import Shape

_SHORT = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bfloat": "bf"}


def type_label(dtype: str, shape: Shape) -> str:
    """A type as people write it: "f32[768,2304]", "?" for a dynamic dimension."""
    digits = dtype.lstrip("abcdefghijklmnopqrstuvwxyz")
    word = dtype[: len(dtype) - len(digits)]
    short = f"{_SHORT[word]}{digits}" if word in _SHORT and digits.isdigit() else dtype
    return f"{short}[{','.join('?' if size is None else str(size) for size in shape)}]"
