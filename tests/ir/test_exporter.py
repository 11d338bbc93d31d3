"""Changes onto clones: what JAX lowers with another donation, and what the real pass makes of the whole module."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir
from xdsl.transforms.jax_use_donated_arguments import JaxUseDonatedArguments

import case_loader
from donation_inspector.common.signature import Donation
from donation_inspector.errors import IRError
from donation_inspector.ir import source
from donation_inspector.ir.entry import entry_function, read_donation
from donation_inspector.ir.exporter import Materializations, to_jaxlib, with_donation, with_materializations
from donation_inspector.ir.importer import import_module
from ir import real_pass
from ir.programs import ENTRIES, GPT, lower, module, text

# in case 29 a function besides the entry has aliases, which the pass rewrites too: not to be shown by positions
_PASSED = tuple(name for name in ENTRIES if name not in (GPT, "29_exported_call"))


def _donation(original: ir.Module) -> Donation:
    return read_donation(entry_function(import_module(original).module))


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_stripped_is_jaxs_undonated_lowering(name: str) -> None:
    undonated = lower(name, donate_argnums=None, donate_argnames=None).compiler_ir()
    assert text(with_donation(module(name), Donation())) == text(undonated)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_same_donation_is_the_same_module(name: str) -> None:
    before = text(module(name), enable_debug_info=True)
    stripped = with_donation(module(name), Donation())
    again = with_donation(stripped, _donation(module(name)))
    assert again.operation.verify()
    assert text(again, enable_debug_info=True) == before
    assert text(module(name), enable_debug_info=True) == before, "never mutated"


@pytest.mark.parametrize("name", _PASSED)
def test_materializations_are_what_the_real_pass_makes(name: str) -> None:
    original = module(name)
    imported = import_module(original)
    function = entry_function(imported.module)
    everything = Donation(dict.fromkeys(range(len(function.args)), 0) if function.function_type.outputs else {})
    for donation in (_donation(original), everything):
        passed, left, materializations = real_pass.run(imported, donation)
        shown = with_materializations(original, left, materializations)
        assert _without_blobs(shown) == _without_blobs(passed)


def _without_blobs(module: ir.Module) -> list[str]:
    """xDSL does not carry the blobs that a file's resources have after the module."""
    return text(module).split("{-#")[0].strip().splitlines()


def test_one_value_returned_twice_is_materialized_twice() -> None:
    original = module("08_one_value_returned_twice")
    donation = Donation({0: 0, 1: 1})
    _, left, materializations = real_pass.run(import_module(original), donation)
    assert materializations.returned == (1, 1)
    assert len(materializations.ops) == 2
    shown = text(with_materializations(original, left, materializations))
    assert shown.count("bufferization.materialize_in_destination") == 2


def test_clones_compile_but_for_materializations_the_context_stays_closed() -> None:
    original = lower("04_swapped_outputs").compiler_ir()
    shown = with_materializations(original, Donation(), Materializations(((0, 0),), (0, None)))
    assert not original.context.allow_unregistered_dialects
    assert original.operation.verify()
    assert "bufferization" in text(shown)


@pytest.mark.parametrize(
    ("donation", "materializations", "message"),
    [
        (Donation({9: 0}), Materializations((), ()), r"no argument 9: there are 2, counted from 0"),
        (Donation(donors=frozenset({2})), Materializations((), ()), r"no argument 2: there are 2"),
        (Donation(), Materializations(((7, 0),), (0, None)), r"no result 7: there are 2"),
        (Donation(), Materializations(((0, 7),), (0, None)), r"no argument 7: there are 2"),
    ],
)
def test_positions_that_are_not_there(donation: Donation, materializations: Materializations, message: str) -> None:
    with pytest.raises(IRError, match=message):
        with_materializations(module("04_swapped_outputs"), donation, materializations)


def test_several_blocks_are_refused() -> None:
    with pytest.raises(IRError, match=r"@main has 3 blocks"):
        with_materializations(module("01_multiblock_cfg.mlir"), Donation(), Materializations(((0, 0),), (0,)))


def test_a_module_that_a_pass_changed() -> None:
    """The real pass on a clone, given back in memory, is what its text gives."""
    imported = import_module(module("01_adam_step"))
    donation = _donation(module("01_adam_step"))
    passed, left, materializations = real_pass.run(imported, donation)
    clone = imported.module.clone()
    JaxUseDonatedArguments().apply(imported.context, clone)
    assert text(to_jaxlib(imported, clone)) == text(passed)
    assert text(with_materializations(imported.origin, left, materializations)) == text(passed)


def test_an_entry_without_argument_attributes() -> None:
    original = source.parse("func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }")
    assert "{tf.aliasing_output = 0 : i32}" in text(with_donation(original, Donation({0: 0})))
    assert "tf.aliasing_output = 5 : i32, " not in text(with_donation(original, Donation()))
