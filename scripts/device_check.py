"""On the device that is here: predicted, compiled and measured peak of three programs, as JSON.

Needs jax, numpy and xdsl, nothing else, and no installation: `python scripts/device_check.py` runs from the checkout.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "inspector"))
# The programs run in processes of their own: this one must leave them the device.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

import donation_inspector as di

Example = tuple[Callable[..., Any], Sequence[Any]]


def pair(size: int) -> Example:
    """Two arrays, each updated in place: donation saves both."""

    def step(a: Any, b: Any) -> tuple[Any, Any]:
        return a * 2 + 1, jnp.sin(b)

    array = jax.ShapeDtypeStruct((size, size), jnp.float32)
    return jax.jit(step, donate_argnums=(0, 1)), (array, array)


def adam(size: int) -> Example:
    """One Adam step on one square matrix: parameter and both moments are donated, the gradient is kept."""

    def step(p: Any, m: Any, v: Any, g: Any) -> tuple[Any, Any, Any]:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    array = jax.ShapeDtypeStruct((size, size), jnp.float32)
    return jax.jit(step, donate_argnums=(0, 1, 2)), (array,) * 4


def gpt(size: int) -> Example:
    """A train step of a small transformer with Adam: parameters and optimizer state are donated."""
    layers, heads, tokens, batch, vocabulary = 4, 4, 128, 4, 1000

    def shapes() -> dict[str, Any]:
        block = {"qkv": (size, 3 * size), "out": (size, size), "up": (size, 4 * size), "down": (4 * size, size)}
        tree = {"embed": (vocabulary, size), "position": (tokens, size), "blocks": [block] * layers}
        return jax.tree.map(
            lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32), tree, is_leaf=lambda leaf: isinstance(leaf, tuple)
        )

    def norm(x: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def attend(block: Any, x: Any) -> Any:
        q, k, v = jnp.split((x @ block["qkv"]).reshape(batch, tokens, 3 * heads, -1), 3, axis=2)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        mask = jnp.tril(jnp.ones((tokens, tokens), bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e30), axis=-1)
        return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, tokens, size) @ block["out"]

    def loss(params: Any, ids: Any) -> Any:
        x = params["embed"][ids] + params["position"]
        for block in params["blocks"]:
            x = x + attend(block, norm(x))
            x = x + jax.nn.gelu(norm(x) @ block["up"]) @ block["down"]
        logits = jax.nn.log_softmax(norm(x) @ params["embed"].T)
        return -jnp.take_along_axis(logits[:, :-1], ids[:, 1:, None], -1).mean()

    def step(params: Any, opt_state: Any, ids: Any) -> tuple[Any, Any, Any]:
        value, grads = jax.value_and_grad(loss)(params, ids)
        mu = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, opt_state["mu"], grads)
        nu = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, opt_state["nu"], grads)
        params = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, mu, nu)
        return params, {"mu": mu, "nu": nu}, value

    state = {"mu": shapes(), "nu": shapes()}
    ids = jax.ShapeDtypeStruct((batch, tokens), jnp.int32)
    return jax.jit(step, donate_argnums=(0, 1)), (shapes(), state, ids)


def row(name: str, example: Example, runs: int) -> dict[str, Any]:
    """What is predicted, compiled and measured of one program; unknown figures are null."""
    fn, arguments = example
    inspection = di.inspect(fn, *arguments)
    comparison = inspection.compare()
    measurement = inspection.measure(inputs="generated", runs=runs, timeout=300.0)
    variants: dict[str, Any] = {}
    for label, compiled in comparison.variants.items():
        measured = measurement.variants[label]
        variants[label] = {
            "compiled_total": None if compiled.memory is None else compiled.memory.total,
            "compiled_error": compiled.error,
            "predicted_by_the_executable_that_ran": measured.predicted,
            "measured_peak": measured.peak,
            "measured_spread": measured.spread,
            "seconds_a_call": measured.seconds,
            "measured_error": measured.error,
        }
    return {
        "program": name,
        "predicted_peak_in_program_order": inspection.program_memory.peak,
        "variants": variants,
        "outputs_equal": measurement.outputs_equal,
        "compiled_saved": comparison.saved("jax"),
        "measured_saved": measurement.saved("jax"),
    }


def count(text: str) -> int:
    """A number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


def heads(text: str) -> int:
    """A width that four attention heads share."""
    width = count(text)
    if width % 4:
        raise argparse.ArgumentTypeError(f"{text} is no multiple of 4, the number of heads")
    return width


def main() -> None:
    """Print one JSON object; bytes are those of all devices that the program runs on, which is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pair", type=count, default=8192, metavar="SIZE", help="side of its matrices (%(default)s)")
    parser.add_argument("--adam", type=count, default=8192, metavar="SIZE", help="side of its matrices (%(default)s)")
    parser.add_argument("--gpt", type=heads, default=768, metavar="WIDTH", help="its width (%(default)s)")
    parser.add_argument("--runs", type=count, default=3, help="measured calls of each variant (%(default)s)")
    sizes = parser.parse_args()
    device = jax.devices()[0]
    print(
        json.dumps(
            {
                "date": datetime.date.today().isoformat(),
                "device": device.device_kind,
                "platform": device.platform,
                "jax": jax.__version__,
                "programs": [
                    row("elementwise pair", pair(sizes.pair), sizes.runs),
                    row("adam", adam(sizes.adam), sizes.runs),
                    row("gpt step", gpt(sizes.gpt), sizes.runs),
                ],
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
