"""What stands in the JSON of a saved Inspection: names, types and ranges, checked by msgspec before anything uses it.

It holds data alone. What decides how a program is compiled or run (compile options, callbacks, devices, the form of the
inputs) stands there for whoever reads the JSON, and is passed over here: the module tells, or the process that opens
the file. XLA's flags and the jit's compiler options are told, and never set.

    format 1    also had the compile options, in a part of their own
    format 2    packed so that it unpacks to little more; keys whose value is the usual one are left out
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from donation_inspector.questions.measure.answer import WhichExecutable

FORMAT = 2
FORMATS = (1, 2)

Count = Annotated[int, Meta(ge=0, le=1 << 53)]
"""Bytes or elements: what a float64 holds exactly."""
Change = Annotated[int, Meta(ge=-(1 << 53), le=1 << 53)]
Number = Annotated[int, Meta(ge=0, lt=1 << 31)]
"""A place in a table."""
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
Dimensions = Annotated[tuple[Count | None, ...], Meta(max_length=256)]
Word = Annotated[str, Meta(pattern=r"^\w*$", max_length=1000)]
"""A Python identifier, or nothing: it may be written into a line of code."""
Dotted = Annotated[str, Meta(pattern=r"^[\w.<>]*$", max_length=1000)]
Short = Annotated[str, Meta(max_length=10_000)]
Words = Annotated[str, Meta(max_length=100_000)]
PlatformName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,40}$")]
Pairs = tuple[tuple[tuple[Number, Number], ...], tuple[Number, ...]]
"""A donation by position: (argument, result) of what is aliased, and the donors."""
Status = Literal["ok", "does not fit", "refused", "out of memory", "crashed", "timed out", "cancelled"]


class Saved(Struct, frozen=True, omit_defaults=True):
    """What all parts are: defaults are left out, and what a part does not know is passed over."""


class SavedLeaf(Saved, frozen=True):
    """See `signature.Leaf`."""

    index: Number
    path: Short
    shape: Dimensions
    dtype: Short
    nbytes: Count | None
    shard_shape: Dimensions
    nbytes_per_device: Count | None
    position: Number | None
    sharding: Words | None = None
    donated: bool = False
    root: Short = ""
    spec: Words | None = None
    mesh: Words | None = None
    memory: Word | None = None
    layout: Words | None = None
    ignored: Literal["inner jit", "debug_nans", "disable_jit"] | None = None
    added_by: Short | None = None
    updates: Short | None = None


class SavedImplicit(Saved, frozen=True):
    """See `signature.Implicit`."""

    position: Number
    kind: Literal["token", "ref", "constant", "dimension", "unknown"]
    type: Words


class SavedSignature(Saved, frozen=True):
    """See `signature.Signature`."""

    arguments: tuple[SavedLeaf, ...]
    results: tuple[SavedLeaf, ...]
    implicit_arguments: tuple[SavedImplicit, ...] = ()
    implicit_results: tuple[SavedImplicit, ...] = ()
    devices: Annotated[int, Meta(ge=1, le=1 << 20)] = 1
    returned: str | None = None


class SavedWay(Saved, frozen=True):
    """See `frameworks.ways.Way`; each word of it may be written into a line of code."""

    kind: Literal["jax", "nnx", "equinox", "paired", "method", "exported", "unnamed", "foreign"]
    name: Dotted
    positional: tuple[Word, ...] = ()
    named: tuple[Word, ...] = ()
    static: Short = ""
    shardings: bool = False
    rest: Word = ""
    others: Word = ""
    inner: Dotted = ""
    also: Dotted = ""
    jitted: bool = False


class SavedTarget(Saved, frozen=True):
    """See `xla.targets.Target`. It names what was compiled for; what is compiled anew is looked up by its name."""

    name: Short
    platform: PlatformName
    here: bool = True
    topology: Short = ""
    config: str = ""
    devices: Annotated[int, Meta(ge=0, le=1 << 20)] = 0
    capacity: Count | None = None


class SavedDecision(Saved, frozen=True):
    """What JAX answered about one donated set."""

    leaves: tuple[Number, ...]
    donation: Pairs
    warned: tuple[Number, ...]
    notes: Annotated[tuple[Words, ...], Meta(max_length=10_000)]


class SavedMemory(Saved, frozen=True):
    """See `xla.results.Memory`."""

    argument: Count
    output: Count
    alias: Count
    temp: Count


class SavedFields(Saved, frozen=True):
    """See `xla.results.Compiled`; its HloProto is a part of the file by itself."""

    status: Status
    memory: SavedMemory | None = None
    input_output_alias: tuple[tuple[Number, Number], ...] = ()
    seconds: Seconds | None = None
    error: str | None = None
    capacity: Count | None = None
    cached: bool = False


class SavedCompiled(Saved, frozen=True):
    """What XLA made of a donation for a target; `hlo` is the number of its HloProto."""

    target: SavedTarget
    donation: Pairs
    fields: SavedFields
    hlo: Number | None = None


class SavedRun(Saved, frozen=True):
    """See `answers.MeasuredVariant`."""

    name: str
    status: Status
    peak: Change | None = None
    spread: tuple[Change, Change] | None = None
    predicted: Count | None = None
    seconds: Seconds | None = None
    error: str | None = None
    executable: WhichExecutable | None = None


class SavedRuns(Saved, frozen=True):
    """One run of each variant of `answers.VARIANTS`."""

    none: SavedRun
    jax: SavedRun
    made: SavedRun = msgspec.field(name="pass")


class SavedAnswer(Saved, frozen=True):
    """See `answers.Measurement`."""

    target: str
    inputs: str
    runs: Number
    variants: SavedRuns
    outputs_equal: bool | None = None
    limits: Words | None = None
    devices: Annotated[int, Meta(ge=1, le=1 << 20)] = 1


class SavedMeasurement(Saved, frozen=True):
    """A measurement of a donation and of what the pass made of it."""

    donation: Pairs
    answer: SavedAnswer
    made: Pairs | None = msgspec.field(default=None, name="pass")


class SavedArgument(Saved, frozen=True):
    """See `verification.DonatedArgument`."""

    index: Number
    path: Short
    nbytes: Count | None
    outcome: Literal["reused", "freed", "alive", "unknown"]
    result: Short | None
    reason: Words


class SavedVerification(Saved, frozen=True):
    """What became of a donated set in the user's own call."""

    donated: tuple[Number, ...]
    arguments: tuple[SavedArgument, ...]


class SavedProgram(Saved, frozen=True):
    """What of the program's environment is told, where it is another one now."""

    xla_flags: str = ""
    compiler_options: dict[str, str] = {}


class State(Struct, frozen=True):
    """All of it."""

    format: int
    versions: dict[str, Short]
    name: Short
    platform: PlatformName
    signature: SavedSignature
    donated: tuple[Number, ...]
    pipeline: str
    decisions: tuple[SavedDecision, ...]
    way: SavedWay | None = None
    jaxpr: str | None = None
    program: SavedProgram = SavedProgram()
    asked: tuple[SavedTarget, ...] = ()
    compiled: tuple[SavedCompiled, ...] = ()
    measurements: tuple[SavedMeasurement, ...] = ()
    verified: tuple[SavedVerification, ...] = ()


class _Header(Struct):
    format: int
    versions: dict[str, Any] = {}


def format_of(data: bytes) -> tuple[int, dict[str, Any]]:
    """The format of a file and the versions that wrote it. Raises msgspec.MsgspecError, RecursionError."""
    header = msgspec.json.decode(data, type=_Header)
    return header.format, header.versions


def decode(data: bytes) -> State:
    """The JSON of a file. Raises msgspec.MsgspecError, RecursionError where it is none of this form."""
    return msgspec.json.decode(data, type=State)


def encode(state: dict[str, Any]) -> bytes:
    """The JSON of plain values. Raises msgspec.ValidationError where they are not of this form."""
    plain = msgspec.to_builtins(msgspec.convert(state, State))
    # what is told to whoever reads the JSON, and to nobody here
    plain["program"] = state["program"]
    # half a surrogate, as in the name of a file that is no UTF-8, has no place in JSON
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
