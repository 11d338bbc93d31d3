"""What xDSL or jaxlib's bindings have no words for comes back as it was, and as text that plain MLIR reads."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from donation_inspector.errors import IRError
from donation_inspector.ir import generic, source
from donation_inspector.ir.context import make_context
from donation_inspector.ir.exporter import to_jaxlib
from donation_inspector.ir.importer import import_module

SPARSE = """#CSC = #sparse_tensor.encoding<{
    map = (d0, d1) ->
      (d1 : dense, d0 : compressed)
}>
"""
BODIES = {
    "properties": '"some.op"(%a) <{kind = "}> (", n = 7 : i8, list = [{x = "\\22{"}, dense<[1, 2]> : vector<2xi8>]}> '
    "{d = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>",
    "properties and regions": '"some.loop"(%a) <{n = 2 : i64}> ({\n^b(%x: tensor<4xf32>):\n'
    '%y = "some.inner"(%x, %a) <{unit}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>\n'
    '"some.yield"(%y) : (tensor<4xf32>) -> ()\n}, {\n}) : (tensor<4xf32>) -> tensor<4xf32>',
    "an encoding of several lines": '"some.cast"(%a) : (tensor<4xf32>) -> tensor<2x2xf32, #CSC>\n'
    '%1 = "some.cast"(%0) : (tensor<2x2xf32, #CSC>) -> tensor<4xf32>',
    "a resource": "stablehlo.constant dense_resource<weights> : tensor<4xf32>",
}
RESOURCES = '{-# dialect_resources: { builtin: { weights: "0x040000000000803F0000004000004040000080C0" } } #-}'


def module(body: str) -> ir.Module:
    resources = RESOURCES if "weights" in body else ""
    last = "%1" if "%1" in body else "%0"
    return source.parse(
        f"{SPARSE}func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n%0 = {body}\n"
        f"return {last} : tensor<4xf32>\n}}\n{resources}"
    )


def told(made: ir.Module) -> str:
    return made.operation.get_asm(print_generic_op_form=True, use_local_scope=True)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_it_comes_back_and_plain_mlir_reads_what_is_written(body: str) -> None:
    original = module(body)
    imported = import_module(original)
    again = to_jaxlib(imported, imported.module.clone())
    assert again.operation.verify()
    assert told(again) == told(original)
    context = make_context()
    assert told(ir.Module.parse(generic.text(imported, imported.module), context=context)) == told(original)


def test_properties_of_a_branch_that_jaxlib_does_not_know_are_refused() -> None:
    imported = import_module(
        source.parse('func.func @main() {\n"some.br"()[^next] <{n = 1 : i8}> : () -> ()\n^next:\nreturn\n}')
    )
    with pytest.raises(IRError, match=r"'some.br' has properties and successors"):
        to_jaxlib(imported, imported.module)
