"""jaxlib modules for the tests of ir/: the cases, the files and the GPT-like step, each lowered or parsed once."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import jax
from jaxlib.mlir import ir

import case_loader
from donation_inspector.ir import source
from workloads.gpt_train_step import make

FILES = Path(__file__).parent / "files"
UNPARSEABLE = ("15_zero_bytes.mlir", "16_truncated.mlir", "17_garbage.bin", "18_type_error.mlir", "21_quant_type.mlir")
PARSEABLE = sorted(path.name for path in FILES.glob("[0-9]*") if path.name not in UNPARSEABLE)
WITH_ENTRY = [name for name in PARSEABLE if name != "14_empty_module.mlir"]
GPT = "gpt 24 x 64"
PROGRAMS = [*case_loader.CASE_NAMES, *PARSEABLE, GPT]
ENTRIES = [*case_loader.CASE_NAMES, *WITH_ENTRY, GPT]


def lower(name: str, **changed: Any) -> Any:
    """The case's `jax.stages.Lowered`, with some of its jit arguments changed."""
    case = case_loader.load(name).make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jitted = jax.jit(case["fn"], **(case["jit_kwargs"] | changed))
        return jitted.lower(*case["args"], **case.get("kwargs", {}))


@cache
def module(name: str) -> ir.Module:
    """The module of one of `PROGRAMS`."""
    if name in PARSEABLE:
        return source.parse((FILES / name).read_bytes())
    if name == GPT:
        step, params, opt_state, ids = make(24, 64)
        return jax.jit(step, donate_argnums=(0, 1)).lower(params, opt_state, ids).compiler_ir()
    return lower(name).compiler_ir()


def text(module: ir.Module, **how: Any) -> str:
    """jaxlib's text of a module, constants in full unless told otherwise."""
    return module.operation.get_asm(assume_verified=True, **how)
