"""The steps that people have, on a small transformer: named by the framework's own paths, compared, and training on.

The names are written down here with the framework's own path of each, and hold that very array. Looking, in vain too,
changes nothing: the step then gives the same loss as that of a twin which nobody looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx, traverse_util

import donation_inspector as di
from donation_inspector.analysis.donation import Verdict
from donation_inspector.errors import TraceError
from donation_inspector.inspection import Inspection
from small_transformers import (
    TOKENS,
    WRONG_TOKENS,
    Transformer,
    linen_step,
    linen_training,
    nnx_shapes,
    nnx_step,
    nnx_step_of_both,
    nnx_training,
    optax_step,
    plain_training,
    split_step,
)

OF_MODEL = {
    ".embed.embedding": ("embed", "embedding"),
    ".blocks[0].norm.scale": ("blocks", 0, "norm", "scale"),
    ".blocks[0].attention.query.kernel": ("blocks", 0, "attention", "query", "kernel"),
    ".blocks[0].attention.out.bias": ("blocks", 0, "attention", "out", "bias"),
    ".blocks[0].mlp[0].kernel": ("blocks", 0, "mlp", 0, "kernel"),
    ".blocks[0].mlp[1].bias": ("blocks", 0, "mlp", 1, "bias"),
    ".norm.bias": ("norm", "bias"),
}
OF_OPTIMIZER = {
    ".step": ("step",),
    ".opt_state[0].count": ("opt_state", 0, "count"),
    ".opt_state[0].mu.embed.embedding": ("opt_state", 0, "mu", "embed", "embedding"),
    ".opt_state[0].nu.blocks[0].mlp[0].kernel": ("opt_state", 0, "nu", "blocks", 0, "mlp", 0, "kernel"),
}


def held_by_nnx(root: str, value: Any, paths: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """The arrays at these paths of `nnx.iter_graph`, by the names that they should have."""
    variables = {path: node for path, node in nnx.iter_graph(value) if isinstance(node, nnx.Variable)}
    return {root + name: variables[path].get_value() for name, path in paths.items()}


def inspected(expected: Mapping[str, Any], fn: Any, *args: Any) -> Inspection:
    """Looked at, with at least ten names that are each that of the very array."""
    inspection = di.inspect(fn, *args)
    values = inspection._subject.origin.values()
    named = {one.path: None if one.position is None else values[one.position] for one in inspection.arguments}
    assert len(expected) >= 10
    assert [name for name, array in expected.items() if named.get(name) is not array] == []
    return inspection


def compare(inspection: Inspection) -> None:
    """All that is donated has its result, called by it; XLA reuses all those bytes, and they are what is saved."""
    donated = [argument for argument in inspection.arguments if argument.donated]
    assert donated
    assert {argument.verdict for argument in donated} == {Verdict.ALIASED}
    assert [inspection.results[one.result].title for one in donated] == [f"{one.path}, updated" for one in donated]
    variants = inspection.compare().variants
    none, donating = variants["none"].memory, variants["jax"].memory
    assert none is not None
    assert donating is not None
    assert (none.alias, donating.alias) == (0, sum(argument.nbytes or 0 for argument in donated))
    assert donating.total < none.total


def in_vain(fn: Any, *args: Any) -> None:
    with pytest.raises(TraceError, match="cannot be traced"):
        di.inspect(fn, *args, WRONG_TOKENS)


def moved(before: Any, after: Any) -> bool:
    """Whether every parameter is another one now, and finite."""
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return all(bool(jnp.isfinite(new).all()) and not np.array_equal(old, new) for old, new in pairs)


def train_nnx(step: Callable[..., Any], model: Transformer, *rest: Any) -> float:
    """One step, after which every parameter that has a gradient is another one."""
    before = jax.tree.map(np.array, nnx.to_pure_dict(nnx.state(model, nnx.Param)))
    loss = float(step(*rest, TOKENS))
    after = nnx.to_pure_dict(nnx.state(model, nnx.Param))
    for state in (before, after):
        # Nothing depends on it: softmax does not see what is added to all scores alike.
        del state["blocks"][0]["attention"]["key"]["bias"]
    assert moved(before, after)
    return loss


@functools.cache
def nnx_loss() -> float:
    """Of the first step of a twin that nobody looked at."""
    model, optimizer = nnx_training()
    return float(nnx_step(model, optimizer, TOKENS))


def test_an_nnx_function() -> None:
    model, optimizer = nnx_training()
    expected = held_by_nnx("model", model, OF_MODEL) | held_by_nnx("optimizer", optimizer, OF_OPTIMIZER)

    compare(inspected(expected, nnx_step, model, optimizer, TOKENS))
    in_vain(nnx_step, model, optimizer)

    assert train_nnx(nnx_step, model, model, optimizer) == nnx_loss()


def test_an_nnx_method() -> None:
    model, optimizer = nnx_training()
    expected = held_by_nnx("self", model, OF_MODEL) | held_by_nnx("optimizer", optimizer, OF_OPTIMIZER)

    inspection = inspected(expected, model.train, optimizer, TOKENS)
    compare(inspection)
    in_vain(model.train, optimizer)

    assert inspection.name == "train"
    assert train_nnx(model.train, model, optimizer) == pytest.approx(nnx_loss(), rel=1e-6)


def test_nnx_shapes_alone() -> None:
    model, optimizer = nnx_shapes()
    expected = held_by_nnx("model", model, OF_MODEL) | held_by_nnx("optimizer", optimizer, OF_OPTIMIZER)

    inspection = di.inspect(nnx_step, model, optimizer, jax.ShapeDtypeStruct(TOKENS.shape, TOKENS.dtype))
    named = {one.path: (one.shape, one.dtype) for one in inspection.arguments}
    assert {name: named.get(name) for name in expected} == {
        name: (shape.shape, str(shape.dtype)) for name, shape in expected.items()
    }
    compare(inspection)
    in_vain(nnx_step, model, optimizer)

    real_model, real_optimizer = nnx_training()
    assert train_nnx(nnx_step, real_model, real_model, real_optimizer) == nnx_loss()
    assert all(isinstance(shape, jax.ShapeDtypeStruct) for shape in jax.tree.leaves(nnx.state(model)))


@pytest.mark.filterwarnings("ignore:.*ModelAndOptimizer:DeprecationWarning")
def test_an_nnx_optimizer_that_holds_the_model() -> None:
    model, _ = nnx_training()
    optimizer = nnx.ModelAndOptimizer(model, nnx_training()[1].tx)
    expected = held_by_nnx("optimizer.model", model, OF_MODEL) | held_by_nnx("optimizer", optimizer, OF_OPTIMIZER)

    inspection = inspected(expected, nnx_step_of_both, optimizer, TOKENS)
    in_vain(nnx_step_of_both, optimizer)

    assert len(inspection.donation.aliases) == len(inspection.arguments) - 1
    assert train_nnx(nnx_step_of_both, model, optimizer) == pytest.approx(nnx_loss(), rel=1e-6)


def test_nnx_split_and_merged_in_a_jax_jit() -> None:
    step = split_step()
    _, state = nnx.split(nnx_training())
    paths = {(0, *path): f"state[0]{_keys(path)}" for path in OF_MODEL.values()}
    paths |= {(1, *path): f"state[1]{_keys(path)}" for path in OF_OPTIMIZER.values()}
    variables = dict(nnx.to_flat_state(state))
    expected = {name: variables[path].get_value() for path, name in paths.items()}

    compare(inspected(expected, step, state, TOKENS))
    in_vain(step, state)

    before = jax.tree.map(np.array, nnx.to_pure_dict(state)[0]["embed"])
    state, loss = step(state, TOKENS)
    assert moved(before, nnx.to_pure_dict(state)[0]["embed"])
    assert float(loss) == pytest.approx(nnx_loss(), rel=1e-6)


def _keys(path: tuple[Any, ...]) -> str:
    """As State is indexed: ['blocks'][0]."""
    return "".join(f"[{key!r}]" for key in path)


def test_a_linen_train_state() -> None:
    state = linen_training()
    params = traverse_util.flatten_dict(state.params)
    mean = traverse_util.flatten_dict(state.opt_state[0].mu)
    expected = {f"state.params{_keys(path)}": array for path, array in params.items()}
    expected |= {f"state.opt_state[0].mu{_keys(path)}": array for path, array in mean.items()}
    expected |= {"state.step": state.step, "state.opt_state[0].count": state.opt_state[0].count}
    assert "state.params['block']['attention']['query']['kernel']" in expected

    compare(inspected(expected, linen_step, state, TOKENS))
    in_vain(linen_step, state)

    before = jax.tree.map(np.array, state.params["embed"])
    twin, loss = linen_step(linen_training(), TOKENS)
    state, same = linen_step(state, TOKENS)
    assert float(loss) == float(same)
    assert int(state.step) == int(twin.step) == 1
    assert moved(before, state.params["embed"])


def test_plain_optax() -> None:
    params, opt_state = plain_training()
    whole = {"params": params, "opt_state": opt_state}
    expected = {
        name + jax.tree_util.keystr(path): array
        for name, value in whole.items()
        for path, array in jax.tree_util.tree_flatten_with_path(value)[0]
    }
    assert "opt_state[0].mu['block']['up']['kernel']" in expected

    compare(inspected(expected, optax_step, params, opt_state, TOKENS))
    in_vain(optax_step, params, opt_state)

    before = jax.tree.map(np.array, params["embed"])
    *_, loss = optax_step(*plain_training(), TOKENS)
    params, opt_state, same = optax_step(params, opt_state, TOKENS)
    assert float(loss) == float(same)
    assert int(opt_state[0].count) == 1
    assert moved(before, params["embed"])
