"""What the shell is asked about: a file, a module of the user's own, and the command itself."""

from __future__ import annotations

import sys

SWAP = """
module {
  func.func public @main(%arg0: tensor<8xf32> {tf.aliasing_output = 1 : i32}, %arg1: tensor<8xf32>)
      -> (tensor<8xf32>, tensor<8xf32>) {
    return %arg1, %arg0 : tensor<8xf32>, tensor<8xf32>
  }
}
"""

COMMAND = [sys.executable, "-c", "from donation_inspector.cli import main; raise SystemExit(main())"]

TRAIN = """
from functools import partial
from typing import NamedTuple
import jax
import jax.numpy as jnp

@partial(jax.jit, donate_argnames=("params", "batch"))
def step(params, batch):
    return {name: value - 0.1 * batch.mean() for name, value in params.items()}

def make_args():
    return jax.eval_shape(lambda: ({"w": jnp.ones((256, 256))}, jnp.ones((8, 16))))

def make_arrays():
    return {"w": jnp.ones((1024, 1024))}, jnp.ones((8, 16))

class Trainer:
    def __init__(self, rate):
        self.rate = rate
    @partial(jax.jit, static_argnums=0, donate_argnames="params")
    def step(self, params, batch):
        return params - self.rate * batch.mean()

trainer = Trainer(0.1)

def either(first=None, second=None):
    return first, second

class Pair(NamedTuple):
    x: object
    y: object

@partial(jax.jit, donate_argnames="half")
def casts(half):
    return half.astype(jnp.float32) + 1

@partial(jax.jit, donate_argnums=(0, 1))
def drops(first, second):
    return second + 1

def nested(x):
    return drops(x, x)

@partial(jax.jit, donate_argnums=0)
def empty(x):
    return x.sum()

nothing = (jax.ShapeDtypeStruct((0,), jnp.float32),)
one = jax.ShapeDtypeStruct((4,), jnp.float32)
half = (jax.ShapeDtypeStruct((4,), jnp.bfloat16),)
positional = one, one
keywords = {"second": one}
both = (one,), {"second": one}
tree = Pair(one, one)
wrong = {"third": one}
alone = lambda: ({"w": one},)
numbered = {0: one}
array_and_dict = one, {"second": one}

def raises():
    return {}["nothing"]

def generates():
    yield one

def takes(something):
    return something
"""
