"""What `differences` reads of a summary: names, types and ranges, checked by msgspec before anything is compared.

A summary of an earlier version has fewer keys, one of a later version more: the former are filled in with what is
unknown, the latter passed over.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

Bytes = Annotated[int, Meta(ge=-(1 << 53), le=1 << 53)]
"""What a float64 holds exactly; a difference may be below 0."""
Dimensions = Annotated[tuple[Annotated[int, Meta(ge=0, le=1 << 53)] | None, ...], Meta(max_length=256)]


class ReadArgument(Struct):
    path: str
    shape: Dimensions
    dtype: str
    verdict: str
    nbytes: Bytes | None = None


class ReadVerdict(Struct):
    path: str
    verdict: str


class ReadMemory(Struct):
    argument: Bytes
    output: Bytes
    alias: Bytes
    temp: Bytes
    total: Bytes


class ReadContributor(Struct):
    role: str
    nbytes: Bytes
    path: str | None = None
    op_name: str | None = None


class ReadPeak(Struct):
    nbytes: Bytes
    contributors: tuple[ReadContributor, ...] = ()


class ReadVariant(Struct):
    status: str
    memory: ReadMemory | None = None
    capacity: Bytes | None = None
    fits: bool | None = None
    peak: ReadPeak | None = None


class ReadComparison(Struct):
    target: str
    variants: dict[str, ReadVariant]
    arguments: tuple[ReadVerdict, ...] = ()


class ReadRun(Struct):
    peak: Bytes | None = None
    spread: tuple[Bytes, Bytes] | None = None


class ReadMeasurement(Struct):
    target: str
    variants: dict[str, ReadRun]


class ReadMemoryCurve(Struct):
    peak: Bytes | None = None


class ReadDiagnostic(Struct):
    severity: str
    message: str


class ReadApplied(Struct):
    diagnostics: tuple[ReadDiagnostic, ...] = ()


class ReadSummary(Struct):
    """See `summary` for what the keys mean."""

    format: int
    program: str
    arguments: tuple[ReadArgument, ...]
    program_memory: ReadMemoryCurve
    applied: ReadApplied
    pipeline: str | None = None
    platform: str | None = None
    devices: Annotated[int, Meta(ge=1, le=1 << 20)] = 1
    versions: dict[str, str] = {}
    comparisons: tuple[ReadComparison, ...] = ()
    measurement: ReadMeasurement | None = None


class _Header(Struct):
    format: int


def format_of(data: bytes) -> int:
    """The format of a summary. Raises msgspec.MsgspecError where it is no JSON, or names none."""
    return msgspec.json.decode(data, type=_Header).format


def decode(data: bytes) -> dict[str, Any]:
    """The parts of a summary that are compared, as plain values. Raises msgspec.MsgspecError, RecursionError."""
    return msgspec.to_builtins(msgspec.json.decode(data, type=ReadSummary))
