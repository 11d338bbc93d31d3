"""The small transformer of `small_transformers` as people write it in Equinox, with the ways that they train it."""

from __future__ import annotations

import functools
from typing import Any

import equinox as eqx
import jax

from small_transformers import HEADS, OPTIMIZER, VOCABULARY, WIDTH, cross_entropy


class Block(eqx.Module):
    norm: eqx.nn.LayerNorm
    attention: eqx.nn.MultiheadAttention
    mlp: eqx.nn.MLP

    def __init__(self, key: Any) -> None:
        first, second = jax.random.split(key)
        self.norm = eqx.nn.LayerNorm(WIDTH)
        self.attention = eqx.nn.MultiheadAttention(HEADS, WIDTH, key=first)
        self.mlp = eqx.nn.MLP(WIDTH, WIDTH, 4 * WIDTH, 1, activation=jax.nn.gelu, key=second)

    def __call__(self, x: Any) -> Any:
        normed = jax.vmap(self.norm)(x)
        x = x + self.attention(normed, normed, normed)
        return x + jax.vmap(self.mlp)(x)


class Transformer(eqx.Module):
    embed: eqx.nn.Embedding
    blocks: list[Block]

    def __init__(self, key: Any) -> None:
        first, second = jax.random.split(key)
        self.embed = eqx.nn.Embedding(VOCABULARY, WIDTH, key=first)
        self.blocks = [Block(second)]

    def __call__(self, tokens: Any) -> Any:
        x = jax.vmap(self.embed)(tokens)
        for block in self.blocks:
            x = block(x)
        return x @ self.embed.weight.T

    @eqx.filter_jit(donate="all")
    def train(self, opt_state: Any, tokens: Any) -> Any:
        return update(self, opt_state, tokens)


def update(model: Any, opt_state: Any, tokens: Any) -> Any:
    def loss_of(model: Any) -> Any:
        return cross_entropy(jax.vmap(model)(tokens), tokens)

    loss, gradients = eqx.filter_value_and_grad(loss_of)(model)
    updates, opt_state = OPTIMIZER.update(gradients, opt_state, eqx.filter(model, eqx.is_array))
    model = eqx.apply_updates(model, updates)
    return model, opt_state, loss


@eqx.filter_jit(donate="all-except-first")
def equinox_step(tokens: Any, model: Any, opt_state: Any) -> Any:
    model, opt_state, loss = update(model, opt_state, tokens)
    return model, opt_state, loss


def equinox_training() -> tuple[Transformer, Any]:
    """Arrays of its own each time, as a step donates them."""
    return jax.tree.map(lambda leaf: leaf + 0 if eqx.is_array(leaf) else leaf, _original())


@functools.cache
def _original() -> tuple[Transformer, Any]:
    model = Transformer(jax.random.key(0))
    return model, OPTIMIZER.init(eqx.filter(model, eqx.is_array))
