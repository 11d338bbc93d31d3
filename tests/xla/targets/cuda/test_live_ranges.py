"""On a GPU too every live range equals XLA's own, and the allocations add up to XLA's figures to the byte."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from xla.targets.cuda.compiled import PROGRAMS, answer, buffers

# What XLA makes for a GPU and not for a CPU among it.
CONSTRUCTS = {
    *("while", "conditional", "fusion", "custom-call", "copy", "tuple", "get-tuple-element", "bitcast", "sort"),
    *("dynamic-update-slice", "scatter", "fft", "all-reduce-start", "all-reduce-done", "all-gather-start"),
    *("all-gather-done", "reduce-scatter-start", "collective-permute-start", "all-to-all-start", "all-to-all-done"),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_live_ranges_are_xlas_own(program: str) -> None:
    xla, ours = answer(program), buffers(program)
    assert ours.schedule == xla.schedule
    assert xla.ranges
    timed = set(xla.schedule)
    assert {
        (buffer.instruction, buffer.index): (buffer.start, buffer.end)
        for buffer in ours.live_ranges
        if buffer.instruction in timed
    } == xla.ranges


@pytest.mark.parametrize("program", PROGRAMS)
def test_allocations_add_up_to_the_memory(program: str) -> None:
    memory, ours = answer(program).memory, buffers(program)
    sizes: defaultdict[str, int] = defaultdict(int)
    for allocation in ours.allocations:
        assert allocation.color == 0
        sizes["alias" if allocation.aliased else allocation.kind] += allocation.nbytes
    assert sizes["alias"] == memory.alias_size_in_bytes
    assert sizes["alias"] + sizes["parameter"] == memory.argument_size_in_bytes
    assert sizes["alias"] + sizes["output"] == memory.output_size_in_bytes
    assert sizes["temp"] == memory.temp_size_in_bytes
    assert ours.reserved == (
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
        + memory.temp_size_in_bytes
    )


def test_the_programs_are_many_and_use_every_construct() -> None:
    assert len(PROGRAMS) >= 80
    used = {opcode for program in PROGRAMS for opcode in re.findall(r" = .*? ([a-z][a-z-]*)\(", answer(program).text)}
    assert CONSTRUCTS - used == set()
    assert sum(len(answer(program).ranges) for program in PROGRAMS) > 3000
