"""Each diagnostic on a program where the real pass really does it."""

from xdsl.dialects.builtin import ModuleOp
from xdsl.transforms.jax_use_donated_arguments import JaxUseDonatedArguments

from donation_inspector.analysis.liveness import Liveness
from donation_inspector.common.signature import Signature
from donation_inspector.passes.hazards import Diagnostic, diagnose
from donation_inspector.passes.pipeline import apply_default, apply_pipeline
from passes.programs import named, parse_entry

T = "tensor<2xf32>"
A0, A1 = "{tf.aliasing_output = 0 : i32}", "{tf.aliasing_output = 1 : i32}"


def diagnostics(text: str, signature: Signature) -> tuple[Diagnostic, ...]:
    func, donation = parse_entry(text)
    effect = apply_default(func, donation)
    return diagnose(func, donation, effect, signature=signature, liveness=Liveness(func))


def test_a_clean_program_has_nothing_to_say() -> None:
    text = f"""
        func.func @main(%a: {T} {A0}, %x: {T}) -> {T} {{
          %g = "test.op"(%x) : ({T}) -> {T}
          %r = "test.op"(%a, %g) : ({T}, {T}) -> {T}
          func.return %r : {T}
        }}
    """
    assert diagnostics(text, named("params x", "result")) == ()


def test_pairs_that_differ_from_jaxs() -> None:
    text = f"""
        func.func @main(%a: {T} {A1}, %b: {T} {A0}) -> ({T}, {T}) {{
          %r, %s = "test.op"(%a, %b) : ({T}, {T}) -> ({T}, {T})
          func.return %r, %s : {T}, {T}
        }}
    """
    first, second = diagnostics(text, named("master params", "[0] [1]"))
    assert first == Diagnostic(
        "note",
        "differs-from-jax",
        "JAX pairs master with result [1]. The pass ignores the number in tf.aliasing_output, matches types in order, "
        "and pairs it with result [0].",
        argument=0,
        result=0,
    )
    assert (second.code, second.argument, second.result) == ("differs-from-jax", 1, 1)


def test_donors_are_ignored() -> None:
    text = f"""
        func.func @main(%a: {T} {{jax.buffer_donor = true}}) -> {T} {{
          %r = "test.op"(%a) : ({T}) -> {T}
          func.return %r : {T}
        }}
    """
    assert diagnostics(text, named("hits", "result")) == (
        Diagnostic(
            "note",
            "donor-ignored",
            "hits is left to XLA (jax.buffer_donor). The pass looks at tf.aliasing_output alone and does not use it.",
            argument=0,
        ),
    )


def test_one_value_returned_twice_is_written_twice_and_leaves_a_donor_unused() -> None:
    text = f"""
        func.func @main(%a: {T} {A0}, %b: {T} {A1}) -> ({T}, {T}) {{
          %r = "test.op"(%a, %b) : ({T}, {T}) -> {T}
          func.return %r, %r : {T}, {T}
        }}
    """
    twice, unused, differs = diagnostics(text, named("x spare", "['ema'] ['state']"))
    assert twice == Diagnostic(
        "warning",
        "returned-twice",
        "result ['ema'] and result ['state'] are one value. The pass writes it 2 times into spare and returns that "
        "buffer for all of them, though each result needs its own.",
        argument=1,
        result=0,
    )
    assert unused == Diagnostic(
        "warning",
        "left-unused",
        "x is donated, but the pass does not use it and does not say so: every result of its type went to other "
        "donated arguments.",
        argument=0,
    )
    assert differs.code == "differs-from-jax"


def test_a_swap_overwrites_before_it_reads() -> None:
    text = f"""
        func.func @main(%a: {T} {A0}, %b: {T} {A1}) -> ({T}, {T}) {{
          func.return %b, %a : {T}, {T}
        }}
    """
    assert diagnostics(text, named("a b", "[0] [1]")) == (
        Diagnostic(
            "error",
            "overwritten-before-read",
            "a is overwritten with result [0] before it is read for result [1]: carried out in place and in this "
            "order, result [1] gets the wrong value unless something copies first.",
            argument=0,
            result=1,
        ),
    )


def test_arguments_returned_in_place_are_no_swap() -> None:
    text = f"""
        func.func @main(%a: {T} {A0}, %b: {T} {A1}) -> ({T}, {T}) {{
          func.return %a, %b : {T}, {T}
        }}
    """
    assert diagnostics(text, named("a b", "[0] [1]")) == ()


def test_an_argument_overwritten_while_it_is_still_returned() -> None:
    text = f"""
        func.func @main(%a: {T} {A0}) -> ({T}, {T}) {{
          %r = "test.op"(%a) : ({T}) -> {T}
          func.return %r, %a : {T}, {T}
        }}
    """
    (found,) = diagnostics(text, named("x", "[0] [1]"))
    assert found == Diagnostic(
        "error",
        "overwritten-while-returned",
        "x is overwritten with result [0], but result [1] still returns x itself: it needs a copy that the pass does "
        "not make.",
        argument=0,
        result=1,
    )


def test_removed_outputs_leave_stale_attributes() -> None:
    func, donation = parse_entry(f"""
        func.func @main(%a: {T} {A0}) -> ({T} {{jax.result_info = "[0]"}}, tensor<i8> {{jax.result_info = "[1]"}}) {{
          %r, %s = "test.op"(%a) : ({T}) -> ({T}, tensor<i8>)
          func.return %r, %s : {T}, tensor<i8>
        }}
    """)
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    _, effect = apply_pipeline(module, donation, [JaxUseDonatedArguments(remove_matched_outputs=True)])[:2]
    (found,) = diagnose(func, donation, effect, signature=named("x", "[0] [1]"), liveness=Liveness(func))
    assert found == Diagnostic(
        "error",
        "stale-result-attributes",
        "remove_matched_outputs drops result [0] but not its attributes: 1 too many stand at the function, and MLIR "
        "refuses such a module.",
    )
    assert effect.why_not == "it drops results from the function that the caller expects: 0"


def test_a_function_of_several_blocks_passes_in_silence() -> None:
    text = f"""
        func.func @main(%a: {T} {A0}) -> {T} {{
          "test.termop"()[^next] : () -> ()
        ^next:
          %r = "test.op"(%a) : ({T}) -> {T}
          func.return %r : {T}
        }}
    """
    assert diagnostics(text, named("x", "result")) == (
        Diagnostic(
            "warning",
            "several-blocks",
            "The function has 2 blocks. The pass skips such a function without a word, so it uses none of the 1 "
            "donated arguments.",
        ),
    )


def test_a_type_that_no_result_has_passes_in_silence() -> None:
    text = f"""
        func.func @main(%a: tensor<2xi32> {A0}) -> {T} {{
          %r = "test.op"(%a) : (tensor<2xi32>) -> {T}
          func.return %r : {T}
        }}
    """
    assert diagnostics(text, Signature((), ())) == (
        Diagnostic(
            "warning",
            "left-unused",
            "%arg0 is donated, but the pass does not use it and does not say so: no result has its type.",
            argument=0,
        ),
    )


def test_types_that_match_but_take_other_bytes_on_each_device() -> None:
    text = f"""
        func.func @main(%a: {T} {A1}, %b: {T} {A0}) -> ({T}, {T}) {{
          %r, %s = "test.op"(%a, %b) : ({T}, {T}) -> ({T}, {T})
          func.return %r, %s : {T}, {T}
        }}
    """
    signature = named("master params", "[0] [1]", ({"master": 1}, {"[1]": 1}))
    errors = [found for found in diagnostics(text, signature) if found.severity == "error"]
    assert [(found.code, found.argument, found.result) for found in errors] == [
        ("per-device-size", 0, 0),
        ("per-device-size", 1, 1),
    ]
    assert errors[0].message == (
        "master and result [0] have one type, so the pass pairs them, but on each device they take 1 B and 8 B: "
        "XLA refuses this pair."
    )


def test_an_argument_that_is_read_after_its_result_was_computed() -> None:
    text = f"""
        func.func @main(%a: {T} {A0}) -> ({T}, tensor<i8>) {{
          %r = "test.op"(%a) : ({T}) -> {T}
          %norm = "test.op"(%a) : ({T}) -> tensor<i8>
          func.return %r, %norm : {T}, tensor<i8>
        }}
    """
    assert diagnostics(text, named("x", "[0] [1]")) == (
        Diagnostic(
            "note",
            "read-after",
            "x is still read by operation 1 after result [0] was computed by operation 0. In this order both are live "
            "at once, so taking over the buffer needs a copy.",
            argument=0,
            result=0,
        ),
    )


def test_the_pass_does_not_stop_at_the_entry_function() -> None:
    text = f"""
        func.func public @main(%a: {T}) -> {T} {{
          %r = func.call @callee(%a) : ({T}) -> {T}
          func.return %r : {T}
        }}
        func.func private @callee(%a: {T} {A0}) -> {T} {{
          %r = "test.op"() : () -> {T}
          func.return %r : {T}
        }}
    """
    assert diagnostics(text, named("x", "result")) == (
        Diagnostic(
            "warning",
            "other-functions",
            "The pass does not stop at the entry function: it rewrites @callee too.",
        ),
    )


def test_errors_come_first() -> None:
    text = f"""
        func.func @main(%d: tensor<i8> {{jax.buffer_donor = true}}, %a: {T} {A0}, %b: {T} {A1}) -> ({T}, {T}) {{
          func.return %b, %a : {T}, {T}
        }}
    """
    assert [found.severity for found in diagnostics(text, named("d a b", "[0] [1]"))] == ["error", "note"]


def test_a_pipeline_that_leaves_a_result_without_a_buffer_is_not_said_to_have_used_it() -> None:
    module_text = f"""
        func.func @main(%a: {T} {A0}) -> {T} {{
          %r = "test.op"(%a) : ({T}) -> {T}
          func.return %r : {T}
        }}
    """
    func, donation = parse_entry(module_text)
    module = ModuleOp([func.clone()])
    _, effect = apply_pipeline(module, donation, "canonicalize")[:2]
    (unused,) = diagnose(func, donation, effect, signature=named("x", "result"), liveness=Liveness(func))
    assert unused.code == "left-unused"
    assert unused.message.endswith("it leaves results of its type without a buffer.")


def test_another_pass_is_not_spoken_of_as_xdsls_own() -> None:
    text = f"""
        func.func @main(%a: {T} {A1}, %b: {T} {A0}, %c: {T} {{jax.buffer_donor = true}}) -> ({T}, {T}) {{
          %r = "test.op"(%a) : ({T}) -> {T}
          %s = "test.op"(%b, %c) : ({T}, {T}) -> {T}
          func.return %s, %r : {T}, {T}
        }}
    """
    func, donation = parse_entry(text)
    module = func.parent_op()
    assert isinstance(module, ModuleOp)
    _, effect = apply_pipeline(module, donation, "donate-by-live-range")[:2]
    signature = named("master params scratch", "[0] [1]")
    found = diagnose(
        func, donation, effect, signature=signature, liveness=Liveness(func), pipeline="donate-by-live-range"
    )
    unpaired = {0, 1, 2} - {argument for argument, _ in effect.pairs}
    left = {one.argument: one.message for one in found if one.code == "left-unused"}
    assert unpaired
    assert left == {
        argument: f"{('master', 'params', 'scratch')[argument]} is donated; the pass pairs it with no result and "
        "leaves it to XLA (jax.buffer_donor)."
        for argument in unpaired
    }
    assert not any("matches types" in one.message or "does not use it" in one.message for one in found)
