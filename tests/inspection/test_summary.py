"""Inspection.to_dict: plain JSON with the figures that JAX and XLA themselves give."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.present import summary


@jax.jit
def halved(params: dict[str, Any], batch: Any) -> tuple[dict[str, Any], Any]:
    hidden = jnp.tanh(batch @ params["w"])
    return {"w": params["w"] * 0.5, "b": params["b"] + hidden.sum()}, hidden


STEP = jax.jit(halved, donate_argnames=("params", "batch"))
SHAPES = (
    {"w": jax.ShapeDtypeStruct((128, 64), jnp.float32), "b": jax.ShapeDtypeStruct((), jnp.float32)},
    jax.ShapeDtypeStruct((32, 128), jnp.float32),
)


@pytest.fixture(scope="module")
def compared() -> dict[str, Any]:
    inspection = di.inspect(STEP, *SHAPES)
    inspection.compare()
    return inspection.to_dict()


def test_it_is_plain_json(compared: dict[str, Any]) -> None:
    assert json.loads(json.dumps(compared, allow_nan=False)) == compared


def test_what_donates_is_what_jax_wrote(compared: dict[str, Any]) -> None:
    text = STEP.lower(*SHAPES).as_text()
    written = re.findall(
        r"%arg(\d): [^,{]*(?:\{tf.aliasing_output = (\d))?", text[text.index("@main") :].split("->")[0]
    )
    paths = ["params['b']", "params['w']", "batch"]
    results = [one["path"] for one in compared["results"]]
    assert [(one["path"], one["result"]) for one in compared["arguments"]] == [
        (paths[int(argument)], results[int(result)] if result else None) for argument, result in written
    ]
    assert [one["donated"] for one in compared["arguments"]] == [True, True, True]
    assert [one["verdict"] for one in compared["arguments"]] == ["aliased", "aliased", "unusable"]
    assert {one["path"]: one["argument"] for one in compared["results"]} == {
        "[0]['b']": "params['b']",
        "[0]['w']": "params['w']",
        "[1]": None,
    }
    leaves = jax.tree.leaves(SHAPES)
    assert [(one["shape"], one["dtype"], one["nbytes"]) for one in compared["arguments"]] == [
        (list(leaf.shape), str(leaf.dtype), leaf.size * leaf.dtype.itemsize) for leaf in leaves
    ]


def test_its_memory_is_what_xla_says(compared: dict[str, Any]) -> None:
    stats = STEP.lower(*SHAPES).compile().memory_analysis()
    assert stats is not None
    [comparison] = compared["comparisons"]
    jax_memory = comparison["variants"]["jax"]["memory"]
    assert jax_memory["argument"] == stats.argument_size_in_bytes
    assert jax_memory["output"] == stats.output_size_in_bytes
    assert jax_memory["alias"] == stats.alias_size_in_bytes
    assert jax_memory["temp"] == stats.temp_size_in_bytes
    assert comparison["variants"]["jax"]["input_output_alias"] == [
        {"argument": "params['b']", "result": "[0]['b']"},
        {"argument": "params['w']", "result": "[0]['w']"},
    ]
    assert (comparison["target"], comparison["here"]) == ("cpu", True)


def test_the_peak_adds_up(compared: dict[str, Any]) -> None:
    for variant in compared["comparisons"][0]["variants"].values():
        peak = variant["peak"]
        assert sum(peak["classes"].values()) == peak["nbytes"] == sum(one["nbytes"] for one in peak["contributors"])
        assert peak["nbytes"] + peak["fragmentation"] == variant["memory"]["total"]


def test_it_says_what_made_it(compared: dict[str, Any]) -> None:
    assert compared["program"] == "halved"
    assert compared["versions"] == {name: version(name) for name in ("jax", "jaxlib", "xdsl", "donation-inspector")}


def test_what_is_unknown_is_null() -> None:
    dynamic = di.inspect_ir("func.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }")
    found = dynamic.to_dict()
    assert (found["arguments"][0]["shape"], found["arguments"][0]["nbytes"]) == ([None], None)
    assert found["program_memory"]["unknown"] == 1
    assert (found["comparisons"], found["measurement"]) == ([], None)
    json.dumps(found, allow_nan=False)


def test_every_key_is_on_the_page_of_the_module(compared: dict[str, Any]) -> None:
    page = set(re.findall(r"[\w-]+", summary.__doc__ or ""))
    assert set(keys(compared)) - {str(role) for role in compared["comparisons"][0]["variants"]} <= page


def keys(value: Any) -> Iterator[str]:
    """Every key below, those that are data left out: the classes of the peak are named by their roles."""
    if isinstance(value, list):
        for one in value:
            yield from keys(one)
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            if key != "classes":
                yield from keys(one)
