"""What stems from what: HLO instructions, StableHLO operations, lines of Python and arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from attribution.compiled import compiled
from donation_inspector.attribution.flow import Flow
from donation_inspector.attribution.links import Links
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.importer import import_module
from donation_inspector.ir.location import source
from donation_inspector.xla.compile import compile_variants
from donation_inspector.xla.hlo.buffers import read_buffers
from donation_inspector.xla.lowering import Lowered, lower


@jax.jit
def inner(x: Any) -> Any:
    return jnp.arctan(x) * 3


def many(a: Any, b: Any) -> Any:
    waves = jnp.sin(a)
    product = waves @ b
    ramp = inner(product)
    chosen = jnp.where(ramp > 0, ramp, b)

    def body(carry: Any, row: Any) -> Any:
        return jnp.tanh(carry + row), None

    last, _ = jax.lax.scan(body, chosen[0], chosen)
    return last, jnp.linalg.norm(chosen)


def line_of(text: str, of: Callable[..., Any] = many) -> int:
    lines, first = inspect.getsourcelines(of)
    (found,) = [first + number for number, line in enumerate(lines) if text in line]
    return found


def link(lowered: Lowered, flow: Flow) -> tuple[Links, list[Any]]:
    """The links and the entry's own operations, nested ones left out."""
    ops = list(entry_function(import_module(lowered.module).module).body.block.ops)
    places = [source(op.location) for op in ops]
    return (
        Links(
            flow,
            [place.name_stack if place else "" for place in places],
            [place.line if place else 0 for place in places],
            [place.column if place else 0 for place in places],
        ),
        ops,
    )


def label(op: Any) -> str:
    if op.name == "func.call":
        return f"call {op.callee.string_value()}"
    return op.op_name.data if hasattr(op, "op_name") else op.name


@cache
def linked() -> tuple[Links, list[str], Flow]:
    shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    lowered = lower(jax.jit(many, donate_argnums=0), (shape, shape), {})
    answer = compile_variants({"many": lowered.program()}, hlo=True)["many"]
    assert answer.hlo is not None
    flow = Flow(read_buffers(answer.hlo))
    links, ops = link(lowered, flow)
    return links, [label(op) for op in ops], flow


def opcodes(flow: Flow, name: str) -> set[str]:
    """The opcodes that run in an instruction, those inside of a fusion included."""
    (instruction,) = [i for i in flow.module.instructions.values() if i.name == name]
    found = {instruction.opcode}
    for called in instruction.called_computation_ids:
        for inside in flow.module.computations[called].instructions:
            found |= opcodes(flow, inside.name)
    return found


@pytest.mark.parametrize(
    ("operation", "opcode"),
    [("stablehlo.sine", "sine"), ("stablehlo.dot_general", "dot"), ("stablehlo.while", "while")],
)
def test_an_operation_leads_to_the_instruction_that_computes_it(operation: str, opcode: str) -> None:
    links, ops, flow = linked()

    instructions = links.hlo_of_op(ops.index(operation))
    assert any(opcode in opcodes(flow, name) for name in instructions)
    assert all(ops.index(operation) in links.ops_of_hlo(name) for name in instructions)


def test_what_runs_in_a_call_or_a_loop_leads_to_it() -> None:
    links, ops, flow = linked()
    (root,) = [name for name in flow.buffers.schedule if "sqrt" in opcodes(flow, name)]
    tanh = [name for name in flow.buffers.schedule if "tanh" in opcodes(flow, name)]

    assert [ops[op] for op in links.ops_of_hlo(root)] == ["call norm"]
    assert len(tanh) > 1
    assert all("stablehlo.while" in {ops[op] for op in links.ops_of_hlo(name)} for name in tanh)


@pytest.mark.parametrize(
    ("text", "opcode"),
    [("jnp.sin(a)", "sine"), ("waves @ b", "dot"), ("jnp.tanh(carry", "tanh"), ("jnp.where", "select")],
)
def test_a_line_leads_to_its_instructions_and_back(text: str, opcode: str) -> None:
    links, _, flow = linked()
    line = line_of(text)

    found = links.hlo_of_line(line)
    assert any(opcode in opcodes(flow, name) for name in found)
    assert found == links.hlo_of_line(line, "test_links.py") == links.hlo_of_line(line, __file__)
    assert links.hlo_of_line(line, "links.py") == ()
    assert {(__file__, line)} & {place for name in found for place in links.lines_of_hlo(name)}


def test_a_line_that_calls_leads_to_what_it_calls() -> None:
    links, _, flow = linked()
    called = links.hlo_of_line(line_of("jnp.arctan", inner.__wrapped__))

    assert any("atan2" in opcodes(flow, name) for name in called)
    assert set(called) <= set(links.hlo_of_line(line_of("inner(product)")))


def test_an_argument_leads_to_its_readers_and_back() -> None:
    links, _, flow = linked()

    (sine,) = [name for name in flow.buffers.schedule if "sine" in opcodes(flow, name)]
    assert links.hlo_of_argument(0) == (sine,)
    assert links.arguments_of_hlo(sine) == (0,)
    (dot,) = [name for name in flow.buffers.schedule if "dot" in opcodes(flow, name)]
    assert dot in links.hlo_of_argument(1)
    assert 1 in links.arguments_of_hlo(dot)
    assert links.hlo_of_argument(7) == ()


def test_an_unknown_instruction_is_an_error() -> None:
    links, _, _ = linked()
    with pytest.raises(KeyError):
        links.ops_of_hlo("no such instruction")


@pytest.mark.parametrize("name", ["gpt", "equinox", "nnx", "deep gradient"])
def test_most_of_a_program_is_linked(name: str) -> None:
    """All that is computed, up to what XLA folds away or makes up: constants, reshapes, merged transposes."""
    program = compiled(name)
    flow = program.flow
    links, ops = link(program.lowered, flow)

    computing = [op for op, what in enumerate(ops) if label(what) in {"stablehlo.dot_general", "stablehlo.tanh"}]
    assert computing
    assert all(links.hlo_of_op(op) for op in computing)
    linked_bytes = total = 0
    for buffer in program.buffers.live_ranges:
        if buffer.op_name and buffer.opcode == "fusion":
            total += buffer.nbytes
            linked_bytes += buffer.nbytes if links.ops_of_hlo(buffer.instruction) else 0
    assert linked_bytes >= 0.9 * total


def test_both_directions_say_the_same() -> None:
    program = compiled("gpt")
    links, ops = link(program.lowered, program.flow)

    forward = {(name, op) for name in program.buffers.schedule for op in links.ops_of_hlo(name)}
    backward = {(name, op) for op in range(len(ops)) for name in links.hlo_of_op(op)}
    assert forward == backward
