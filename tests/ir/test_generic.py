"""The written text is the module: xdsl-opt reads and prints it, jaxlib reads that, and it is what JAX lowered."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from jaxlib.mlir import ir
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.printer import Printer

from donation_inspector.ir import generic, location, opaque, resources, source
from donation_inspector.ir.context import make_context
from donation_inspector.ir.importer import import_module
from ir.programs import GPT, PARSEABLE, PROGRAMS, module, text
from ir.shell import as_a_new_process, xdsl_opt, xdsl_opt_from_the_shell
from ir.test_constants import constants_of_any_bits, import_constant
from ir.test_round_trip import ODD

# Those take xDSL's parser minutes. tests/inspection/test_write_mlir.py has a shorter GPT step, and all cases.
SMALLER = [name for name in PROGRAMS if name not in (GPT, "31_unrolled_200_layers")]
UNKNOWN_DIALECT = "19_unknown_dialect.mlir"
UNREADABLE = "état['w \"0\"']"
"""In 08: xDSL reads no location of a name that has both a quotation mark and letters beyond ASCII, so it is dropped."""


def write(original: ir.Module, folder: Path) -> Path:
    imported = import_module(original)
    path = folder / "written.mlir"
    path.write_text(generic.text(imported, imported.module))
    return path


def flags(name: str) -> list[str]:
    return ["--allow-unregistered-dialect"] if name == UNKNOWN_DIALECT else []


@pytest.mark.parametrize("name", SMALLER)
def test_xdsl_opt_loses_nothing(name: str, tmp_path: Path) -> None:
    path = write(module(name), tmp_path)
    printed = xdsl_opt(path, *flags(name), "--print-op-generic", "--print-debuginfo")
    again = source.parse(printed)
    assert text(again) == text(module(name))
    assert again.operation.verify()
    expected = [None if name == UNREADABLE else name for name in names(module(name))]
    assert names(again) == expected
    assert frames(again) == frames(module(name))


def names(module: ir.Module) -> list[str | None]:
    """Of each argument of a block: those of a function are the paths of the user's leaves."""
    imported = import_module(module).module
    blocks = (block for operation in imported.walk() for region in operation.regions for block in region.blocks)
    return [location.name(argument.location) for block in blocks for argument in block.args]


def frames(module: ir.Module) -> list[location.Source | None]:
    """The name stack of each operation and the user's line."""
    return [location.source(operation.location) for operation in import_module(module).module.walk()]


@pytest.mark.parametrize("name", [name for name in PARSEABLE if name != UNKNOWN_DIALECT])
def test_no_flag_is_needed_and_any_form_is_read(name: str, tmp_path: Path) -> None:
    assert text(source.parse(xdsl_opt(write(module(name), tmp_path)))) == text(module(name))


@settings(max_examples=150, deadline=None)
@given(constants_of_any_bits())
def test_constants_of_any_bits(made: tuple[str, Any]) -> None:
    """Read and printed by xDSL, twice, since passes are run one after the other from the shell."""
    imported, _ = import_constant(*made)
    written = generic.text(imported, imported.module)
    for read in (written, through_xdsl(through_xdsl(written))):
        # as `source.parse`, but not in a context of its own each time
        assert text(ir.Module.parse(resources.inlined(read), context=imported.origin.context)) == text(imported.origin)


def through_xdsl(written: str, allow_unregistered: bool = False) -> str:
    """As xdsl-opt reads and prints."""
    as_a_new_process()
    context = Context(allow_unregistered)
    for name, make in {"builtin": lambda: Builtin, "func": lambda: Func, **opaque.dialects()}.items():
        context.register_dialect(name, make)
    module = Parser(context, written).parse_module()
    module.verify()
    printed = io.StringIO()
    printer = Printer(printed)
    printer.print_op(module)
    printer.print_metadata(context.loaded_dialects)
    return printed.getvalue()


@pytest.mark.parametrize("attribute", ODD)
def test_attributes_of_any_kind(attribute: str) -> None:
    original = source.parse(
        f'"stablehlo.custom_call"() {{call_target_name = "acme", a = {attribute}}} : () -> ()\n'
        '{-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}'
    )
    imported = import_module(original)
    written = generic.text(imported, imported.module)
    assert text(source.parse(written)) == text(original)
    assert text(source.parse(through_xdsl(written, allow_unregistered=True))) == text(original)


def test_the_forms_of_constants() -> None:
    """Readable where xDSL reads it right; a splat stays one; what is long or misread is bytes, as MLIR has them."""
    original = source.parse("""
        func.func public @main() {
          %0 = stablehlo.constant dense<[1.5, -2.0]> : tensor<2xf32>
          %1 = stablehlo.constant dense<0.1> : tensor<4096xf64>
          %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %3 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
          return
        }""")
    imported = import_module(original)
    written = generic.text(imported, imported.module)
    assert "dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf32>" in written
    assert "dense<1.000000e-01> : tensor<4096xf64>" in written
    assert "dense<[true, false]> : tensor<2xi1>" in written
    assert "dense_resource<constant_0> : tensor<f32>" in written
    # without the inspector, MLIR reads the bytes that JAX lowered
    plain = ir.Module.parse(written, context=make_context())
    assert plain.operation.verify()
    assert resources.blobs(text(plain)) == {"constant_0": np.float32(-np.inf).tobytes()}


def test_a_long_splat_is_not_expanded_by_the_writer() -> None:
    original = source.parse("%0 = stablehlo.constant dense<true> : tensor<1000x1000xi1>")
    imported = import_module(original)
    assert "dense<true> : tensor<1000x1000xi1>" in generic.text(imported, imported.module)


def test_booleans_are_bytes_as_mlir_has_them() -> None:
    words = ", ".join(["true", "false"] * 10)
    original = source.parse(f"%0 = stablehlo.constant dense<[[{words}]]> : tensor<1x20xi1>")
    imported = import_module(original)
    written = generic.text(imported, imported.module)
    assert resources.blobs(written) == {"constant_0": bytes([1, 0] * 10)}
    assert text(source.parse(through_xdsl(written))) == text(original)


def test_resources_that_came_as_such_keep_their_bytes() -> None:
    """In bytecode they are not inlined, and their names may be those that the writer would give."""
    original = ir.Module.parse(
        """
        func.func public @main() -> (tensor<bf16>, tensor<2xf32>) {
          %0 = stablehlo.constant dense<0xFF80> : tensor<bf16>
          %1 = stablehlo.constant dense_resource<constant_0> : tensor<2xf32>
          return %0, %1 : tensor<bf16>, tensor<2xf32>
        }
        {-# dialect_resources: { builtin: { constant_0: "0x040000000000803F00000040" } } #-}
        """,
        context=make_context(),
    )
    imported = import_module(original)
    read = text(source.parse(through_xdsl(generic.text(imported, imported.module))))
    assert "dense<0xFF80> : tensor<bf16>" in read
    assert "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>" in read


def test_from_the_shell_without_a_flag(tmp_path: Path) -> None:
    """A call in a loop: with `--allow-unregistered-dialect` alone, xDSL looks for its function in the loop."""
    path = write(module("18_scan_cond_passthrough"), tmp_path)
    assert "func.call" in path.read_text()
    assert text(source.parse(xdsl_opt_from_the_shell(path))) == text(module("18_scan_cond_passthrough"))
