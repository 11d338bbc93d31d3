"""The place of an operation is the user's own innermost line, with JAX's name stack."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import jax
import pytest
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnregisteredOp,
)

from donation_inspector.ir import location
from donation_inspector.ir.importer import import_module
from donation_inspector.ir.location import Source, source

_PROGRAM = """\
import jax
import jax.numpy as jnp
import optax


def inner(x):
    return jnp.sin(x) * 2


def step(params, x):
    def loss(p):
        return optax.l2_loss(inner(p) @ x).sum()

    return jax.grad(loss)(params)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[Source]]]:
    """A program's file, and the sources of its operations by name."""
    file = tmp_path_factory.mktemp("user") / "mine.py"
    file.write_text(_PROGRAM)
    spec = importlib.util.spec_from_file_location("mine", file)
    assert spec is not None
    assert spec.loader is not None
    mine = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mine)
    lowered: Any = jax.jit(mine.step).lower(jax.numpy.ones((4, 4)), jax.numpy.ones((4, 4)))
    found: dict[str, list[Source]] = {}
    for operation in import_module(lowered.compiler_ir()).module.walk():
        place = source(operation.location)
        if isinstance(operation, UnregisteredOp) and place is not None:
            found.setdefault(operation.op_name.data.removeprefix("stablehlo."), []).append(place)
    return file, found


def test_the_users_line(program: tuple[Path, dict[str, list[Source]]]) -> None:
    file, found = program
    (sine,) = [place for place in found["sine"] if "transpose" not in place.name_stack]
    assert (sine.file, sine.line) == (str(file), 7)
    assert sine.name_stack.endswith("jvp()/sin")


def test_library_code_is_told_at_the_line_that_calls_it(program: tuple[Path, dict[str, list[Source]]]) -> None:
    """optax squares inside l2_loss; the user's line is 12."""
    file, found = program
    places = {(place.file, place.line) for places in found.values() for place in places}
    # this file is the caller, whose line stands where none of the program's does
    assert {line for name, line in places if name != __file__} == {7, 12}
    assert {name for name, _ in places} <= {str(file), __file__}
    assert any(place.line == 12 for place in found["multiply"])


def test_the_column_is_jaxs(program: tuple[Path, dict[str, list[Source]]]) -> None:
    sine = program[1]["sine"][0]
    assert _PROGRAM.splitlines()[6][sine.column :].startswith("jnp.sin(x)")


def _file(name: str, line: int = 1) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(name), IntAttr(line), IntAttr(2))


_CELL = "/tmp/ipykernel_17/2231.py"
_LAYERS = "/somewhere/lib/python3.12/site-packages/net/layers.py"
_MINE, _OTHER, _INSTALLED = _file(_CELL, 9), _file(_CELL, 11), _file(_LAYERS, 5)
_JAX = _file(str(Path(jax.__file__).parent / "_src" / "lax.py"))
_STDLIB = _file(str(Path(sys.modules["functools"].__file__ or "")))
_NAMED = NameLoc(StringAttr("f"), _MINE)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (UNKNOWN_LOC, None),
        (NameLoc(StringAttr("jit(f)/add"), UNKNOWN_LOC), Source(None, 0, 0, "jit(f)/add")),
        (_MINE, Source(_CELL, 9, 2, "")),
        (CallSiteLoc(_JAX, CallSiteLoc(_STDLIB, CallSiteLoc(_INSTALLED, _MINE))), Source(_CELL, 9, 2, "")),
        (CallSiteLoc(_OTHER, _MINE), Source(_CELL, 11, 2, "")),
        (CallSiteLoc(_INSTALLED, _JAX), Source(_LAYERS, 5, 2, "")),
        (CallSiteLoc(_file("<frozen importlib>"), _file("<stdin>")), Source("<stdin>", 1, 2, "")),
        (NameLoc(StringAttr("jit(f)/mul"), _NAMED), Source(_CELL, 9, 2, "jit(f)/mul")),
        (FusedLoc(ArrayAttr([_MINE, _OTHER]), location.RANGE), Source(_CELL, 9, 2, "")),
        (FusedLoc(ArrayAttr([UNKNOWN_LOC, _NAMED]), NoneAttr()), Source(_CELL, 9, 2, "f")),
    ],
)
def test_made_locations(given: LocationAttr, expected: Source | None) -> None:
    assert source(given) == expected
    assert source(given) == expected, "remembered"
