"""What XLA says of a compiled program: its HloProto, and its own live ranges as it prints them."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

import case_loader
from donation_inspector.xla.hlo.buffers import Buffers, read_buffers
from xla.hlo.programs import sources

_TIME = re.compile(r"^    (\d+):(\S+)$", re.M)
_RANGE = re.compile(r"^    (\S+?)\{([\d,]*)\}:(\d+)-(\d+)$", re.M)

PROGRAMS = [f"{name} {variant}" for name in (*sources(), *case_loader.CASE_NAMES) for variant in ("jax", "none")]
"""Every program as JAX compiles it, and as it compiles it without donation."""


@dataclass(frozen=True)
class Answer:
    """`schedule` and `ranges` are XLA's: instruction names, and (instruction, index) to (start, end).

    `memory` is XLA's CompiledMemoryStats, `text` the compiled module.
    """

    proto: bytes
    schedule: tuple[str, ...]
    ranges: dict[tuple[str, tuple[int, ...]], tuple[int, int]]
    memory: Any
    text: str


def stage(program: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """One of PROGRAMS as a jitted function with its arguments."""
    name, variant = program.split()
    if name in case_loader.CASE_NAMES:
        case = case_loader.load(name).make()
        fn, args, kwargs, jit = case["fn"], tuple(case["args"]), case["kwargs"], dict(case["jit_kwargs"])
    else:
        source = sources()[name]
        fn, args, kwargs, jit = source.fn, source.args, {}, {**source.jit, "donate_argnums": source.donate}
    if variant == "none":
        jit = {option: value for option, value in jit.items() if not option.startswith("donate")}
    return jax.jit(fn, **jit), args, kwargs


def read(folder: str, memory: Any, text: str) -> Answer:
    """What XLA left in its dump folder, as protos and as text, of one compile."""
    (proto,) = Path(folder).glob("*after_optimizations.hlo.pb")
    (path,) = Path(folder).glob("*after_optimizations-live-range.txt")
    printed = path.read_text()
    return Answer(
        proto=proto.read_bytes(),
        schedule=tuple(name for _, name in _TIME.findall(printed)),
        ranges={
            (name, tuple(int(part) for part in index.split(",") if part)): (int(start), int(end))
            for name, index, start, end in _RANGE.findall(printed)
        },
        memory=memory,
        text=text,
    )


@cache
def answer(program: str) -> Answer:
    """One of PROGRAMS, compiled once for all tests."""
    jitted, args, kwargs = stage(program)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # donated buffers that are not usable
        warnings.simplefilter("ignore")
        options = {"xla_dump_to": folder, "xla_dump_hlo_as_proto": True, "xla_dump_hlo_as_text": True}
        compiled = jitted.lower(*args, **kwargs).compile(options)
        return read(folder, compiled.memory_analysis(), compiled.as_text() or "")


@cache
def buffers(program: str) -> Buffers:
    """Ours of one of PROGRAMS."""
    return read_buffers(answer(program).proto)


def ours_in_time(ours: Buffers) -> dict[tuple[str, tuple[int, ...]], tuple[int, int]]:
    """Our ranges in the form of `Answer.ranges`: what runs inside one instruction has none of XLA's."""
    timed = set(ours.schedule)
    return {
        (buffer.instruction, buffer.index): (buffer.start, buffer.end)
        for buffer in ours.live_ranges
        if buffer.instruction in timed
    }


def sizes(ours: Buffers) -> dict[str, int]:
    """Bytes of our allocations of each kind; an aliased parameter is of the kind "alias" alone."""
    by_kind: defaultdict[str, int] = defaultdict(int)
    for allocation in ours.allocations:
        by_kind["alias" if allocation.aliased else allocation.kind] += allocation.nbytes
    return by_kind


def as_memory(ours: Buffers) -> tuple[int, int, int, int]:
    """Our allocations as `CompiledMemoryStats` counts them: argument, output, alias, temp."""
    found = sizes(ours)
    alias = found["alias"]
    return alias + found["parameter"], alias + found["output"], alias, found["temp"]


def memory_of(stats: Any) -> tuple[int, int, int, int]:
    """XLA's own, in the same order."""
    return (
        stats.argument_size_in_bytes,
        stats.output_size_in_bytes,
        stats.alias_size_in_bytes,
        stats.temp_size_in_bytes,
    )
