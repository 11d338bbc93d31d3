"""The allocations add up to XLA's own figures to the byte, and hold the buffers that XLA puts into them."""

from __future__ import annotations

import re

import pytest

from xla.hlo.compiled import PROGRAMS, answer, as_memory, buffers, memory_of, sizes


@pytest.mark.parametrize("program", PROGRAMS)
def test_allocations_add_up_to_the_memory(program: str) -> None:
    memory, ours = memory_of(answer(program).memory), buffers(program)
    assert as_memory(ours) == memory
    argument, output, alias, temp = memory
    assert ours.reserved == argument + output - alias + temp
    assert ours.spaces[0].constant == sizes(ours)["constant"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_buffer_lies_inside_its_allocation(program: str) -> None:
    ours = buffers(program)
    by_index = {allocation.index: allocation for allocation in ours.allocations}
    for buffer in ours.live_ranges:
        allocation = by_index[buffer.allocation]
        assert 0 <= buffer.offset <= buffer.offset + buffer.nbytes <= allocation.nbytes
        assert buffer.color == allocation.color == 0


def test_an_aliased_parameter_is_the_one_that_xla_aliases() -> None:
    seen = 0
    for program in PROGRAMS:
        header = answer(program).text.split("\n", 1)[0]
        field = re.search(r"input_output_alias=\{ (.*?) \}(?:,|$)", header)
        expected = {int(number) for number in re.findall(r": \((\d+), \{\}", field[1] if field else "")}
        allocations = buffers(program).allocations
        assert {allocation.parameter for allocation in allocations if allocation.aliased} == expected
        seen += len(expected)
    assert seen > 100
