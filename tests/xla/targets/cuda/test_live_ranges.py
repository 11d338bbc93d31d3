"""On a GPU too every live range equals XLA's own, and the allocations add up to XLA's figures to the byte."""

from __future__ import annotations

import re

import pytest

from xla.hlo.compiled import as_memory, memory_of, ours_in_time
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
    assert ours_in_time(ours) == xla.ranges


@pytest.mark.parametrize("program", PROGRAMS)
def test_allocations_add_up_to_the_memory(program: str) -> None:
    memory, ours = memory_of(answer(program).memory), buffers(program)
    assert as_memory(ours) == memory
    assert {allocation.color for allocation in ours.allocations} == {0}
    argument, output, alias, temp = memory
    assert ours.reserved == argument + output - alias + temp


def test_the_programs_are_many_and_use_every_construct() -> None:
    assert len(PROGRAMS) >= 80
    used = {opcode for program in PROGRAMS for opcode in re.findall(r" = .*? ([a-z][a-z-]*)\(", answer(program).text)}
    assert CONSTRUCTS - used == set()
    assert sum(len(answer(program).ranges) for program in PROGRAMS) > 3000
