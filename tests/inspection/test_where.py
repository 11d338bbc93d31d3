"""From line to value to instruction to argument, held to Python's own line numbers."""

from __future__ import annotations

import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di


def step(params: dict[str, jax.Array], x: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    hidden = jnp.sort(x @ params["w"])  # line of the product
    scaled = params["b"] * 3.0  # line of the scale
    return {"w": params["w"] - 0.5, "b": scaled}, hidden


FILE = Path(__file__).name
SOURCE, FIRST = inspect.getsourcelines(step)
PRODUCT = FIRST + next(i for i, line in enumerate(SOURCE) if "of the product" in line)
SCALE = FIRST + next(i for i, line in enumerate(SOURCE) if "of the scale" in line)

ARGUMENTS = ({"b": jnp.ones(64), "w": jnp.ones((32, 64))}, jnp.ones((16, 32)))
JITTED = jax.jit(step, donate_argnums=0)


@pytest.fixture(scope="module")
def compiled() -> di.Inspection:
    inspection = di.inspect(JITTED, *ARGUMENTS)
    inspection.compare()
    return inspection


def test_before_a_compile_the_program_alone_is_known() -> None:
    found = di.inspect(JITTED, *ARGUMENTS).where(f"{FILE}:{SCALE}")
    assert found.arguments == ("params['b']",)
    assert [one.name for one in found.operations if one.name == "stablehlo.multiply"] == ["stablehlo.multiply"]
    assert found.places[0] == f"{FILE}:{SCALE}"
    assert (found.instructions, found.buffers) == ((), ())


@pytest.mark.parametrize("asked", [SCALE, str(SCALE), f"{FILE}:{SCALE}", f"{__file__}:{SCALE}"])
def test_a_line_leads_to_what_it_computes(compiled: di.Inspection, asked: str | int) -> None:
    found = compiled.where(asked)
    assert "stablehlo.multiply" in {one.name for one in found.operations}
    assert {one.place for one in found.operations} == {f"{FILE}:{SCALE}"}
    assert found.instructions
    assert {buffer.instruction for buffer in found.buffers} <= set(found.instructions)
    assert any(buffer.nbytes == 64 * 4 for buffer in found.buffers)


def test_a_value_leads_to_its_line_and_its_instructions(compiled: di.Inspection) -> None:
    (scale,) = [one for one in compiled.where(SCALE).operations if one.name == "stablehlo.multiply"]
    assert compiled.ir.splitlines()[scale.line].lstrip().startswith(f"{scale.value} = stablehlo.multiply")
    found = compiled.where(scale.value)
    assert found.operations == (scale,)
    assert found.arguments == ("params['b']",)
    assert set(found.instructions) <= set(compiled.where(SCALE).instructions)


def test_an_instruction_leads_back_to_what_it_was_made_from(compiled: di.Inspection) -> None:
    (scale,) = [one for one in compiled.where(SCALE).operations if one.name == "stablehlo.multiply"]
    for name in compiled.where(scale.value).instructions:
        found = compiled.where(name)
        assert scale in found.operations
        assert f"{FILE}:{SCALE}" in found.places


def test_an_argument_leads_to_all_that_reads_it(compiled: di.Inspection) -> None:
    found = compiled.where("params['w']")
    assert found.arguments == ("params['w']",)
    assert [one.name for one in found.operations] == ["stablehlo.dot_general", "stablehlo.subtract"]
    assert f"{FILE}:{PRODUCT}" in found.places
    assert len(found.instructions) >= 2


def test_what_is_read_inside_of_a_loop_is_read_by_the_loop() -> None:
    def loop(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 3, lambda _, carry: carry * w, x)

    found = di.inspect(loop, jnp.ones(4), jnp.ones(4)).where("w")
    assert [one.name for one in found.operations] == ["stablehlo.while"]


@pytest.mark.parametrize("asked", ["params['v']", "%9999", "nowhere.py:1", f"{FILE}:1", "no-such-fusion", ""])
def test_what_does_not_exist_is_told(compiled: di.Inspection, asked: str) -> None:
    with pytest.raises(di.PathError, match="is no argument, no line that makes an operation"):
        compiled.where(asked)


def test_the_near_names_are_told(compiled: di.Inspection) -> None:
    with pytest.raises(di.PathError, match=r"Near it: .*params\['w'\]"):
        compiled.where("param['w']")


def test_it_reads_as_a_table(compiled: di.Inspection) -> None:
    lines = repr(compiled.where("params['b']")).splitlines()
    assert lines[0].split() == ["where", "params['b']"]
    assert lines[1].split() == ["argument", "params['b']"]
    assert any(line.startswith("XLA ") for line in lines)
