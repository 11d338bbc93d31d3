"""Every live range equals XLA's own, as XLA prints it beside the compiled module."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from xla.hlo.compiled import PROGRAMS, answer, buffers, ours_in_time

CONSTRUCTS = {
    *("while", "conditional", "call", "fusion", "custom-call", "copy", "tuple", "get-tuple-element", "bitcast"),
    *("dynamic-update-slice", "scatter", "sort", "reduce", "reduce-window", "fft", "convolution", "dot"),
    *("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter"),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_live_ranges_are_xlas_own(program: str) -> None:
    xla, ours = answer(program), buffers(program)
    assert ours.schedule == xla.schedule
    assert xla.ranges
    assert ours_in_time(ours) == xla.ranges


def test_the_programs_are_many_and_use_every_construct() -> None:
    equal = [program for program in PROGRAMS if ours_in_time(buffers(program)) == answer(program).ranges]
    assert len(equal) >= 120
    used = Counter(
        opcode for program in PROGRAMS for opcode in re.findall(r" = .*? ([a-z][a-z-]*)\(", answer(program).text)
    )
    assert CONSTRUCTS - used.keys() == set()
    assert sum(len(answer(program).ranges) for program in PROGRAMS) > 5000
    # the custom calls write into their operands, and a call returns what another computation made
    assert any("output_to_operand_aliasing" in answer(program).text for program in PROGRAMS)


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


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_runs_inside_an_instruction_is_live_while_it_runs(program: str) -> None:
    ours = buffers(program)
    home, callers = calls(answer(program).text)
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
