"""All that is said of a compiled program equals what XLA itself says or prints of it, on programs of every kind."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from donation_inspector.xla.hlo.buffers import Buffers
from sampling import sampled
from xla.hlo.compiled import PROGRAMS, Answer, answer, as_memory, buffers, memory_of, ours_in_time, sizes

# Every opcode, kind of buffer and of allocation, and type that all of PROGRAMS have is in one of these.
SAMPLE = [
    *("01_adam_step none", "12_argnames_static_kwargs none", "13_typed_prng_keys none"),
    *("19_loop_reads_intermediate none", "22_sharding_changes none", "adam_swapped none", "associative_scan none"),
    *("attention jax", "callback jax", "cholesky none", "collectives none", "cond_takes_through jax"),
    *("cond_takes_through none", "constants jax", "convolution jax", "decompositions none", "elementwise jax"),
    *("fft none", "gather none", "gradient_of_scan jax", "many_types jax", "many_types none", "nested_scan jax"),
    *("pooling_gradient none", "random_bits none", "reduce_several none", "ring jax", "scanned jax", "scatter jax"),
    *("sgd jax", "sgd none", "sgd_sharded jax", "solve_in_loop jax", "sort_by_key jax", "sort_by_key none"),
    *("switch none", "top_k none", "update_slice_keeps_old jax", "while_in_while jax", "while_of_cond jax"),
    "while_reads_in_condition jax",
]
CONSTRUCTS = {
    *("while", "conditional", "call", "fusion", "custom-call", "copy", "tuple", "get-tuple-element", "bitcast"),
    *("dynamic-update-slice", "scatter", "sort", "reduce", "reduce-window", "fft", "convolution", "dot"),
    *("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter"),
}
DTYPES = {"f32": "float32", "s32": "int32", "u32": "uint32", "pred": "bool", "bf16": "bfloat16", "c64": "complex64"}


@pytest.mark.parametrize("program", sampled(PROGRAMS, SAMPLE))
def test_what_is_said_of_a_program_is_what_xla_says(program: str) -> None:
    xla, ours = answer(program), buffers(program)
    live_ranges_are_xlas_own(xla, ours)
    what_runs_inside_an_instruction_is_live_while_it_runs(xla, ours)
    allocations_add_up_to_the_memory(xla, ours)
    a_buffer_lies_inside_its_allocation(ours)
    parameters_are_the_entrys_and_aliased_ones_those_that_xla_aliases(xla, ours)
    shapes_are_as_printed(xla, ours)
    needed_is_held_and_held_is_reserved(ours)
    needed_bytes_are_counted_once(ours)
    what_is_live_is_what_is_needed(ours)


def test_the_sample_has_every_construct() -> None:
    texts = [answer(program).text for program in SAMPLE]
    assert CONSTRUCTS - set(re.findall(r" = .*? ([a-z][a-z-]*)\(", "\n".join(texts))) == set()
    kinds = Counter(kind for program in SAMPLE for kind in sizes(buffers(program)))
    assert set(kinds) == {"alias", "constant", "output", "parameter", "temp", "thread-local"}
    assert kinds["alias"] > 10
    assert sum(len(answer(program).ranges) for program in SAMPLE) > 900
    # the custom calls write into their operands, and a call returns what another computation made
    assert any("output_to_operand_aliasing" in text for text in texts)


def live_ranges_are_xlas_own(xla: Answer, ours: Buffers) -> None:
    assert ours.schedule == xla.schedule
    assert xla.ranges
    assert ours_in_time(ours) == xla.ranges


def calls(text: str) -> tuple[dict[str, str], dict[str, set[str]]]:
    """The computation that each instruction is in, and the instructions that call each computation."""
    home: dict[str, str] = {}
    callers: dict[str, set[str]] = {}
    computation = ""
    for line in text.splitlines():
        if header := re.match(r"(?:ENTRY )?%(\S+) \(.*\{$", line):
            computation = header[1]
        elif instruction := re.match(r"\s+(?:ROOT )?%(\S+) = ", line):
            home[instruction[1]] = computation
            for called in re.findall(
                r"(?:to_apply|calls|select|scatter|condition|body|computations?)=\{?%([^\s,}]+)", line
            ):
                callers.setdefault(called, set()).add(instruction[1])
    return home, callers


def what_runs_inside_an_instruction_is_live_while_it_runs(xla: Answer, ours: Buffers) -> None:
    home, callers = calls(xla.text)
    timed = set(ours.schedule)
    for buffer in ours.live_ranges:
        if buffer.instruction in timed:
            continue
        assert buffer.kind in ("thread-local", "constant")
        (caller,) = callers[buffer.computation]
        while caller not in timed:
            (caller,) = callers[home[caller]]
        assert ours.schedule[buffer.start] == caller
        assert buffer.start == buffer.end


def allocations_add_up_to_the_memory(xla: Answer, ours: Buffers) -> None:
    memory = memory_of(xla.memory)
    assert as_memory(ours) == memory
    argument, output, alias, temp = memory
    assert ours.reserved == argument + output - alias + temp
    assert ours.spaces[0].constant == sizes(ours)["constant"]


def a_buffer_lies_inside_its_allocation(ours: Buffers) -> None:
    by_index = {allocation.index: allocation for allocation in ours.allocations}
    for buffer in ours.live_ranges:
        allocation = by_index[buffer.allocation]
        assert 0 <= buffer.offset <= buffer.offset + buffer.nbytes <= allocation.nbytes
        assert buffer.color == allocation.color == 0


def parameters_are_the_entrys_and_aliased_ones_those_that_xla_aliases(xla: Answer, ours: Buffers) -> None:
    entry = xla.text.partition("\nENTRY ")[2].splitlines()[1:]
    expected = {match[1] for line in entry if (match := re.match(r"\s+(?:ROOT )?%(\S+) = .* parameter\(", line))}
    assert {buffer.instruction for buffer in ours.live_ranges if buffer.kind == "parameter"} == expected
    field = re.search(r"input_output_alias=\{ (.*?) \}(?:,|$)", xla.text.split("\n", 1)[0])
    aliased = {int(number) for number in re.findall(r": \((\d+), \{\}", field[1] if field else "")}
    assert {allocation.parameter for allocation in ours.allocations if allocation.aliased} == aliased


def shapes_are_as_printed(xla: Answer, ours: Buffers) -> None:
    printed = {
        match[1]: (DTYPES[match[2]], tuple(int(size) for size in match[3].split(",") if size))
        for match in re.finditer(r"%(\S+) = (\w+)\[([\d,]*)\](?:\{\S*\})? ", xla.text)
        if match[2] in DTYPES
    }
    for buffer in ours.live_ranges:
        if not buffer.index and buffer.instruction in printed:
            assert (buffer.dtype, buffer.shape) == printed[buffer.instruction]
            assert buffer.value == buffer.instruction


def needed_is_held_and_held_is_reserved(ours: Buffers) -> None:
    assert len(ours.needed) == len(ours.held) == len(ours.schedule)
    assert (ours.needed <= ours.held).all()
    assert ours.peak == ours.held[ours.peak_at] == ours.held.max()
    assert (ours.held[: ours.peak_at] < ours.peak).all()
    assert ours.peak <= ours.reserved
    # a result is there at the end, a parameter that keeps its bytes always
    assert ours.needed[-1] >= sum(buffer.nbytes for buffer in ours.live_ranges if buffer.kind == "output")


def needed_bytes_are_counted_once(ours: Buffers) -> None:
    length = len(ours.schedule)
    expected = np.zeros(length, np.int64)
    for piece in ours.allocations:
        if piece.kind in ("constant", "thread-local"):
            continue
        inside = [buffer for buffer in ours.live_ranges if buffer.allocation == piece.index]
        cuts = sorted({cut for buffer in inside for cut in (buffer.offset, buffer.offset + buffer.nbytes)})
        starts, ends = np.array([b.start for b in inside]), np.array([b.end for b in inside])
        lows = np.array([b.offset for b in inside])
        highs = lows + np.array([b.nbytes for b in inside])
        for low, high in pairwise(cuts):
            over = (lows <= low) & (high <= highs)
            steps = np.zeros(length + 2, np.int64)
            np.add.at(steps, starts[over], 1)
            np.subtract.at(steps, ends[over] + 1, 1)
            expected += (high - low) * (np.cumsum(steps)[:length] > 0)
    assert ours.needed.tolist() == expected.tolist()


def what_is_live_is_what_is_needed(ours: Buffers) -> None:
    live = ours.live_at(ours.peak_at)
    assert [b.nbytes for b in live] == sorted((b.nbytes for b in live), reverse=True)
    # at a moment where one value takes another's bytes both are live, in the same place
    places = {(b.allocation, b.offset, b.nbytes) for b in live if b.kind != "constant"}
    assert sum(nbytes for _, _, nbytes in places) >= ours.needed[ours.peak_at]
    assert {b.id for b in live} == {
        b.id for b in ours.live_ranges if b.start <= ours.peak_at <= b.end and b.kind != "thread-local"
    }
