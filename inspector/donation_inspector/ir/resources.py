"""Constants as MLIR's resources: `dense_resource<name>` in the text, the bytes by name in hexadecimal at its end.

MLIR and xDSL both pass such bytes on untouched, but XLA takes no constant that is one: what is read becomes `dense`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

_ALIGNMENT = (16).to_bytes(4, "little")
_SECTION = "{-#"
_BLOB = re.compile(r'([\w.$-]+)\s*:\s*"0x([0-9A-Fa-f]*)"')
_USE = re.compile(r"dense_resource<([\w.$-]+)>(\s*:\s*tensor<((?:\d+x)*)(complex<\w+>|\w+)>)")
_WIDTH = re.compile(r"[a-z]+(\d+)")


def section(constants: Mapping[str, bytes]) -> str:
    """The end of a module's text that holds these constants' elements; one of type i1 is a byte, 0 or 1."""
    lines = ",\n".join(f'      {name}: "0x{(_ALIGNMENT + data).hex().upper()}"' for name, data in constants.items())
    return f"{_SECTION}\n  dialect_resources: {{\n    builtin: {{\n{lines}\n    }}\n  }}\n#-}}\n"


def blobs(text: str) -> dict[str, bytes]:
    """The elements behind a module's resources by name."""
    start = text.rfind(_SECTION)
    found = [] if start < 0 else _BLOB.findall(text, start)
    return {name: bytes.fromhex(blob)[len(_ALIGNMENT) :] for name, blob in found if len(blob) % 2 == 0}


def inlined(text: str) -> str:
    """The module's text with `dense` for every `dense_resource` of a ranked, static tensor whose bytes are there."""
    known = blobs(text)

    def dense(use: re.Match[str]) -> str:
        name, type, extents, element = use.groups()
        shape = [int(extent) for extent in extents.split("x")[:-1]]
        width = _bytes_of(element)
        if name not in known or width is None or len(known[name]) != width * math.prod(shape):
            return use.group()
        # how MLIR lays out booleans in `dense` changed with its versions: they are written in words
        body = _booleans(known[name], shape) if element == "i1" else f'"0x{known[name].hex()}"'
        return f"dense<{body}>{type}"

    return _USE.sub(dense, text) if known else text


def _bytes_of(element: str) -> int | None:
    """Of one element where MLIR holds it in a resource; None where that is not known."""
    if element.startswith("complex<"):
        part = _bytes_of(element[8:-1])
        return None if part is None else 2 * part
    width = 64 if element == "index" else int(found[1]) if (found := _WIDTH.match(element)) else None
    return None if width is None else -(-width // 8)


def _booleans(data: bytes, shape: Sequence[int]) -> str:
    if not shape:
        return "true" if data[0] else "false"
    step = len(data) // shape[0] if shape[0] else 0
    return f"[{', '.join(_booleans(data[start : start + step], shape[1:]) for start in range(0, len(data), step))}]"
