"""What is read from a function before and after, and why it cannot be compiled when more than the pairs changed."""

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from donation_inspector.common.signature import Donation
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.exporter import Materializations
from donation_inspector.passes.effect import Effect, read_effect
from donation_inspector.passes.pipeline import apply_pipeline
from passes.programs import parse, parse_entry


def func(signature: str, *body: str) -> FuncOp:
    return entry_function(parse(f"func.func public @main{signature} {{\n" + "\n".join(body) + "\n}"))


T = "tensor<2xf32>"
SIGNATURE = f"(%a: {T}, %b: {T}, %c: tensor<i8>) -> ({T}, {T})"
MADE = f'%r, %s = "test.op"(%a) : ({T}) -> ({T}, {T})'
BEFORE = func(SIGNATURE, MADE, f"func.return %r, %s : {T}, {T}")


def materialize(name: str, source: str, dest: str) -> str:
    return f"{name} = bufferization.materialize_in_destination {source} in {dest} : ({T}, {T}) -> {T}"


def test_two_results_written_into_two_arguments() -> None:
    after = func(
        SIGNATURE,
        MADE,
        materialize("%m", "%s", "%a"),
        materialize("%n", "%r", "%b"),
        f"func.return %n, %m : {T}, {T}",
    )
    assert read_effect(BEFORE, after) == Effect(
        pairs=((1, 0), (0, 1)),
        materializations=Materializations(ops=((1, 0), (0, 1)), returned=(1, 0)),
        donation_left=Donation(),
        removed_results=(),
        stale_result_attributes=0,
        other_functions=(),
        why_not=None,
    )


def test_nothing_changed() -> None:
    effect = read_effect(BEFORE, BEFORE.clone())
    assert (effect.pairs, effect.compilable) == ((), True)
    assert effect.materializations == Materializations((), (None, None))


def test_one_value_at_two_positions_pairs_once_with_the_first() -> None:
    before = func(SIGNATURE, MADE, f"func.return %r, %r : {T}, {T}")
    after = func(
        SIGNATURE,
        MADE,
        materialize("%m", "%r", "%b"),
        materialize("%n", "%r", "%b"),
        f"func.return %n, %n : {T}, {T}",
    )
    effect = read_effect(before, after)
    assert effect.pairs == ((1, 0),)
    assert effect.materializations == Materializations(ops=((0, 1), (0, 1)), returned=(1, 1))
    assert effect.compilable


def test_flags_left_at_the_arguments() -> None:
    signature = (
        f"(%a: {T} {{tf.aliasing_output = 0 : i32}}, %b: {T}, %c: tensor<i8> {{jax.buffer_donor = true}}) -> ({T}, {T})"
    )
    after = func(signature, MADE, materialize("%m", "%r", "%b"), f"func.return %m, %s : {T}, {T}")
    effect = read_effect(func(signature, MADE, f"func.return %r, %s : {T}, {T}"), after)
    assert effect.donation_left == Donation({0: 0}, frozenset({2}))
    # the flag that the pass did not use would claim result 0 a second time
    assert effect.donation == Donation({1: 0}, frozenset({2}))
    assert effect.compilable


def flagged(*results: int | None) -> str:
    """The signature with these `tf.aliasing_output` at %a and %b."""
    flags = ["" if result is None else f" {{tf.aliasing_output = {result} : i32}}" for result in results]
    return f"(%a: {T}{flags[0]}, %b: {T}{flags[1]}, %c: tensor<i8>) -> ({T}, {T})"


RETURN = f"func.return %r, %s : {T}, {T}"


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        ((0, 1), (1, 0), ((1, 0), (0, 1))),
        ((None, None), (1, None), ((0, 1),)),
        # what it kept while it changed the other is its decision too
        ((0, 1), (0, None), ((0, 0),)),
        ((None, 1), (0, 1), ((0, 0), (1, 1))),
        ((0, 1), (None, None), ()),
        ((0, 1), (0, 1), ()),
    ],
)
def test_flags_that_the_pass_set_are_its_decision(
    before: tuple[int | None, ...], after: tuple[int | None, ...], pairs: tuple[tuple[int, int], ...]
) -> None:
    effect = read_effect(func(flagged(*before), MADE, RETURN), func(flagged(*after), MADE, RETURN))
    assert (effect.pairs, effect.why_not) == (pairs, None)
    assert effect.donation == Donation(dict(pairs))


def test_a_flag_at_an_argument_that_the_pass_added_is_no_pair() -> None:
    after = func(
        f"(%n: {T}, %a: {T}, %b: {T}, %c: tensor<i8> {{tf.aliasing_output = 1 : i32}}) -> ({T}, {T})",
        MADE,
        RETURN,
    )
    effect = read_effect(BEFORE, after)
    assert (effect.why_not, effect.pairs) == ("it changes the arguments of the function", ())


def test_a_flag_that_the_pass_set_beside_a_materialization() -> None:
    before = func(flagged(0, 1), MADE, RETURN)
    after = func(flagged(1, None), MADE, materialize("%m", "%r", "%b"), f"func.return %m, %s : {T}, {T}")
    assert read_effect(before, after).donation == Donation({0: 1, 1: 0})
    after = func(flagged(0, None), MADE, materialize("%m", "%r", "%b"), f"func.return %m, %s : {T}, {T}")
    assert read_effect(before, after).donation == Donation({1: 0})


@pytest.mark.parametrize(
    ("signature", "why_not"),
    [
        (flagged(9, 9), "it sets tf.aliasing_output = 9 at argument 0, but there is no result 9"),
        (flagged(-1, None), "it sets tf.aliasing_output = -1 at argument 0, but there is no result -1"),
        (flagged(1, 1), "it gives result 1 the buffers of two arguments, 0 and 1"),
        (
            f"(%a: {T}, %b: {T}, %c: tensor<i8> {{tf.aliasing_output = 0 : i32}}) -> ({T}, {T})",
            "it gives result 0, tensor<2xf32>, the buffer of argument 2, tensor<i8>",
        ),
    ],
)
def test_flags_that_cannot_be_are_told(signature: str, why_not: str) -> None:
    effect = read_effect(BEFORE, func(signature, MADE, RETURN))
    assert (effect.why_not, effect.compilable) == (why_not, False)
    assert all(0 <= result < 2 for _, result in effect.pairs)


def test_removed_results_keep_their_pair() -> None:
    after = func(
        f"(%a: {T}, %b: {T}, %c: tensor<i8>) -> {T}", MADE, materialize("%m", "%s", "%a"), f"func.return %r : {T}"
    )
    effect = read_effect(BEFORE, after)
    assert effect.pairs == ((0, 1),)
    assert effect.removed_results == (1,)
    assert effect.why_not == "it drops results from the function that the caller expects: 1"


OTHER_OP = f'%r, %s = "test.op"(%b) : ({T}) -> ({T}, {T})'
M = materialize("%m", "%r", "%a")


@pytest.mark.parametrize(
    ("after", "why_not", "pairs"),
    [
        (
            func(SIGNATURE, OTHER_OP, M, f"func.return %m, %s : {T}, {T}"),
            "it changes the program at operation 0, 'test.op'",
            ((0, 0),),
        ),
        (
            func(SIGNATURE, f"func.return %a, %b : {T}, {T}"),
            "it changes the program at operation 0, 'test.op'",
            (),
        ),
        (
            func(SIGNATURE, MADE, '"test.op"() : () -> ()', M, f"func.return %m, %s : {T}, {T}"),
            "it adds 'test.op' to the program",
            ((0, 0),),
        ),
        (func(SIGNATURE, MADE, f"func.return %s, %r : {T}, {T}"), "it returns other values", ()),
        (
            func(SIGNATURE, MADE, M, f"func.return %r, %m : {T}, {T}"),
            "it returns other values",
            ((0, 0),),
        ),
        (
            func(SIGNATURE, MADE, materialize("%m", "%r", "%s"), f"func.return %m, %s : {T}, {T}"),
            "it materializes into a value that is no argument of the function",
            (),
        ),
        (
            func(
                SIGNATURE,
                MADE,
                materialize("%m", "%r", "%a"),
                materialize("%n", "%s", "%a"),
                f"func.return %m, %n : {T}, {T}",
            ),
            "it writes two results, 0 and 1, into argument 0",
            ((0, 0),),
        ),
        (
            func(SIGNATURE, MADE, materialize("%m", "%b", "%a"), f"func.return %r, %s : {T}, {T}"),
            "it writes a value into argument 0 that the function does not return",
            (),
        ),
        (
            func(
                f'(%a: {T} {{mhlo.sharding = "x"}}, %b: {T}, %c: tensor<i8>) -> ({T}, {T})',
                MADE,
                f"func.return %r, %s : {T}, {T}",
            ),
            "it changes attributes of arguments or results besides donation",
            (),
        ),
        (
            func(f"(%a: {T}, %b: {T}) -> ({T}, {T})", MADE, f"func.return %r, %s : {T}, {T}"),
            "it changes the arguments of the function",
            (),
        ),
        (
            func(SIGNATURE, '"test.termop"()[^next] : () -> ()', "^next:", MADE, f"func.return %r, %s : {T}, {T}"),
            "it changes a function of several blocks",
            (),
        ),
    ],
)
def test_any_other_change_is_told(after: FuncOp, why_not: str, pairs: tuple[tuple[int, int], ...]) -> None:
    effect = read_effect(BEFORE, after)
    assert (effect.why_not, effect.compilable, effect.pairs) == (why_not, False, pairs)


def test_an_operation_that_gives_another_type_is_another_operation() -> None:
    signature = f"(%a: {T}) -> {T}"
    before = func(signature, '%x = "test.op"() : () -> i8', f"func.return %a : {T}")
    after = func(signature, '%x = "test.op"() : () -> i16', f"func.return %a : {T}")
    assert read_effect(before, after).why_not == "it changes the program at operation 0, 'test.op'"


def test_a_renamed_entry_function_has_another_signature() -> None:
    after = BEFORE.clone()
    after.properties["sym_name"] = type(after.sym_name)("other")
    assert read_effect(BEFORE, after).why_not == "it changes the signature of the function"


def test_another_attribute_of_the_function_is_told() -> None:
    after = BEFORE.clone()
    after.attributes["execution_thread"] = type(after.sym_name)("host")
    assert read_effect(BEFORE, after).why_not == "it changes attributes of the function"


def test_a_result_that_is_written_where_it_is_computed_is_a_pair() -> None:
    func, donation = parse_entry("""
        func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
          %0 = "stablehlo.add"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
          %1 = "stablehlo.add"(%0, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
          func.return %1 : tensor<2xf32>
        }
    """)
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    _, effect = apply_pipeline(module, donation, "reuse-donated-buffers")[:2]
    assert not effect.compilable
    assert effect.pairs == ((0, 0),)
