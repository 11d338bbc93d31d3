"""What is said about a donor after XLA compiled it, on XLA's own answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from donation_inspector.analysis.donation import Argument, Result, Verdict, verdicts
from donation_inspector.analysis.donors import donor_outcome
from donation_inspector.common.signature import Donation, Leaf, Signature
from donation_inspector.xla.executable import compile_program
from donation_inspector.xla.lowering import lower

MESH = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))


def array(*spec: Any, shape: tuple[int, ...] = (16, 16), dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*spec)))


def gather(w: Any) -> Any:
    return jax.lax.all_gather(w, "x", tiled=True)


def compiled(
    function: Callable[..., Any], arguments: tuple[Any, ...], **options: Any
) -> tuple[tuple[Argument, ...], tuple[Result, ...], dict[int, int]]:
    lowered = lower(jax.jit(function, donate_argnums=tuple(range(len(arguments))), **options), arguments, {})
    answer, _ = compile_program(lowered.program())
    assert answer.status == "ok"
    leaf_at = {leaf.position: leaf.index for leaf in lowered.signature.arguments}
    alias = {leaf_at[argument]: result for argument, result in answer.input_output_alias.items()}
    donated = frozenset(range(len(arguments)))
    return *verdicts(lowered.signature, lowered.donation, donated=donated, warned=donated), alias


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], list[str | None]]] = {
    "reused": (lambda w: w + 1, (array("x"),), {}, ["XLA reused it for the result"]),
    "both reused": (
        lambda w, v: (w + 1, v * 2),
        (array("x"), array("y")),
        {},
        ["XLA reused it for result [0]", "XLA reused it for result [1]"],
    ),
    "reused for another shape": (
        lambda w: w.reshape(64) + 1,
        (jnp.ones((8, 8)),),
        {},
        ["XLA reused it for the result"],
    ),
    "sharded in another way": (
        jax.shard_map(gather, mesh=MESH, in_specs=P("x"), out_specs=P(), check_vma=False),
        (array("x"),),
        {},
        [
            "XLA did not reuse it: the result has as many bytes in all, and XLA sharded it in its own way or gave it "
            "another buffer"
        ],
    ),
    "another dtype": (
        lambda w: w.astype(jnp.float32) + 1,
        (jnp.ones((8, 8), jnp.bfloat16),),
        {},
        ["XLA did not reuse it: no result has as many bytes (128 B)"],
    ),
    "another dtype on several devices": (
        lambda w: w.astype(jnp.bfloat16),
        (array("x"),),
        {},
        ["XLA did not reuse it: no result is known to have as many bytes"],
    ),
    "two for one": (
        lambda w, v: w + v,
        (array("x"), array("x")),
        {},
        [
            "XLA reused it for the result",
            "XLA did not reuse it: the result, the only result of as many bytes, took the buffer of w",
        ],
    ),
    "none is a donor": (
        lambda w, v: w + v,
        (array("x"), array("x")),
        {"out_shardings": array("x").sharding},
        [None, None],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_the_sentence_is_what_the_compiled_module_says(name: str) -> None:
    function, given, options, expected = PROGRAMS[name]
    arguments, results, alias = compiled(function, given, **options)
    sentences = [donor_outcome(argument, arguments, results, alias) for argument in arguments]
    assert sentences == expected
    for argument, sentence in zip(arguments, sentences, strict=True):
        assert (sentence is not None) == (argument.verdict is Verdict.DONOR)


@pytest.mark.parametrize(
    ("alias", "sentence"),
    [
        ({}, "XLA did not reuse it: result [0] has as many bytes, but XLA gave it a buffer of its own"),
        (
            {1: 0, 2: 1},
            "XLA did not reuse it: all 2 results of as many bytes took other buffers, result [0] that of v",
        ),
    ],
)
def test_results_that_were_free_and_results_that_were_not(alias: dict[int, int], sentence: str) -> None:
    def leaf(index: int, path: str) -> Leaf:
        return Leaf(index, path, (8,), "float32", 32, (8,), 32, index)

    signature = Signature(tuple(map(leaf, range(3), "wvu")), (leaf(0, "[0]"), leaf(1, "[1]")))
    arguments, results = verdicts(
        signature, Donation(donors=frozenset({0, 1, 2})), donated=frozenset({0, 1, 2}), warned=frozenset()
    )
    assert donor_outcome(arguments[0], arguments, results, alias) == sentence
