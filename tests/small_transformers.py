"""A small transformer as people write it in NNX, in linen and in plain JAX, each with the step that trains it.

Embedding, one block of attention and MLP with LayerNorms, tied output; optax's adamw. A step donates what it updates.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import linen, nnx
from flax.training.train_state import TrainState

VOCABULARY, WIDTH, HEADS = 11, 8, 2
OPTIMIZER = optax.adamw(1e-2)
TOKENS = jnp.arange(12, dtype=jnp.int32).reshape(2, 6) % VOCABULARY
WRONG_TOKENS = jnp.ones((2, 6, 3))
"""What every step here fails to trace with."""


def cross_entropy(logits: Any, tokens: Any) -> Any:
    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()


# ---- NNX


class Block(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, rngs=rngs, decode=False)
        self.mlp = nnx.List([nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs), nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)])
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        x = x + self.attention(self.norm(x))
        return x + self.dropout(self.mlp[1](nnx.gelu(self.mlp[0](x))))


class Transformer(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.embed = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs)])
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)

    def __call__(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.embed.attend(self.norm(x))

    @nnx.jit(donate_argnames=("self", "optimizer"))
    def train(self, optimizer: nnx.Optimizer[Any], tokens: Any) -> Any:
        return update(self, optimizer, tokens)


def update(model: Transformer, optimizer: Any, tokens: Any) -> Any:
    loss, gradients = nnx.value_and_grad(lambda model: cross_entropy(model(tokens), tokens))(model)
    optimizer.update(model, gradients)
    return loss


@nnx.jit(donate_argnames=("model", "optimizer"))
def nnx_step(model: Transformer, optimizer: Any, tokens: Any) -> Any:
    return update(model, optimizer, tokens)


@nnx.jit(donate_argnames=("optimizer",))
def nnx_step_of_both(optimizer: Any, tokens: Any) -> Any:
    loss, gradients = nnx.value_and_grad(lambda model: cross_entropy(model(tokens), tokens))(optimizer.model)
    optimizer.update(gradients)
    return loss


def nnx_training() -> tuple[Transformer, Any]:
    model = Transformer(nnx.Rngs(0))
    return model, nnx.Optimizer(model, OPTIMIZER, wrt=nnx.Param)


def nnx_shapes() -> tuple[Transformer, Any]:
    return nnx.eval_shape(nnx_training)


@functools.cache
def split_step() -> Any:
    graph, _ = nnx.split(nnx_training())

    @functools.partial(jax.jit, donate_argnames=("state",))
    def step(state: Any, tokens: Any) -> tuple[Any, Any]:
        model, optimizer = nnx.merge(graph, state)
        loss = update(model, optimizer, tokens)
        return nnx.state((model, optimizer)), loss

    return step


# ---- linen


class LinenBlock(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = x + linen.MultiHeadDotProductAttention(HEADS, name="attention")(linen.LayerNorm(name="norm")(x))
        return x + linen.Dense(WIDTH, name="down")(linen.gelu(linen.Dense(4 * WIDTH, name="up")(x)))


class LinenTransformer(linen.Module):
    @linen.compact
    def __call__(self, tokens: Any) -> Any:
        embed = linen.Embed(VOCABULARY, WIDTH, name="embed")
        return embed.attend(linen.LayerNorm(name="norm")(LinenBlock(name="block")(embed(tokens))))


@functools.partial(jax.jit, donate_argnames=("state",))
def linen_step(state: TrainState, tokens: Any) -> tuple[TrainState, Any]:
    def loss_of(params: Any) -> Any:
        return cross_entropy(state.apply_fn({"params": params}, tokens), tokens)

    loss, gradients = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=gradients), loss


def linen_training() -> TrainState:
    model = LinenTransformer()
    params = model.init(jax.random.key(0), TOKENS)["params"]
    return TrainState.create(apply_fn=model.apply, params=params, tx=OPTIMIZER)


# ---- plain JAX and optax


def plain_training() -> tuple[Any, Any]:
    params = linen_training().params
    return params, OPTIMIZER.init(params)


@functools.partial(jax.jit, donate_argnames=("params", "opt_state"))
def optax_step(params: Any, opt_state: Any, tokens: Any) -> tuple[Any, Any, Any]:
    def loss_of(params: Any) -> Any:
        return cross_entropy(LinenTransformer().apply({"params": params}, tokens), tokens)

    loss, gradients = jax.value_and_grad(loss_of)(params)
    updates, opt_state = OPTIMIZER.update(gradients, opt_state, params)
    params = optax.apply_updates(params, updates)
    return params, opt_state, loss
