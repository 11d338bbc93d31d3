"""The HloProto out of the compiling child: it is the program's, it changes nothing, and no file is left behind."""

from __future__ import annotations

import dataclasses
import importlib
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from donation_inspector.xla.compile import compile_variants
from donation_inspector.xla.hlo.buffers import read_buffers
from donation_inspector.xla.lowering import lower
from donation_inspector.xla.program import Program
from small_programs import TWO_INPUTS_ONE_RESULT, add, program, with_text

_client: Any = importlib.import_module("jaxlib._jax")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go, the child's too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def step() -> Program:
    return program(lambda w, x: w - jax.grad(lambda w: jnp.tanh(x @ w).sum())(w), (64, 64), (64, 64), donate=(0,))


def test_the_buffers_of_each_variant(folder: Path) -> None:
    plain = program(add, (8,), (8,))
    answers = compile_variants(
        {"step": step(), "refused": with_text(plain, TWO_INPUTS_ONE_RESULT), "add": plain}, hlo=True
    )
    assert {name: answer.status for name, answer in answers.items()} == {
        "step": "ok",
        "refused": "refused",
        "add": "ok",
    }
    assert answers["refused"].hlo is None
    for name, donated in (("step", {0}), ("add", set[int]())):
        memory, hlo = answers[name].memory, answers[name].hlo
        assert memory is not None
        assert hlo is not None
        buffers = read_buffers(hlo)
        assert buffers.reserved == memory.total
        assert {piece.parameter for piece in buffers.allocations if piece.aliased} == donated
    assert list(folder.iterdir()) == []


def test_without_being_asked_for_there_is_none() -> None:
    assert compile_variants({"add": program(add, (8,), (8,))})["add"].hlo is None


def test_asking_changes_nothing_else() -> None:
    asked, plain = compile_variants({"a": step()}, hlo=True)["a"], compile_variants({"a": step()})["a"]
    assert dataclasses.replace(asked, seconds=None, hlo=None) == dataclasses.replace(plain, seconds=None)


def flagged(original: Program, elsewhere: str) -> Program:
    """The program of someone whose XLA_FLAGS make XLA write files."""
    options = _client.CompileOptions.ParseFromString(original.compile_options)
    debug = options.executable_build_options.debug_options
    debug.xla_dump_to, debug.xla_dump_hlo_pass_re = elsewhere, ".*"
    debug.xla_dump_hlo_as_html = debug.xla_dump_compress_protos = True
    return dataclasses.replace(original, compile_options=options.SerializeAsString())


def optioned(elsewhere: str) -> Program:
    """The program of someone whose compiler options do."""
    written = {"xla_dump_to": elsewhere, "xla_dump_hlo_as_proto": False, "xla_dump_compress_protos": True}
    return lower(jax.jit(add, compiler_options=written), (jnp.ones(8), jnp.ones(8)), {}).program()


@pytest.mark.parametrize("whose", [lambda elsewhere: flagged(step(), elsewhere), optioned], ids=["flags", "options"])
def test_what_the_user_has_xla_write_is_not_written_here(whose: Callable[[str], Program], folder: Path) -> None:
    hlo = compile_variants({"a": whose(str(folder / "theirs"))}, hlo=True)["a"].hlo
    assert hlo is not None
    assert read_buffers(hlo).peak > 0
    assert os.listdir(folder) == []


def test_nothing_is_left_behind_when_it_is_cancelled(folder: Path) -> None:
    cancel = threading.Event()
    seen: list[list[str]] = []

    def on_step(_done: int, _all: int, _name: str) -> None:
        seen.append(os.listdir(folder))
        cancel.set()

    answers = compile_variants({"a": step(), "b": step(), "c": step()}, progress=on_step, cancel=cancel, hlo=True)
    assert answers["c"].status == "cancelled"
    assert [len(entries) for entries in seen[:1]] == [1]
    assert os.listdir(folder) == []
