import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.transforms.jax_use_donated_arguments import JaxUseDonatedArguments

from analysis.functions import Generated, multi_block_functions, single_block_functions
from case_loader import CASE_NAMES
from donation_inspector.common.signature import Donation
from donation_inspector.errors import PassError
from donation_inspector.ir.entry import entry_function, read_donation
from donation_inspector.ir.importer import import_module
from donation_inspector.passes.flags import set_donation
from donation_inspector.passes.materialize_to_aliasing_output import MaterializeToAliasingOutput
from donation_inspector.passes.pipeline import apply_default, apply_pipeline, available
from donation_inspector.passes.pipeline import parse as parse_pipeline
from donation_inspector.xla.lowering import decide
from lowered_cases import lower_case
from passes.programs import parse, parse_entry, xdsl_pairs

DEFAULT = "jax-use-donated-arguments"


@pytest.mark.parametrize("name", CASE_NAMES)
def test_the_outline_pairs_as_xdsl_does_on_the_whole_modules_text(name: str) -> None:
    lowered = lower_case(name)
    module = import_module(lowered.module).module
    func = entry_function(module)
    everything = frozenset(leaf.index for leaf in lowered.signature.arguments)
    whole = parse(lowered.module.operation.get_asm(print_generic_op_form=True))
    for donation in (lowered.donation, decide(lowered, everything)):
        donated = whole.clone()
        set_donation(entry_function(donated), donation)
        effect = apply_default(func, donation)
        assert effect.pairs == xdsl_pairs(donated)
        assert effect.compilable
    assert read_donation(func) == lowered.donation


@pytest.mark.parametrize("name", ["04_swapped_outputs", "08_one_value_returned_twice", "29_exported_call"])
def test_the_whole_module_says_what_the_outline_says(name: str) -> None:
    lowered = lower_case(name)
    module = import_module(lowered.module).module
    before = str(module)
    after, effect = apply_pipeline(module, lowered.donation, DEFAULT)[:2]
    assert effect == apply_default(entry_function(module), lowered.donation)
    assert str(module) == before
    entry = str(entry_function(after))
    assert entry.count("bufferization.materialize_in_destination") == len(effect.materializations.ops)


@st.composite
def donations(draw: st.DrawFn, generated: Generated) -> Donation:
    positions = range(len(generated.func.args))
    aliased = [position for position in positions if draw(st.booleans())]
    donors = [position for position in positions if position not in aliased and draw(st.booleans())]
    return Donation({position: draw(st.integers(0, 3)) for position in aliased}, frozenset(donors))


@settings(deadline=None, max_examples=50)
@given(st.one_of(single_block_functions(), multi_block_functions()), st.data())
def test_on_generated_functions_too(generated: Generated, data: st.DataObject) -> None:
    donation = data.draw(donations(generated))
    func = generated.func
    module = ModuleOp([func])
    untouched = str(module)
    effect = apply_default(func, donation)
    assert str(module) == untouched

    donated = module.clone()
    set_donation(entry_function(donated), donation)
    assert effect.pairs == xdsl_pairs(parse(str(donated)))
    assert effect == apply_pipeline(module, donation, [JaxUseDonatedArguments()])[1]

    by_argument = dict(effect.pairs)
    assert len(by_argument) == len(effect.pairs) == len(set(by_argument.values()))
    assert set(by_argument) <= set(donation.aliases)
    returned = func.get_return_op()
    for argument, result in effect.pairs:
        assert returned is not None
        assert func.args[argument].type == returned.operands[result].type


WITH_FLAGS = """
func.func @main(%a: tensor<2xf32> {jax.name = "a", tf.aliasing_output = 0 : i32}, %b: tensor<2xf32>) -> tensor<2xf32> {
  %r = "test.op"(%a) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %r : tensor<2xf32>
}
"""


def test_what_is_given_counts_and_not_what_stands_at_the_function() -> None:
    func, _ = parse_entry(WITH_FLAGS)
    effect = apply_default(func, Donation({1: 0}, frozenset({0})))
    assert func.arg_attrs is not None
    assert str(func.arg_attrs.data[0]) == '{jax.name = "a", tf.aliasing_output = 0 : i32}'
    assert effect.pairs == ((1, 0),)
    assert effect.donation_left == Donation({}, frozenset({0}))
    assert effect.donation == Donation({1: 0}, frozenset({0}))


def test_nothing_donated_is_nothing_paired() -> None:
    func, _ = parse_entry(WITH_FLAGS)
    effect = apply_default(func, Donation())
    assert (effect.pairs, effect.materializations.ops, effect.compilable) == ((), (), True)


def test_a_result_that_is_materialized_already_stays_so() -> None:
    func, _ = parse_entry("""
        func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
          %r, %s = "test.op"(%a) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
          %m = bufferization.materialize_in_destination %r in %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
          func.return %m, %s : tensor<2xf32>, tensor<2xf32>
        }
    """)
    assert apply_default(func, Donation({1: 0})).pairs == ((1, 1),)


def test_another_function_that_the_pass_rewrites_is_told() -> None:
    func, donation = parse_entry("""
        func.func public @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
          %r = func.call @callee(%a) : (tensor<2xf32>) -> tensor<2xf32>
          func.return %r : tensor<2xf32>
        }
        func.func private @callee(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
          %r = "test.op"() : () -> tensor<2xf32>
          func.return %r : tensor<2xf32>
        }
        func.func private @unmatched(%a: tensor<3xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
          %r = "test.op"() : () -> tensor<2xf32>
          func.return %r : tensor<2xf32>
        }
    """)
    effect = apply_default(func, donation)
    assert effect.other_functions == ("@callee",)
    assert effect.compilable
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    assert apply_pipeline(module, donation, DEFAULT)[1] == effect


def test_the_decision_is_read_before_it_is_turned_into_aliases() -> None:
    func, _ = parse_entry(WITH_FLAGS)
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    donation = Donation({0: 0})
    after, effect = apply_pipeline(module, donation, f"{DEFAULT},materialize-to-aliasing-output")[:2]
    assert effect == apply_default(func, donation)
    assert read_donation(entry_function(after)) == donation
    assert "bufferization" not in str(after)


def test_whatever_else_changes_in_the_module_is_told() -> None:
    module = parse("""
        "acme.mesh"() {size = 1 : i32} : () -> ()
        func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
          func.return %a : tensor<2xf32>
        }
        func.func private @helper(%a: tensor<2xf32>) -> tensor<2xf32> {
          func.return %a : tensor<2xf32>
        }
    """)
    _, effect = apply_pipeline(module, Donation(), [Meddling()])[:2]
    assert effect.why_not == (
        "it changes more than the entry function: attributes of the module, 'acme.mesh' number 1, @helper, @added"
    )


class Meddling(ModulePass):
    name = "meddling"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        op.attributes["acme.meddled"] = UnitAttr()
        mesh, _, helper = op.ops
        mesh.attributes["size"] = UnitAttr()
        helper.detach()
        helper.erase()
        op.body.block.add_op(FuncOp.external("added", [], []))


def test_passes_may_be_given_as_objects() -> None:
    func, _ = parse_entry(WITH_FLAGS)
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    passes = [JaxUseDonatedArguments(remove_matched_outputs=True)]
    by_object = apply_pipeline(module, Donation({0: 0}), passes)[:2]
    by_name = apply_pipeline(module, Donation({0: 0}), f"{DEFAULT}{{remove-matched-outputs=true}}")[:2]
    assert str(by_object[0]) == str(by_name[0])
    assert by_object[1] == by_name[1]


def test_the_passes_of_xdsl_and_ours_are_there() -> None:
    names = available()
    assert names[DEFAULT]() is JaxUseDonatedArguments
    assert names["materialize-to-aliasing-output"]() is MaterializeToAliasingOutput
    assert {"canonicalize", "cse", "dce"} <= set(names)


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            "jax-use-donated-argument",
            "There is no pass 'jax-use-donated-argument'. Did you mean 'jax-use-donated-arguments'?",
        ),
        ("dce,dec", "There is no pass 'dec'. Did you mean 'dce'?"),
        ("qqqqqq", "There is no pass 'qqqqqq'. `xdsl-opt --help` lists those there are."),
        ("", "The pipeline is empty. Name at least one pass, such as 'jax-use-donated-arguments'."),
    ],
)
def test_a_pass_that_does_not_exist_names_the_near_ones(pipeline: str, message: str) -> None:
    with pytest.raises(PassError) as raised:
        parse_pipeline(pipeline)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (f"{DEFAULT}{{no-such-option=1}}", f"The options of '{DEFAULT}' are wrong: .*no_such_option"),
        (f"{DEFAULT}{{remove-matched-outputs=7}}", f"The options of '{DEFAULT}' are wrong: .*expected"),
        (f"{DEFAULT}{{", "The pipeline '.*' cannot be read: "),
        ("dce;cse", "The pipeline 'dce;cse' cannot be read: "),
    ],
)
def test_a_pipeline_that_cannot_be_read(pipeline: str, message: str) -> None:
    with pytest.raises(PassError, match=message):
        parse_pipeline(pipeline)


class Failing(ModulePass):
    name = "failing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        raise ZeroDivisionError("one by zero")


class Wordless(ModulePass):
    name = "wordless"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        raise AssertionError


class Breaking(ModulePass):
    name = "breaking"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        entry = entry_function(op)
        assert entry.body.block.last_op is not None
        entry.body.block.last_op.operands = [entry.args[0], entry.args[0]]


class Removing(ModulePass):
    name = "removing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        entry = entry_function(op)
        entry.detach()
        entry.erase()


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        (Failing(), "The pass 'failing' failed: ZeroDivisionError: one by zero"),
        (Wordless(), "The pass 'wordless' failed: AssertionError"),
        (Breaking(), "The pass 'breaking' left a module that does not verify: .*same types as the function output"),
        (Removing(), "The pipeline removed the entry function @main, so there is nothing to show."),
    ],
)
def test_a_pass_that_goes_wrong(failing: ModulePass, message: str) -> None:
    module = parse(WITH_FLAGS)
    before = str(module)
    with pytest.raises(PassError, match=message):
        apply_pipeline(module, Donation({0: 0}), [failing])
    assert str(module) == before


def test_an_error_shows_the_authors_own_line_and_an_invalid_module_the_operation() -> None:
    module = parse(WITH_FLAGS)
    with pytest.raises(PassError) as failed:
        apply_pipeline(module, Donation({0: 0}), [Failing()])
    assert f"{__file__}:{Failing.apply.__code__.co_firstlineno + 1}, in apply" in str(failed.value)
    assert 'raise ZeroDivisionError("one by zero")' in str(failed.value)
    with pytest.raises(PassError, match=r"at 'func\.return' in @main"):
        apply_pipeline(module, Donation({0: 0}), [Breaking()])


def test_each_pass_has_a_stage_that_begins_with_what_the_one_before_left() -> None:
    module = parse(WITH_FLAGS)
    run = apply_pipeline(module, Donation({0: 0}), f"{DEFAULT},reuse-donated-buffers,canonicalize")
    assert [one.module_pass.name for one in run.passes] == [DEFAULT, "reuse-donated-buffers", "canonicalize"]
    assert all(one.after is following.before for one, following in itertools.pairwise(run.passes))
    assert run.passes[-1].after is run.module


def test_a_value_returned_twice_is_aliased_once_and_the_other_pair_is_told() -> None:
    module = parse("""
        func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
          %r = "test.op"() : () -> tensor<2xf32>
          func.return %r, %r : tensor<2xf32>, tensor<2xf32>
        }
    """)
    run = apply_pipeline(module, Donation({0: 0, 1: 1}), f"{DEFAULT},materialize-to-aliasing-output")
    assert read_donation(entry_function(run.module)).aliases == {1: 0}
    second, stale = run.passes[-1].notes
    assert (second.code, second.argument) == ("dropped", 1)
    assert "result is not returned" in second.told
    assert (stale.argument, stale.told.partition(":")[0]) == (0, "loses tf.aliasing_output = 0")
