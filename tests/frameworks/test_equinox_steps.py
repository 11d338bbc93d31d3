"""Equinox steps, methods of `jax.jit` and an Exported on a small transformer: named, compared, and training on.

The names are the framework's own: the paths that JAX and `equinox.filter` give the parts of the user's values.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import donation_inspector as di
from donation_inspector.analysis.donation import Verdict
from donation_inspector.errors import TraceError
from donation_inspector.inspection import Inspection
from small_equinox import Transformer, equinox_step, equinox_training
from small_transformers import TOKENS, WRONG_TOKENS, optax_step
from small_transformers import plain_training as made_anew

MARKER = "eqx marker"


def own_paths(**values: Any) -> dict[str, Any]:
    """Every array of these values under the path that JAX gives it."""
    return {
        name + jax.tree_util.keystr(path): leaf
        for name, value in values.items()
        for path, leaf in jax.tree_util.tree_flatten_with_path(eqx.filter(value, eqx.is_array))[0]
    }


def named(inspection: Inspection) -> dict[str, Any]:
    """The array that each name stands for."""
    values = inspection._subject.origin.values()
    return {one.path: values[one.position] for one in inspection.arguments if one.position is not None}


def root(path: str) -> str:
    return path.partition("[")[0].partition(".")[0]


def same_arrays(inspection: Inspection, expected: dict[str, Any]) -> bool:
    found = named(inspection)
    return len(expected) >= 10 and all(found.get(name) is array for name, array in expected.items())


def compare(inspection: Inspection, roots: set[str], unnamed: str = "") -> None:
    """What is donated goes where its new value is; XLA reuses all those bytes and saves memory by it.

    `unnamed` is an argument of whose results nothing but the place is known: the first.
    """
    donated = [one for one in inspection.arguments if one.donated and one.verdict is Verdict.ALIASED]
    assert {root(one.path) for one in donated} == roots
    for one in donated:
        title = inspection.results[one.result].title
        own = one.path.replace(unnamed, "[0]") if root(one.path) == unnamed else f"{one.path}, updated"
        assert title in (own, MARKER)
    variants = inspection.compare().variants
    none, donating = variants["none"].memory, variants["jax"].memory
    assert none is not None
    assert donating is not None
    assert (none.alias, donating.alias) == (0, sum(one.nbytes or 0 for one in donated))
    assert donating.total < none.total


def copies(tree: Any) -> Any:
    return jax.tree.map(np.array, eqx.filter(tree, eqx.is_inexact_array))


def moved(before: Any, after: Any) -> bool:
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(copies(after)), strict=True)
    return all(np.isfinite(new).all() and not np.array_equal(old, new) for old, new in pairs)


@functools.cache
def untouched_loss() -> float:
    """Of the first step of a twin that nobody looked at."""
    model, opt_state = equinox_training()
    return float(equinox_step(TOKENS, model, opt_state)[2])


def trains_on(step: Callable[..., Any], model: Transformer, *rest: Any) -> bool:
    before = copies(model.embed)
    model, _, loss = step(*rest)
    return moved(before, model.embed) and float(loss) == pytest.approx(untouched_loss(), rel=1e-6)


def test_an_equinox_function() -> None:
    model, opt_state = equinox_training()
    expected = own_paths(model=model, opt_state=opt_state) | {"tokens": TOKENS}
    assert {"model.blocks[0].attention.query_proj.weight", "opt_state[0].mu.blocks[0].mlp.layers[0].bias"} < set(
        expected
    )

    inspection = di.inspect(equinox_step, TOKENS, model, opt_state)
    assert same_arrays(inspection, expected)
    compare(inspection, {"model", "opt_state"})
    with pytest.raises(TraceError, match="equinox_step cannot be traced"):
        di.inspect(equinox_step, WRONG_TOKENS, model, opt_state)

    assert trains_on(equinox_step, model, TOKENS, model, opt_state)


def test_what_equinox_adds_is_called_so_and_takes_a_buffer() -> None:
    model, opt_state = equinox_training()

    inspection = di.inspect(equinox_step, TOKENS, model, opt_state)

    marker = inspection.results[0]
    assert (marker.path, marker.added_by) == (MARKER, "eqx.filter_jit")
    assert marker.argument is not None
    assert inspection.arguments[marker.argument].path == "opt_state[0].count"


def test_an_equinox_method() -> None:
    model, opt_state = equinox_training()
    tokens = TOKENS + 0
    expected = own_paths(self=model, opt_state=opt_state) | {"tokens": tokens}

    inspection = di.inspect(model.train, opt_state, tokens)
    assert inspection.name == "Transformer.train"
    assert same_arrays(inspection, expected)
    assert {one.path for one in inspection.arguments if one.donated} == set(expected)
    compare(inspection, {"self", "opt_state"})

    assert trains_on(model.train, model, opt_state, tokens)
    assert model.embed.weight.is_deleted()


def test_equinox_with_shapes_alone() -> None:
    model, opt_state = eqx.filter_eval_shape(equinox_training)
    tokens = jax.ShapeDtypeStruct(TOKENS.shape, TOKENS.dtype)
    expected = {
        f"{root}{jax.tree_util.keystr(path)}": (shape.shape, str(shape.dtype))
        for root, value in (("model", model), ("opt_state", opt_state))
        for path, shape in jax.tree_util.tree_flatten_with_path(value)[0]
        if isinstance(shape, jax.ShapeDtypeStruct)
    }

    inspection = di.inspect(equinox_step, tokens, model, opt_state)
    found = {one.path: (one.shape, one.dtype) for one in inspection.arguments}
    assert len(expected) >= 10
    assert {name: found.get(name) for name in expected} == expected
    compare(inspection, {"model", "opt_state"})

    real_model, real_state = equinox_training()
    assert trains_on(equinox_step, real_model, TOKENS, real_model, real_state)


@pytest.mark.parametrize(
    ("donate", "roots"),
    [
        ("all", {"model", "opt_state"}),
        ("all-except-first", {"opt_state"}),
        ("warn", {"model", "opt_state"}),
        ("warn-except-first", {"opt_state"}),
        ("none", set[str]()),
    ],
)
def test_equinoxs_words_for_donation(donate: Any, roots: set[str]) -> None:
    model, opt_state = equinox_training()

    @eqx.filter_jit(donate=donate)
    def step(model: Any, opt_state: Any) -> Any:
        return model, opt_state

    inspection = di.inspect(step, model, opt_state)

    assert {root(one.path) for one in inspection.arguments if one.donated} == roots
    step(model, opt_state)
    gone = {name for name, leaf in own_paths(model=model, opt_state=opt_state).items() if leaf.is_deleted()}
    assert gone == {one.path for one in inspection.arguments if one.verdict is Verdict.ALIASED}


# ---- methods of jax.jit


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class TrainingState:
    """A pytree whose method updates it."""

    params: Any
    opt_state: Any

    @functools.partial(jax.jit, donate_argnums=0)
    def train(self, tokens: Any) -> Any:
        params, opt_state, loss = optax_step(self.params, self.opt_state, tokens)
        return TrainingState(params, opt_state), loss


class Trainer:
    """An object that JAX is told to hold static."""

    def __init__(self) -> None:
        self.params, self.opt_state = plain_training()

    @functools.partial(jax.jit, static_argnames="self", donate_argnames=("params", "opt_state"))
    def _train(self, params: Any, opt_state: Any, tokens: Any) -> Any:
        return optax_step(params, opt_state, tokens)

    def fit_one(self) -> float:
        self.params, self.opt_state, loss = self._train(self.params, self.opt_state, TOKENS)
        return float(loss)


original = functools.cache(made_anew)


def plain_training() -> tuple[Any, Any]:
    """Arrays of its own each time, as a step donates them."""
    return jax.tree.map(jnp.copy, original())


@functools.cache
def plain_loss() -> float:
    return float(optax_step(*plain_training(), TOKENS)[2])


def test_a_jax_jit_method_of_a_pytree() -> None:
    state = TrainingState(*plain_training())
    expected = own_paths(self=state) | {"tokens": TOKENS}
    assert "self.opt_state[0].nu['block']['up']['kernel']" in expected

    inspection = di.inspect(state.train, TOKENS)
    assert same_arrays(inspection, expected)
    compare(inspection, {"self"})

    before = copies(state.params["embed"])
    state, loss = state.train(TOKENS)
    assert float(loss) == pytest.approx(plain_loss(), rel=1e-6)
    assert moved(before, state.params["embed"])


def test_a_jax_jit_method_with_a_static_self() -> None:
    trainer = Trainer()
    expected = own_paths(params=trainer.params, opt_state=trainer.opt_state) | {"tokens": TOKENS}

    inspection = di.inspect(trainer._train, trainer.params, trainer.opt_state, TOKENS)
    assert same_arrays(inspection, expected)
    with di.watch() as watched:
        loss = trainer.fit_one()

    assert loss == pytest.approx(plain_loss(), rel=1e-6)
    assert watched.inspection.arguments == inspection.arguments


def test_a_partial_of_a_jitted_step() -> None:
    params, opt_state = plain_training()

    inspection = di.inspect(functools.partial(optax_step, params), opt_state, TOKENS)

    assert same_arrays(inspection, own_paths(params=params, opt_state=opt_state) | {"tokens": TOKENS})
    assert {root(one.path) for one in inspection.arguments if one.donated} == {"params", "opt_state"}


# ---- Exported


@functools.cache
def exported() -> Any:
    return export.export(optax_step)(*plain_training(), TOKENS)


def test_an_exported_step() -> None:
    params, opt_state = plain_training()
    expected = own_paths(params=params, opt_state=opt_state) | {"tokens": TOKENS}

    inspection = di.inspect(exported(), params, opt_state, TOKENS)
    assert inspection.name == "optax_step"
    assert same_arrays(inspection, expected)
    # an Exported knows nothing of a return statement, and parameters look like their gradients
    compare(inspection.donate("params", "opt_state"), {"params", "opt_state"}, unnamed="params")

    before = copies(params["embed"])
    new, _, loss = exported().call(params, opt_state, TOKENS)
    assert float(loss) == pytest.approx(plain_loss(), rel=1e-6)
    assert moved(before, new["embed"])


def test_a_call_of_an_exported_donates_nothing_and_that_is_told() -> None:
    params, opt_state = plain_training()

    inspection = di.inspect(exported(), params, opt_state, TOKENS)
    exported().call(params, opt_state, TOKENS)

    assert not any(one.donated for one in inspection.arguments)
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves((params, opt_state)))
    (note,) = inspection.notes
    assert note.startswith(
        "The exported function donates params, opt_state, but a call of an Exported donates nothing."
    )


def test_a_jit_of_its_call_donates() -> None:
    params, opt_state = plain_training()
    jitted = jax.jit(exported().call, donate_argnums=(0, 1))

    inspection = di.inspect(jitted, params, opt_state, TOKENS)
    jitted(params, opt_state, TOKENS)

    donated = {one.path for one in inspection.arguments if one.donated}
    assert donated == set(own_paths(params=params, opt_state=opt_state))
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves((params, opt_state)))
    assert inspection.notes == ()


def test_an_exported_alone_has_its_own_shapes_and_its_whole_program() -> None:
    inspection = di.inspect(exported())

    shapes = [(one.shape, one.dtype) for one in inspection.arguments]
    assert shapes == [(aval.shape, str(aval.dtype)) for aval in exported().in_avals]
    assert {one.path for one in inspection.arguments} == {
        *own_paths(params=plain_training()[0]),
        *own_paths(opt_state=plain_training()[1]),
        "tokens",
    }
    direct = di.inspect(optax_step, *plain_training(), TOKENS)
    # export gathers constants, nothing else
    for operation in ("dot_general", "divide", "add", "transpose"):
        assert entry(inspection).count(f"stablehlo.{operation}") == entry(direct).count(f"stablehlo.{operation}") > 0


def entry(inspection: Inspection) -> str:
    """The text of the entry function alone."""
    return inspection.ir.partition("func.func private")[0]


def test_sizes_that_are_not_fixed_need_arguments() -> None:
    (size,) = export.symbolic_shape("b")
    scale = export.export(jax.jit(lambda scale, x: scale + x.sum(0)))(
        jax.ShapeDtypeStruct((2,), "float32"), jax.ShapeDtypeStruct((size, 2), "float32")
    )

    with pytest.raises(TraceError, match=r"sizes that are not fixed: float32\[b,2\]\. .*inspect\(exported, \*args\)"):
        di.inspect(scale)

    x = jax.ShapeDtypeStruct((3, 2), "float32")
    inspection = di.inspect(scale, jax.ShapeDtypeStruct((2,), "float32"), x)
    assert [one.path for one in inspection.arguments] == ["scale", "x"]
    assert "tensor<?" not in inspection.ir


def test_an_exported_for_another_platform_is_told() -> None:
    there = export.export(jax.jit(lambda x: 2 * x), platforms=["tpu"])(TOKENS)

    with pytest.raises(TraceError, match=r"was exported for tpu, and this machine calls it on cpu.*inspect_ir\("):
        di.inspect(there)
    assert di.inspect_ir(there.mlir_module_serialized).arguments[0].path == "x"
