"""A GPT-like training step with AdamW in plain JAX and optax; 24 layers of width 64 are about 19,000 operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

_VOCABULARY = 1000
_TOKENS = 32
_BATCH = 2
_HEADS = 4


def _initial(key: Any, layers: int, width: int) -> dict[str, Any]:
    keys = jax.random.split(key, layers * 6 + 2)

    def linear(key: Any, inputs: int, outputs: int) -> dict[str, Any]:
        return {"w": jax.random.normal(key, (inputs, outputs)) * 0.02, "b": jnp.zeros((outputs,))}

    def norm() -> dict[str, Any]:
        return {"g": jnp.ones(width), "b": jnp.zeros(width)}

    blocks = []
    for layer in range(layers):
        k = keys[layer * 6 : (layer + 1) * 6]
        blocks.append(
            {
                "ln1": norm(),
                "qkv": linear(k[0], width, 3 * width),
                "o": linear(k[1], width, width),
                "ln2": norm(),
                "up": linear(k[2], width, 4 * width),
                "down": linear(k[3], 4 * width, width),
            }
        )
    return {
        "emb": jax.random.normal(keys[-1], (_VOCABULARY, width)) * 0.02,
        "pos": jax.random.normal(keys[-2], (_TOKENS, width)) * 0.02,
        "blocks": blocks,
        "lnf": norm(),
    }


def _norm(p: Any, x: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * p["g"] + p["b"]


def _linear(p: Any, x: Any) -> Any:
    return x @ p["w"] + p["b"]


def _attention(p: Any, x: Any) -> Any:
    batch, tokens, width = x.shape

    def heads(a: Any) -> Any:
        return a.reshape(batch, tokens, _HEADS, width // _HEADS).transpose(0, 2, 1, 3)

    q, k, v = (heads(a) for a in jnp.split(_linear(p["qkv"], x), 3, -1))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(width // _HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e9)
    mixed = jax.nn.softmax(scores) @ v
    return _linear(p["o"], mixed.transpose(0, 2, 1, 3).reshape(batch, tokens, width))


def _model(p: Any, ids: Any) -> Any:
    x = p["emb"][ids] + p["pos"]
    for block in p["blocks"]:
        x = x + _attention(block, _norm(block["ln1"], x))
        x = x + _linear(block["down"], jax.nn.gelu(_linear(block["up"], _norm(block["ln2"], x))))
    return _norm(p["lnf"], x) @ p["emb"].T


def make(layers: int, width: int) -> tuple[Callable[..., Any], Any, Any, Any]:
    """`(train_step, params, opt_state, ids)` for a model of `layers` blocks, `width` wide (a multiple of 4)."""
    optimizer = optax.adamw(1e-3)

    def loss(p: Any, ids: Any) -> Any:
        logits = _model(p, ids)
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.roll(ids, -1, 1)).mean()

    def train_step(params: Any, opt_state: Any, ids: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, ids)
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    params = _initial(jax.random.key(0), layers, width)
    return train_step, params, optimizer.init(params), jnp.zeros((_BATCH, _TOKENS), jnp.int32)
