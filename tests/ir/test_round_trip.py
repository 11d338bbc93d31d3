"""What the importer makes of a module is that module: jaxlib prints it the same afterwards, xDSL parses it the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from jaxlib.mlir import ir
from xdsl.dialects.builtin import DenseResourceAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.parser import Parser

from donation_inspector.ir import source
from donation_inspector.ir.bridge.attributes import AttributesToXdsl
from donation_inspector.ir.bridge.locations import LocationsToXdsl
from donation_inspector.ir.dialect import VerbatimAttr, VerbatimType
from donation_inspector.ir.exporter import to_jaxlib
from donation_inspector.ir.importer import Imported, import_module
from ir.programs import GPT, PROGRAMS, module, text


@pytest.mark.parametrize("name", PROGRAMS)
def test_jaxlib_prints_the_same_module(name: str) -> None:
    original = module(name)
    imported = import_module(original)
    again = to_jaxlib(imported, imported.module)
    assert text(again) == text(original)
    assert text(again, enable_debug_info=True) == text(original, enable_debug_info=True)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in (GPT, "31_unrolled_200_layers")])
def test_xdsl_parses_the_same_module(name: str) -> None:
    imported = import_module(module(name))
    imported.module.verify()
    generic = text(module(name), print_generic_op_form=True)
    parsed = Parser(imported.context, generic).parse_module()
    assert _operations(imported.module) == _operations(parsed)


def _operations(module: Operation) -> list[tuple[object, ...]]:
    """Each operation, told without the constants that xDSL misreads or expands."""
    numbers: dict[object, int] = {}
    told: list[tuple[object, ...]] = []

    def number(what: object) -> int:
        return numbers.setdefault(what, len(numbers))

    for operation in module.walk():
        name = operation.op_name.data if isinstance(operation, UnregisteredOp) else operation.name
        told.append(
            (
                name,
                [number(value) for value in operation.operands],
                [(number(value), str(value.type)) for value in operation.results],
                [[_block(block, number) for block in region.blocks] for region in operation.regions],
                [number(block) for block in operation.successors],
                {key: _told(value) for key, value in operation.properties.items()},
                {key: _told(value) for key, value in operation.attributes.items()},
            )
        )
    return told


def _block(block: Block, number: object) -> object:
    assert callable(number)
    return number(block), [(number(argument), str(argument.type)) for argument in block.args]


def _told(attribute: Attribute) -> str:
    if str(attribute).startswith(("dense<", "dense_resource<")):
        return "a constant"
    return str(attribute)


def _forgetful(imported: Imported) -> Imported:
    """Without the memory of what was made from what: everything is built from what xDSL holds."""
    attributes = AttributesToXdsl(imported.context)
    attributes.constants.update(imported.constants)
    return replace(imported, attributes=attributes, locations=LocationsToXdsl())


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in (GPT, "31_unrolled_200_layers")])
def test_what_xdsl_holds_is_enough(name: str) -> None:
    """A pass's own attributes, equal to the importer's or not, are written out and read by MLIR."""
    imported = import_module(module(name))
    again = to_jaxlib(_forgetful(imported), imported.module)
    assert text(again) == text(module(name))
    # written out in place, for the numbers of the aliases may differ
    written = {"enable_debug_info": True, "use_local_scope": True, "large_elements_limit": 16}
    assert text(again, **written) == text(module(name), **written)


def test_forward_references_across_blocks() -> None:
    """A dominating definition may stand later in the text than its use."""
    original = source.parse("""
        func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
          cf.br ^bb2
        ^bb1:
          %1 = stablehlo.add %0, %0 : tensor<4xf32>
          return %1 : tensor<4xf32>
        ^bb2:
          %0 = stablehlo.negate %arg0 : tensor<4xf32>
          cf.br ^bb1
        }""")
    imported = import_module(original)
    assert text(to_jaxlib(imported, imported.module)) == text(original)
    assert original.operation.verify()


ODD = (
    'dense<["a", "b"]> : tensor<2x!foo.str>',
    "sparse<[[0, 0]], [1.0]> : tensor<3x4xf32>",
    "0x7FC00001 : f32",
    "0xFF800000 : f32",
    "0x7F800001 : f32",
    "0x7C01 : f16",
    "array<f32: 0xFF800000, 0x7F800001>",
    "-0.0 : f64",
    "0x7F : f8E4M3FN",
    "1.0 : tf32",
    "-5 : si8",
    "255 : ui8",
    '"\\00\\FFbinary"',
    '"\\22quoted\\5C"',
    "array<i1: true, false>",
    "array<i32>",
    "@outer::@inner",
    "unit",
    "none",
    "tensor<3xf32, #foo.layout>",
    "tensor<*xf32>",
    "tuple<tensor<2xf32>, !foo.str>",
    "strided<[1, ?], offset: 3>",
    "affine_map<(d0)[s0] -> (d0 + s0)>",
    "affine_set<(d0) : (d0 >= 0)>",
    '#foo.layout<"(" nested = [{<(1)>}]>',
    "#stablehlo<precision HIGHEST>",
    "dense<(1.0, 0x7FC00000)> : tensor<complex<f32>>",
    "{inner = dense<(1.0, 2.0)> : tensor<2xcomplex<f64>>, list = [1 : i32, #foo.x]}",
    "[dense<(1.0, 2.0)> : tensor<2xcomplex<f64>>, 1 : i32]",
    "dense<[(1.0, 2.0), (0x7FC00001, -0.0)]> : tensor<2xcomplex<f32>>",
    "dense<> : tensor<0x3xcomplex<f32>>",
    "dense<[1, 2]> : vector<2xi32>",
    "dense<[1, 2]> : tensor<2xindex>",
    "dense_resource<blob> : tensor<2xf32>",
    "dense<[-8, 7]> : tensor<2xi4>",
    "dense<[1, 3]> : tensor<2xui2>",
    "dense<> : tensor<0xf32>",
    "dense<[1.0, 0xFFC1, 0x7F80]> : tensor<3xbf16>",
    "dense<123> : tensor<2xi128>",
)


@pytest.mark.parametrize("attribute", ODD)
def test_every_attribute_comes_back(attribute: str) -> None:
    original = source.parse(
        f'"acme.op"() {{a = {attribute}}} : () -> ()\n'
        '{-# dialect_resources: { builtin: { blob: "0x040000000000803F00000040" } } #-}'
    )
    imported = import_module(original)
    assert text(to_jaxlib(imported, imported.module.clone())) == text(original)
    assert text(to_jaxlib(_forgetful(imported), imported.module)) == text(original)


def test_what_xdsl_cannot_represent_is_kept_verbatim() -> None:
    imported = import_module(
        source.parse('%0 = "acme.op"() {a = strided<[1], offset: 3>} : () -> tensor<2x!quant.any<i8:f32>>\n')
    )
    kept = [known for known in _known(imported) if isinstance(known, VerbatimAttr | VerbatimType)]
    assert all(known.text.data for known in kept)


def _known(imported: Imported) -> list[Attribute]:
    return [*imported.attributes.attributes.values(), *imported.attributes.types.values()]


def test_large_constants_are_kept_aside_and_shared() -> None:
    original = source.parse("""
        func.func public @main() -> (tensor<4096xf32>, tensor<4096xf32>, tensor<99xcomplex<f32>>) {
          %0 = stablehlo.constant dense<0.000000e+00> : tensor<4096xf32>
          %1 = stablehlo.constant dense<0.000000e+00> : tensor<4096xf32>
          %2 = stablehlo.constant dense<(0.000000e+00,1.000000e+00)> : tensor<99xcomplex<f32>>
          return %0, %1, %2 : tensor<4096xf32>, tensor<4096xf32>, tensor<99xcomplex<f32>>
        }""")
    imported = import_module(original)
    assert sorted(str(constant) for constant in imported.constants.values()) == [
        "dense<(0.000000e+00,1.000000e+00)> : tensor<99xcomplex<f32>>",
        "dense<0.000000e+00> : tensor<4096xf32>",
    ]
    handles = {
        value.resource_handle.data
        for operation in imported.module.walk()
        for value in operation.properties.values()
        if isinstance(value, DenseResourceAttr)
    }
    assert handles == set(imported.constants)


def test_the_original_and_its_context_stay_as_they_are() -> None:
    original: ir.Module = module("18_scan_cond_passthrough")
    before = text(original, enable_debug_info=True)
    allowed = original.context.allow_unregistered_dialects
    imported = import_module(original)
    to_jaxlib(imported, imported.module)
    assert text(original, enable_debug_info=True) == before
    assert original.context.allow_unregistered_dialects == allowed
    assert original.operation.verify()
