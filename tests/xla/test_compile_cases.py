"""The 30 cases: XLA's figures and aliases through our child equal what JAX's own compile gave."""

from __future__ import annotations

import dataclasses
import warnings

import jax
import pytest
from jaxlib.mlir import ir

import case_loader
from donation_inspector.xla import internals
from donation_inspector.xla.compile import Compiled, compile_variants
from donation_inspector.xla.program import Program
from lowered_cases import lower_case

KINDS = {"jax": "mem_donated", "none": "mem_plain"}


def stripped(program: Program) -> Program:
    """The program without any donation, by an edit of its own: the exporter has its own tests."""
    with internals.mlir.make_ir_context():
        module = ir.Module.parse(program.bytecode)
        main = next(op for op in module.body if op.operation.name == "func.func" and op.name.value == "main")
        dropped = {"tf.aliasing_output", "jax.buffer_donor"}
        if "arg_attrs" in main.attributes:
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(
                [
                    ir.DictAttr.get({name: attributes[name] for name in _names(attributes) if name not in dropped})
                    for attributes in main.attributes["arg_attrs"]
                ]
            )
        return dataclasses.replace(program, bytecode=internals.mlir.module_to_bytecode(module))


def _names(attributes: ir.DictAttr) -> list[str]:
    return [named.name for named in attributes]


@pytest.fixture(scope="module")
def compiled() -> dict[str, Compiled]:
    """Every case, with and without donation, in one child."""
    programs = {name: lower_case(name).program() for name in case_loader.CASE_NAMES}
    both = {f"{name} jax": program for name, program in programs.items()}
    both |= {f"{name} none": stripped(program) for name, program in programs.items()}
    return compile_variants(both)


def expected_memory(name: str, variant: str) -> dict[str, int]:
    """The recorded facts; under another jax than theirs, what JAX's own compile says in this process."""
    if jax.__version__ == case_loader.expect(name)["jax"]:
        return dict(case_loader.expect(name)[KINDS[variant]])
    case = case_loader.load(name).make()
    options = dict(case["jit_kwargs"])
    if variant == "none":
        options = {key: value for key, value in options.items() if not key.startswith("donate")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stats = jax.jit(case["fn"], **options).lower(*case["args"], **case["kwargs"]).compile().memory_analysis()
    return {
        "arg": stats.argument_size_in_bytes,
        "out": stats.output_size_in_bytes,
        "alias": stats.alias_size_in_bytes,
        "temp": stats.temp_size_in_bytes,
    }


@pytest.mark.parametrize("variant", ["jax", "none"])
@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_memory_of_the_case(compiled: dict[str, Compiled], name: str, variant: str) -> None:
    answer = compiled[f"{name} {variant}"]
    assert (answer.status, answer.error) == ("ok", None)
    assert answer.memory is not None
    assert answer.seconds is not None
    assert answer.seconds > 0
    memory, expected = answer.memory, expected_memory(name, variant)
    actual = {"arg": memory.argument, "out": memory.output, "alias": memory.alias, "temp": memory.temp}
    unstable = {field.rpartition(".")[2] for field in case_loader.unstable(name)}
    assert {k: v for k, v in actual.items() if k not in unstable} == {
        k: v for k, v in expected.items() if k not in unstable
    }
    assert memory.total == memory.argument + memory.output - memory.alias + memory.temp


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_compiled_alias_of_the_case(compiled: dict[str, Compiled], name: str) -> None:
    signature = lower_case(name).signature
    arguments = {leaf.position: leaf.index for leaf in signature.arguments if leaf.position is not None}
    results = {leaf.position: leaf.index for leaf in signature.results if leaf.position is not None}
    alias = compiled[f"{name} jax"].input_output_alias
    assert {arguments[a]: results[r] for a, r in alias.items()} == case_loader.expect(name)["xla_alias"]
    assert compiled[f"{name} none"].input_output_alias == {}
