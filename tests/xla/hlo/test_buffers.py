"""What a logical buffer says of itself: kind, shape, place in the source; and what is live at a time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from donation_inspector.xla.hlo.buffers import BufferLiveRange
from xla.hlo import programs
from xla.hlo.compiled import answer, buffers

SOURCE = Path(programs.__file__).read_text().splitlines()


def find(program: str, kind: str) -> list[BufferLiveRange]:
    return [buffer for buffer in buffers(program).live_ranges if buffer.kind == kind]


def test_kinds_of_a_donated_update() -> None:
    ours = buffers("sgd jax")
    parameters, outputs = find("sgd jax", "parameter"), find("sgd jax", "output")
    assert [buffer.nbytes for buffer in parameters] == [65536] * 3
    # both results and the table of pointers to them
    assert sorted((buffer.dtype, buffer.nbytes) for buffer in outputs) == [
        ("float32", 65536),
        ("float32", 65536),
        ("tuple", 16),
    ]
    homes = {allocation.index: allocation for allocation in ours.allocations}
    written = [homes[buffer.allocation] for buffer in outputs if buffer.dtype == "float32"]
    assert sorted((home.kind, home.aliased, home.parameter) for home in written) == [
        ("parameter", True, 0),
        ("parameter", True, 1),
    ]


def test_without_donation_results_have_allocations_of_their_own() -> None:
    homes = {allocation.index: allocation for allocation in buffers("sgd none").allocations}
    assert {(homes[b.allocation].kind, homes[b.allocation].aliased) for b in find("sgd none", "output")} == {
        ("output", False)
    }


def test_a_donated_parameter_ends_where_its_result_starts() -> None:
    ours = buffers("sgd jax")
    for parameter in find("sgd jax", "parameter"):
        successors = [b for b in ours.live_ranges if b.allocation == parameter.allocation and b.id != parameter.id]
        if successors:
            assert parameter.end == min(b.start for b in successors) < len(ours.schedule)
        else:
            assert parameter.end == len(ours.schedule)


def test_a_custom_call_writes_into_its_operand() -> None:
    program = "cholesky none"
    match = re.search(
        r"%(\S+) = \(.*custom-call\(%([^ ,)]+)\).*output_to_operand_aliasing=\{\{0\}: \(0, \{\}\)", answer(program).text
    )
    assert match is not None
    result = next(b for b in buffers(program).live_ranges if (b.instruction, b.index) == (match[1], (0,)))
    operand = next(b for b in buffers(program).live_ranges if (b.instruction, b.index) == (match[2], ()))
    assert (result.allocation, result.offset) == (operand.allocation, operand.offset)
    assert operand.end == result.start


def test_a_constant_is_one() -> None:
    (table,) = [b for b in find("constants jax", "constant") if b.nbytes == 65536]
    assert (table.opcode, table.shape, table.dtype) == ("constant", (128, 128), "float32")
    assert buffers("constants jax").spaces[0].constant == sum(b.nbytes for b in find("constants jax", "constant"))


@pytest.mark.parametrize(("program", "primitive", "written"), [("gradient_of_scan jax", "tanh", "jnp.tanh(c @ w)")])
def test_the_source_is_the_users_line(program: str, primitive: str, written: str) -> None:
    found = [b for b in buffers(program).live_ranges if b.op_name.endswith(f"/{primitive}")]
    assert found
    for buffer in found:
        assert buffer.source is not None
        assert buffer.source == buffer.stack[0]
        assert buffer.source.file == programs.__file__
        assert written in SOURCE[buffer.source.line - 1]
        assert SOURCE[buffer.source.line - 1][buffer.source.column :].startswith(written[:8])
        assert [frame.function for frame in buffer.stack if frame.file == programs.__file__][-1] == program.split()[0]


def test_what_xla_makes_itself_has_no_source() -> None:
    made = [b for b in buffers("scanned jax").live_ranges if b.opcode == "tuple" and not b.op_name]
    assert made
    assert {b.source for b in made} == {None}


def test_parameters_carry_the_arguments_paths() -> None:
    assert {buffer.op_name for buffer in find("sgd jax", "parameter")} == {"w", "m", "x"}


@pytest.mark.parametrize("time", [-1, 10_000])
def test_a_time_that_there_is_not(time: int) -> None:
    length = len(buffers("sgd jax").schedule)
    with pytest.raises(IndexError, match=rf"There is no time {time}: the schedule has {length}, counted from 0\."):
        buffers("sgd jax").live_at(time)
