"""On a TPU too every live range equals XLA's own, and the allocations in HBM add up to XLA's figures."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from xla.hlo.compiled import ours_in_time
from xla.targets.tpu.compiled import PROGRAMS, answer, buffers

# What XLA makes for a TPU and not for a CPU among it; slice-start and its like are async-start.
CONSTRUCTS = {
    *("while", "conditional", "fusion", "custom-call", "copy", "tuple", "get-tuple-element", "bitcast", "sort"),
    *("dynamic-update-slice", "scatter", "convolution", "all-reduce", "all-gather", "all-to-all", "reduce-scatter"),
    *("collective-permute-start", "collective-permute-done", "copy-start", "copy-done", "slice-start", "slice-done"),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_live_ranges_are_xlas_own(program: str) -> None:
    xla, ours = answer(program), buffers(program)
    assert ours.schedule == xla.schedule
    assert xla.ranges
    assert ours_in_time(ours) == xla.ranges


@pytest.mark.parametrize("program", PROGRAMS)
def test_allocations_add_up_in_each_memory_space(program: str) -> None:
    spaces: defaultdict[int, int] = defaultdict(int)
    for allocation in buffers(program).allocations:
        spaces[allocation.color] += allocation.nbytes
    assert spaces == answer(program).spaces


@pytest.mark.parametrize("program", PROGRAMS)
def test_allocations_in_hbm_add_up_to_the_memory(program: str) -> None:
    memory, ours = answer(program).memory, buffers(program)
    sizes: defaultdict[str, int] = defaultdict(int)
    for allocation in ours.allocations:
        if allocation.color == 0:
            sizes["alias" if allocation.aliased else allocation.kind] += allocation.nbytes
    assert sizes["alias"] == memory.alias
    assert sizes["alias"] + sizes["parameter"] == memory.argument
    assert sizes["alias"] + sizes["output"] == memory.output
    # room that is made while the code is, in pieces of 16 or 32 KB, is counted by one of them only
    assert abs(sizes["temp"] - memory.temp) < 1 << 19


def test_the_programs_are_many_and_use_every_construct() -> None:
    equal = [program for program in PROGRAMS if ours_in_time(buffers(program)) == answer(program).ranges]
    assert len(equal) >= 60
    assert sum(len(answer(program).ranges) for program in equal) > 2000
    used = {opcode for program in equal for opcode in re.findall(r" = .*? ([a-z][a-z-]*)\(", answer(program).text)}
    assert CONSTRUCTS - used == set()
    # a kernel that writes into its operand, and values that live in VMEM
    assert any("output_to_operand_aliasing" in answer(program).text for program in equal)
    assert any(buffer.color == 1 for program in equal for buffer in buffers(program).live_ranges)
