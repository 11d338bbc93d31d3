"""Files as they come from a bad disk or a bad sender: every kind of change, from a seed."""

from __future__ import annotations

import json
import pathlib
import random
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

Chance = random.Random
JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 7, 1 << 31, 1 << 62, 10**30, -(10**30), 1.5, -0.5, 1e308),
    *("", "x", "jax", "\x00", "<script>alert(1)</script>", "../../etc/passwd", "é" * 2000, "a" * 100_000),
    *([], {}, [[]], [0], [None], {"": None}, [[0, 0], [0, 0]], [10**9] * 50, {"x": {"x": {"x": 1}}}),
)
RAW_JUNK = (b"NaN", b"Infinity", b"1e999", b"[" * 100_000, b'{"a":' * 50_000, b'"\\ud800"', b"\xff", b"1" * 5000)
"""What JSON does not know, or no sound writer makes."""


def parts_of(path: pathlib.Path) -> dict[str, bytes]:
    """What a zip holds, by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(path: pathlib.Path, parts: dict[str, bytes]) -> pathlib.Path:
    """A zip of these, whatever they are."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def flipped(data: bytes, chance: Chance) -> bytes:
    """One bit of it changed."""
    spoiled = bytearray(data)
    spoiled[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(spoiled)


def cut(data: bytes, chance: Chance) -> bytes:
    """The end missing, or a stretch within."""
    begin = chance.randrange(len(data))
    return data[:begin] if chance.random() < 0.5 else data[:begin] + data[begin + chance.randrange(1, 200) :]


def renumbered(data: bytes, chance: Chance) -> bytes:
    """One digit changed, or a number made long."""
    digits = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    at = chance.choice(digits)
    put = chance.choice([b"0", b"9", b"-1", b"99999999999999999999", b"4611686018427387904", b"?"])
    return data[:at] + put + data[at + 1 :]


def shuffled(data: bytes, chance: Chance) -> bytes:
    """Two lines exchanged, one doubled, one left out, or a stretch of text put elsewhere."""
    lines = data.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            lines[one], lines[other] = lines[other], lines[one]
        case 1:
            lines.insert(one, lines[other])
        case 2:
            del lines[one]
        case _:
            begin = chance.randrange(len(data))
            piece = data[begin : begin + chance.randrange(1, 60)]
            return data[: chance.randrange(len(data))] + piece + data[chance.randrange(len(data)) :]
    return b"\n".join(lines)


def values_changed(data: bytes, chance: Chance) -> bytes:
    """One value of a JSON changed, taken away, or put in the place of another."""
    state = json.loads(data)
    holder, key = chance.choice(list(places(state)))
    kind = chance.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind == 1:
        other, name = chance.choice(list(places(state)))
        holder[key] = json.loads(json.dumps(other[name]))
    elif kind == 2:
        holder[key] = "@raw@"
        return json.dumps(state).encode().replace(b'"@raw@"', chance.choice(RAW_JUNK), 1)
    else:
        holder[key] = chance.choice(JUNK)
    return json.dumps(state).encode()


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(holder, key or index) of every value below."""
    keys = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(keys):
        yield value, key
        yield from places(part)


def written(
    folder: pathlib.Path, sound: pathlib.Path, count: int, change: Callable[[bytes, Chance], bytes], part: str = ""
) -> list[pathlib.Path]:
    """`count` files in the folder, each with one change of a sound one, or of a part of it where that is a zip."""
    made: list[pathlib.Path] = []
    for number in range(count):
        chance = Chance(f"{sound.name} {part} {change.__name__} {number}")
        path = folder / f"{sound.stem}-{part.replace('/', '.')}-{change.__name__}-{number}{sound.suffix}"
        if part:
            parts = parts_of(sound)
            packed(path, {**parts, part: change(parts[part], chance)})
        else:
            path.write_bytes(change(sound.read_bytes(), chance))
        made.append(path)
    return made
