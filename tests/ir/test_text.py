"""Pretty text: jaxlib's own; the line of every operation; what is derived equals what is printed."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from donation_inspector.common.signature import Donation
from donation_inspector.errors import IRError
from donation_inspector.ir import native, source
from donation_inspector.ir.entry import entry_function, read_donation
from donation_inspector.ir.exporter import Materializations, with_donation, with_materializations
from donation_inspector.ir.importer import import_module
from donation_inspector.ir.text import Change, Text, diff, donated, materialized, pretty
from ir import real_pass
from ir.programs import ENTRIES, GPT, module

_ONE_BLOCK = [name for name in ENTRIES if name != "01_multiblock_cfg.mlir"]


def _printed(module: object) -> tuple[str, ...]:
    return tuple(module.operation.get_asm(large_elements_limit=16, assume_verified=True).splitlines())  # type: ignore[attr-defined]


def _same(derived: Text, printed: Text) -> None:
    assert derived.lines == printed.lines
    np.testing.assert_array_equal(derived.line_of_op, printed.line_of_op)
    assert derived.line_of_op.dtype == np.int32
    assert derived.line_of_entry == printed.line_of_entry


@pytest.mark.parametrize("name", ENTRIES)
def test_lines_of_operations(name: str) -> None:
    text = pretty(module(name))
    function = native.entry_operation(module(name))
    operations = [operation.operation for block in function.regions[0].blocks for operation in block.operations]
    assert text.lines == _printed(module(name))
    assert f"@{function.attributes['sym_name'].value}(" in text.lines[text.line_of_entry]
    assert len(text.line_of_op) == len(operations)
    assert (np.diff(text.line_of_op) > 0).all()
    for operation, line in zip(operations, text.line_of_op, strict=True):
        shown = text.lines[line]
        assert re.match(rf'    (%\S+(, %\S+)* = )?"?({re.escape(operation.name)}|{operation.name[5:]})\b', shown), shown
        results = shown.split(" = ")[0] if len(operation.results) else ""
        assert f":{len(operation.results)}" in results or len(operation.results) <= 1


@pytest.mark.parametrize("name", ENTRIES)
def test_donated_text_is_what_is_printed(name: str) -> None:
    original = module(name)
    text = pretty(original)
    arguments = len(entry_function(import_module(original).module).args) if name != GPT else 100
    donation = read_donation(entry_function(import_module(original).module)) if name != GPT else Donation({3: 5})
    half = Donation(dict.fromkeys(range(0, arguments, 2), 0), frozenset(range(1, arguments, 2)))
    for wanted in (donation, Donation(), half):
        assert donated(text, original, wanted).lines == _printed(with_donation(original, wanted))


@pytest.mark.parametrize("name", _ONE_BLOCK)
def test_materialized_text_is_what_is_printed(name: str) -> None:
    original = module(name)
    function = entry_function(import_module(original).module)
    arguments, results = len(function.args), len(function.function_type.outputs.data)
    if not arguments or not results:
        return
    everything = Materializations(
        (*((result, result % arguments) for result in range(results)), (0, arguments - 1)),
        tuple(result if result % 3 else None for result in range(results)),
    )
    text = donated(pretty(original), original, Donation({0: 0}))
    after = materialized(text, original, Donation(donors=frozenset({0})), everything)
    _same(after, pretty(with_materializations(original, Donation(donors=frozenset({0})), everything)))
    if name != GPT:
        assert diff(text, after) == diff(Text(text.lines, text.line_of_op, text.line_of_entry), after)


def test_the_diff_of_the_real_pass() -> None:
    original = module("20_read_after_update_copies")
    imported = import_module(original)
    before = pretty(original)
    donation = read_donation(entry_function(imported.module))
    passed, left, materializations = real_pass.run(imported, donation)
    after = materialized(before, original, left, materializations)
    changes = diff(before, after)
    assert [change.kind for change in changes] == ["changed", *["added"] * len(materializations.ops), "changed"]
    assert "tf.aliasing_output" in (changes[0].before or "")
    assert "tf.aliasing_output" not in (changes[0].after or "")
    assert after.lines == _printed(passed)
    assert diff(before, before) == ()
    assert diff(before, pretty(original)) == ()


def test_reduce_applies_is_one_line() -> None:
    text = pretty(module("04_nested_regions.mlir"))
    (line,) = [number for number in text.line_of_op if " stablehlo.reduce(" in text.lines[number]]
    assert "applies stablehlo.maximum" in text.lines[line]
    assert text.lines[line + 1].strip().startswith("return")


def test_numbers_in_strings_and_nested_regions() -> None:
    """New values push the numbers of nested ones, and nothing in a string."""
    original = source.parse("""
        func.func @main(%a: tensor<f32>, %n: tensor<i1>) -> (tensor<f32>, tensor<f32>) {
          %0 = stablehlo.negate %a : tensor<f32>
          %1 = "stablehlo.if"(%n) ({
            %2 = stablehlo.sine %0 {note = "%2 and %99 \\22%7"} : tensor<f32>
            %3 = "stablehlo.if"(%n) ({
              %5 = stablehlo.cosine %2 : tensor<f32>
              stablehlo.return %5 : tensor<f32>
            }, {
              stablehlo.return %2 : tensor<f32>
            }) : (tensor<i1>) -> tensor<f32>
            stablehlo.return %3 : tensor<f32>
          }, {
            stablehlo.return %0 : tensor<f32>
          }) : (tensor<i1>) -> tensor<f32>
          return %1, %0 : tensor<f32>, tensor<f32>
        }""")
    made = Materializations(((0, 0), (1, 0)), (1, 0))
    text = pretty(original)
    after = materialized(text, original, Donation(), made)
    _same(after, pretty(with_materializations(original, Donation(), made)))
    assert [change.kind for change in diff(text, after)] == ["added", "added", "changed"]
    assert diff(text, pretty(with_materializations(original, Donation(), made))) == diff(text, after)


def test_complex_constants_as_attributes() -> None:
    """jaxlib's bindings cannot return those, and abort the process when asked in one way."""
    original = source.parse("""
        module attributes {a.c = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>} {
          func.func @main(%a: f32 {a.c = dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>}) -> f32
            attributes {a.c = dense<(3.0, 2.0)> : tensor<2xcomplex<f64>>} { return %a : f32 }
        }""")
    made = Materializations(((0, 0),), (0,))
    shown = with_materializations(original, Donation({0: 0}), made)
    _same(materialized(pretty(original), original, Donation({0: 0}), made), pretty(shown))
    assert "".join(pretty(shown).lines).count("complex<f") == 3


def test_large_constants_are_elided() -> None:
    text = pretty(module("05_big_dense_hex.mlir"))
    assert max(map(len, text.lines)) < 200
    assert "dense_resource<__elided__>" in text.lines[text.line_of_op[0]]


def test_aliases_before_the_module() -> None:
    """Attribute aliases stand before `module`, and shift every line."""
    original = source.parse("""
        module {
          func.func private @first() { return }
          func.func @main(%a: memref<4xf32, affine_map<(d0) -> (d0 + 1)>>, %b: tensor<f32>) -> tensor<f32> {
            %0 = stablehlo.negate %b : tensor<f32>
            return %0 : tensor<f32>
          }
        }""")
    text = pretty(original)
    assert text.lines[0].startswith("#map")
    assert "@main" in text.lines[text.line_of_entry]
    assert [text.lines[line].split()[0] for line in text.line_of_op] == ["%0", "return"]


def test_operations_of_several_lines_without_regions() -> None:
    text = pretty(
        source.parse("""
        func.func @main(%a: i32) {
          cf.switch %a : i32, [
            default: ^bb1,
            7: ^bb2
          ]
        ^bb1:
          cf.br ^bb2
        ^bb2:
          return
        }""")
    )
    assert [text.lines[line].split()[0] for line in text.line_of_op] == ["cf.switch", "cf.br", "return"]


def test_no_entry_function() -> None:
    with pytest.raises(IRError, match="There is no function in this module"):
        pretty(module("14_empty_module.mlir"))


def test_several_blocks_cannot_be_materialized() -> None:
    original = module("01_multiblock_cfg.mlir")
    text = pretty(original)
    with pytest.raises(IRError, match="@main has 3 blocks"):
        materialized(text, original, Donation(), Materializations(((0, 0),), (0,)))
    assert materialized(text, original, Donation(), Materializations((), (None,))).lines != text.lines


@cache
def _scan() -> tuple[Text, list[str], int]:
    """A text with nested regions, the types of its results, the number of its arguments."""
    original = module("18_scan_cond_passthrough")
    function = entry_function(import_module(original).module)
    return pretty(original), [str(type) for type in function.function_type.outputs.data], len(function.args)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_materializations_of_a_scan(data: st.DataObject) -> None:
    original = module("18_scan_cond_passthrough")
    text, results, arguments = _scan()
    positions = st.integers(0, len(results) - 1)
    ops = data.draw(st.lists(st.tuples(positions, st.integers(0, arguments - 1)), max_size=5))
    returned: list[int | None] = []
    for type in results:
        fitting = [index for index, (value, _) in enumerate(ops) if results[value] == type]
        returned.append(data.draw(st.sampled_from([None, *fitting])))
    made = Materializations(tuple(ops), tuple(returned))
    donation = Donation(dict.fromkeys(data.draw(st.sets(st.integers(0, arguments - 1))), 0))
    after = materialized(text, original, donation, made)
    assert after.lines == _printed(with_materializations(original, donation, made))
    assert _applied(text, diff(text, after)) == _unnumbered(after.lines)


def _applied(text: Text, changes: tuple[Change, ...]) -> list[str]:
    lines: list[str | None] = list(text.lines)
    added = [change for change in changes if change.kind == "added"]
    for change in changes:
        if change.before_line is not None:
            lines[change.before_line] = change.after
    kept = [line for line in lines if line is not None]
    for change in added:
        assert change.after_line is not None
        kept.insert(change.after_line, change.after or "")
    return _unnumbered(kept)


def _unnumbered(lines: object) -> list[str]:
    return [re.sub(r"%\w+", "%", line) for line in lines]  # type: ignore[attr-defined]
