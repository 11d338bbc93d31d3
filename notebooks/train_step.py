"""A real training step to look at: a GPT-like transformer in plain JAX, trained with optax's AdamW."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

HEADS = 4
VOCABULARY = 1000
SEQUENCE = 32
BATCH = 2

Tree = dict[str, Any]

optimizer = optax.adamw(3e-4)


class Example(NamedTuple):
    """The arguments of one call of `train_step`."""

    params: Tree
    opt_state: optax.OptState
    tokens: jax.Array


def _dense(key: jax.Array, inputs: int, outputs: int) -> Tree:
    return {"w": 0.02 * jax.random.normal(key, (inputs, outputs)), "b": jnp.zeros(outputs)}


def _norm(width: int) -> Tree:
    return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}


def _block(key: jax.Array, width: int) -> Tree:
    qkv, out, up, down = jax.random.split(key, 4)
    return {
        "attention_norm": _norm(width),
        "qkv": _dense(qkv, width, 3 * width),
        "out": _dense(out, width, width),
        "mlp_norm": _norm(width),
        "up": _dense(up, width, 4 * width),
        "down": _dense(down, 4 * width, width),
    }


def example(layers: int = 4, width: int = 768, seed: int = 0) -> Example:
    """Fresh parameters, optimizer state and one batch of random tokens."""
    embed, position, tokens, *blocks = jax.random.split(jax.random.key(seed), layers + 3)
    new_block = jax.jit(_block, static_argnames="width")
    params = {
        "embed": 0.02 * jax.random.normal(embed, (VOCABULARY, width)),
        "position": 0.02 * jax.random.normal(position, (SEQUENCE, width)),
        "blocks": [new_block(key, width=width) for key in blocks],
        "norm": _norm(width),
    }
    return Example(params, optimizer.init(params), jax.random.randint(tokens, (BATCH, SEQUENCE), 0, VOCABULARY))


def _apply_dense(p: Tree, x: jax.Array) -> jax.Array:
    return x @ p["w"] + p["b"]


def _apply_norm(p: Tree, x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + 1e-5) * p["scale"] + p["bias"]


def _attend(block: Tree, x: jax.Array) -> jax.Array:
    batch, length, width = x.shape
    qkv = _apply_dense(block["qkv"], x).reshape(batch, length, 3, HEADS, width // HEADS)
    query, key, value = jnp.moveaxis(qkv, 2, 0)
    attended = jax.nn.dot_product_attention(query, key, value, is_causal=True)
    return _apply_dense(block["out"], attended.reshape(batch, length, width))


def logits(params: Tree, tokens: jax.Array) -> jax.Array:
    """The next token's logits at every position: (batch, sequence, vocabulary)."""
    x = params["embed"][tokens] + params["position"]
    for block in params["blocks"]:
        x = x + _attend(block, _apply_norm(block["attention_norm"], x))
        hidden = jax.nn.gelu(_apply_dense(block["up"], _apply_norm(block["mlp_norm"], x)))
        x = x + _apply_dense(block["down"], hidden)
    return _apply_norm(params["norm"], x) @ params["embed"].T


def loss(params: Tree, tokens: jax.Array) -> jax.Array:
    """Mean cross entropy of each token given those before it."""
    predicted = logits(params, tokens)[:, :-1]
    return optax.softmax_cross_entropy_with_integer_labels(predicted, tokens[:, 1:]).mean()


@partial(jax.jit, donate_argnames=("params", "opt_state"))
def train_step(params: Tree, opt_state: optax.OptState, tokens: jax.Array) -> tuple[Tree, optax.OptState, jax.Array]:
    """One AdamW step: the new parameters, the new optimizer state and the loss."""
    value, gradients = jax.value_and_grad(loss)(params, tokens)
    updates, opt_state = optimizer.update(gradients, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value
