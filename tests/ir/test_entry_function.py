"""What stands at the entry function: which it is, donation, names, and what is wrong with it."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

import case_loader
from donation_inspector.common.signature import Implicit
from donation_inspector.errors import IRError
from donation_inspector.ir import native, source
from donation_inspector.ir.entry import alias_problems, entry_function, read_donation, read_signature
from donation_inspector.ir.importer import import_module
from ir.programs import module


def _entry(name: str) -> FuncOp:
    return entry_function(import_module(module(name)).module)


def _written(text: str) -> FuncOp:
    return entry_function(import_module(source.parse(text)).module)


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_donation_of_the_cases(name: str) -> None:
    """JAX's outcome for each leaf, as the case's facts have it, in the order of the leaves that are kept."""
    donation = read_donation(_entry(name))
    function = _entry(name)
    user = [leaf.position for leaf in read_signature(function).arguments]
    first = len(read_signature(function).implicit_results)
    outcomes = [
        f"aliased to output {donation.aliases[position] - first}"
        if position in donation.aliases
        else "buffer_donor"
        if position in donation.donors
        else "nothing"
        for position in user
    ]
    kept = [fact["outcome"] for fact in case_loader.expect(name)["inputs"] if fact["outcome"] != "dropped (unused)"]
    assert outcomes == [outcome if outcome.startswith(("aliased", "buffer_donor")) else "nothing" for outcome in kept]


def test_main_or_the_only_public_function() -> None:
    assert _entry("20_no_main_generic_form.mlir").sym_name.data == "step"
    assert _entry("03_many_funcs_call.mlir").sym_name.data == "main"
    two = "func.func @f() { return }\nfunc.func @main() { return }"
    assert _written(two).sym_name.data == "main"
    assert _written("func.func private @f() { return }\nfunc.func @g() { return }").sym_name.data == "g"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {}", "There is no function in this module"),
        (
            "func.func @f() { return }\nfunc.func @g() { return }",
            r'public function but 2: @f, @g\. .* entry="f", .* --entry f',
        ),
        ("func.func private @f() { return }", "none that is public but 1: @f"),
        (
            "".join(f"func.func @f{number}() {{ return }}\n" for number in range(9)),
            "9: @f0, @f1, @f2, @f3, @f4 and 4 more",
        ),
        ("func.func private @main(tensor<2xf32>)", "@main is only declared here"),
    ],
)
def test_no_entry_function(text: str, message: str) -> None:
    with pytest.raises(IRError, match=message):
        _written(text)


@pytest.mark.parametrize("name", ["f", "main", "p"])
def test_the_function_that_somebody_chose(name: str) -> None:
    made = source.parse("func.func @f() { return }\nfunc.func @main() { return }\nfunc.func private @p() { return }")
    native.choose(made, name)
    assert entry_function(import_module(made).module).sym_name.data == name
    assert native.entry_operation(native.clone(made)).attributes["sym_name"].value == name


def test_a_choice_that_is_not_there_names_what_is() -> None:
    with pytest.raises(IRError, match=r"There is no function @x in this module, but 1: @f\. Choose with entry="):
        native.choose(source.parse("func.func @f() { return }"), "x")


def test_names_from_locations() -> None:
    signature = read_signature(_entry("08_names_and_locs.mlir"))
    assert [leaf.path for leaf in signature.arguments] == ["état['w \"0\"']", "パラメータ.kernel"]
    assert [leaf.root for leaf in signature.arguments] == ["état", "パラメータ"]
    assert [leaf.path for leaf in signature.results] == ["result['ключ'][0].\"q\""]
    assert [leaf.donated for leaf in signature.arguments] == [True, False]


def test_names_where_the_file_has_none_or_the_same_twice() -> None:
    signature = read_signature(
        _written("""
        func.func @main(%a: f32 loc("x"), %b: f32 loc("x"), %c: f32 loc("f.py":1:2), %d: f32 loc("args[1].w"(unknown)))
          -> (f32, f32 {jax.result_info = "result.y"}) { return %a, %b : f32, f32 }""")
    )
    assert [leaf.path for leaf in signature.arguments] == ["x", "arg1", "arg2", "args[1].w"]
    assert [leaf.root for leaf in signature.arguments] == ["x", "arg1", "arg2", "args[1]"]
    assert [leaf.path for leaf in signature.results] == ["result0", "result.y"]


def test_tokens_and_tuples_are_no_leaves() -> None:
    signature = read_signature(_entry("12_barrier_tuple_token.mlir"))
    assert signature.implicit_arguments == (
        Implicit(0, "token", "!stablehlo.token"),
        Implicit(2, "unknown", "tuple<tensor<8xf32>, tensor<i32>>"),
    )
    assert signature.implicit_results == (Implicit(0, "token", "!stablehlo.token"),)
    assert [(leaf.index, leaf.position, leaf.nbytes) for leaf in signature.arguments] == [(0, 1, 32)]
    assert [(leaf.index, leaf.position) for leaf in signature.results] == [(0, 1)]
    assert dict(read_donation(_entry("12_barrier_tuple_token.mlir")).aliases) == {1: 1}


def test_a_dimension_is_no_user_argument_and_dynamic_sizes_are_unknown() -> None:
    signature = read_signature(_entry("10_dynamic_shapes.mlir"))
    assert signature.implicit_arguments == (Implicit(0, "dimension", "tensor<i32>"),)
    (leaf,) = signature.arguments
    assert (leaf.shape, leaf.nbytes, leaf.nbytes_per_device, leaf.donated) == ((None, 16), None, None, True)


def test_no_arguments() -> None:
    signature = read_signature(_entry("02_no_args.mlir"))
    assert signature.arguments == ()
    assert [leaf.path for leaf in signature.results] == ["result"]


def test_each_bad_alias_is_told() -> None:
    problems = alias_problems(_entry("13_bad_alias_attrs.mlir"))
    assert problems == (
        "Argument 2 has both tf.aliasing_output = 7 and jax.buffer_donor: keep one of them.",
        "Argument 2 has tf.aliasing_output = 7, but there is no result 7: the function has 2 of them, counted from 0.",
        "Argument 3, tensor<8xi32>, is aliased to result 1, tensor<8xf32>: the types differ. XLA takes it only where "
        "both occupy the same bytes.",
        "Arguments 0 and 1 all claim the buffer of result 0: only one of them can have it.",
    )


def test_an_alias_of_unequal_size_is_told() -> None:
    function = _written("""
        func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8xf32> {
          %0 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }""")
    assert alias_problems(function) == (
        "Argument 0, tensor<4xf32>, is aliased to result 0, tensor<8xf32>: 16 and 32 bytes. XLA refuses buffers of "
        "unequal size.",
    )


def test_flags_that_are_no_numbers_are_told() -> None:
    function = _written("""
        func.func @main(%a: tensor<4xf32> {tf.aliasing_output = "x"}, %b: tensor<4xf32> {jax.buffer_donor})
            -> tensor<4xf32> {
          return %a : tensor<4xf32>
        }""")
    assert alias_problems(function) == (
        'Argument 0 has tf.aliasing_output = "x", which is not the number of a result.',
        "Argument 1 has jax.buffer_donor = unit, which is not true or false.",
    )


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_jax_writes_no_bad_alias(name: str) -> None:
    assert alias_problems(_entry(name)) == ()
