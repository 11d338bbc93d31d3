"""The shown text is the real pass's output, also where the pass rewrites more than the entry function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import export
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i32
from xdsl.passes import ModulePass
from xdsl.transforms.jax_use_donated_arguments import JaxUseDonatedArguments
from xdsl.utils.exceptions import DiagnosticException

import donation_inspector as di
from case_loader import CASE_NAMES
from donation_inspector.errors import PassError
from donation_inspector.ir.entry import entry_function
from inspection.test_cases import inspect_case


def exported_called_twice() -> di.Inspection:
    """What is called once is laid open where it is called; this stays a private function that donates."""
    size = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    again = export.export(jax.jit(lambda state: jnp.tanh(state @ state.T), donate_argnums=0))(size)
    return di.inspect(jax.jit(lambda state: again.call(again.call(state)), donate_argnums=0), size)


@pytest.mark.parametrize(
    "make", [partial(inspect_case, "01_adam_step"), exported_called_twice], ids=["adam", "exported called twice"]
)
def test_the_outline_shows_what_the_whole_module_shows(make: Callable[[], di.Inspection]) -> None:
    inspection = make()
    outlined = inspection.apply()
    # A pipeline of two is run on the whole module; running the pass again changes nothing.
    whole = inspection.apply("jax-use-donated-arguments,jax-use-donated-arguments")
    assert outlined.after == whole.after
    assert dict(outlined.pairs) == dict(whole.pairs)
    assert [(one.kind, one.after) for one in outlined.diff] == [(one.kind, one.after) for one in whole.diff]


def test_a_private_function_that_the_pass_rewrites_is_in_the_text() -> None:
    applied = exported_called_twice().apply()
    entry, _, private = applied.after.partition("func.func private")
    assert "materialize_in_destination" in entry
    assert "materialize_in_destination" in private
    assert any(diagnostic.code == "other-functions" for diagnostic in applied.diagnostics)


@dataclass(frozen=True)
class Idle(ModulePass):
    """A pass author's first: it only counts."""

    name = "idle"

    seen: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        assert len(list(op.walk())) > self.seen


@dataclass(frozen=True)
class Refusing(ModulePass):
    name = "refusing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        raise DiagnosticException(f"{len(op.ops)} functions and no plan")


@dataclass(frozen=True)
class Failing(ModulePass):
    name = "failing"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        raise KeyError("no such value")


@dataclass(frozen=True)
class Leaving(ModulePass):
    name = "leaving"

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        raise SystemExit(3)


@dataclass(frozen=True)
class Unattributed(ModulePass):
    """Takes the attributes of all arguments away, or only those of one that it adds; xDSL verifies both."""

    name = "unattributed"

    add: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        func = entry_function(op)
        if self.add:
            func.body.block.insert_arg(func.body.block.args[0].type, 0)
            func.update_function_type()
        else:
            func.arg_attrs = ArrayAttr([])


@pytest.mark.parametrize("name", [name for name in CASE_NAMES if name != "31_unrolled_200_layers"])
def test_a_pass_object_of_ones_own_runs_on_every_case(name: str) -> None:
    inspection = inspect_case(name)
    applied = inspection.apply(Idle(seen=2))
    assert applied.pipeline == "idle{seen=2}"
    assert (applied.after, dict(applied.pairs), applied.compilable) == (applied.before, {}, True)
    assert applied.diff == ()
    # beside another one, in a sequence or as its object alone, it changes nothing either
    assert inspection.apply([Idle(), JaxUseDonatedArguments()]).after == inspection.apply().after


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        (Refusing(), "The pass 'refusing' failed: 1 functions and no plan"),
        (Failing(), "The pass 'failing' failed: KeyError: 'no such value'"),
        (Leaving(), "The pass 'leaving' failed: SystemExit: 3"),
    ],
)
def test_a_pass_that_raises_is_one_clear_error_and_harms_nothing(failing: ModulePass, message: str) -> None:
    inspection = inspect_case("04_swapped_outputs")
    before = inspection.apply().after
    with pytest.raises(PassError) as raised:
        inspection.apply(failing)
    told, place, line = str(raised.value).splitlines()
    assert told == message
    assert place.startswith(f"  {__file__}:")
    assert line.strip().startswith("raise ")
    with pytest.raises(PassError) as raised:
        inspection.apply([JaxUseDonatedArguments(), failing])
    assert str(raised.value).splitlines()[0] == message
    assert inspection.apply().after == before


@pytest.mark.parametrize(("add", "counts"), [(False, "got 0, but expected 2"), (True, "got 2, but expected 3")])
def test_a_module_that_mlir_refuses_is_told_in_its_words_and_not_printed(add: bool, counts: str) -> None:
    """MLIR's printer reads beyond the end of such attributes, and the process dies."""
    inspection = inspect_case("04_swapped_outputs")
    with pytest.raises(PassError, match=f"argument attribute array to have the same number .*, {counts}"):
        inspection.apply([JaxUseDonatedArguments(), Unattributed(add)])
    with pytest.raises(PassError, match=counts):
        inspection.apply(Unattributed(add))


@dataclass(frozen=True)
class Flagging(ModulePass):
    """Pairs by `tf.aliasing_output`, as JAX itself writes it."""

    name = "flagging"

    a: int = 1
    b: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:  # noqa: ARG002
        results = [IntegerAttr(result, i32) for result in (self.a, self.b)]
        entry_function(op).arg_attrs = ArrayAttr([DictionaryAttr({"tf.aliasing_output": one}) for one in results])


def test_a_pass_that_pairs_by_flags_is_compiled_with_its_pairs() -> None:
    size = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    inspection = di.inspect(jax.jit(lambda a, b: (b + 1, a * 2), donate_argnums=(0, 1)), size, size)
    applied = inspection.apply(Flagging())
    assert (dict(applied.pairs), applied.compilable) == ({0: 1, 1: 0}, True)
    assert "no result" not in " ".join(one.message for one in applied.diagnostics)
    variants = inspection.compare(pipeline=Flagging()).variants
    # JAX's own order makes XLA copy one of the two; each result in its own argument's place needs nothing
    assert variants["pass"].memory is not None
    assert variants["jax"].memory is not None
    assert variants["pass"].memory.temp == 0
    assert variants["pass"].memory.total < variants["jax"].memory.total

    nowhere = inspection.apply(Flagging(9, 9))
    assert (dict(nowhere.pairs), nowhere.compilable) == ({}, False)
    assert nowhere.why_not == "it sets tf.aliasing_output = 9 at argument 0, but there is no result 9"
