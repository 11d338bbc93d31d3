"""Small programs as XLA compiles them, as JAX donates and without donation, all in one child process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import optax
from flax import nnx

import case_loader
from donation_inspector.attribution.flow import Flow
from donation_inspector.attribution.roles import Roles
from donation_inspector.common.signature import Donation, Signature
from donation_inspector.frameworks.step import lower
from donation_inspector.ir.exporter import with_donation
from donation_inspector.xla.compile import compile_variants
from donation_inspector.xla.hlo.buffers import Buffers, read_buffers
from donation_inspector.xla.lowering import Lowered
from donation_inspector.xla.program import Program
from donation_inspector.xla.results import Memory
from lowered_cases import lower_case
from workloads import gpt_train_step

CASES = [
    name
    for name in case_loader.CASE_NAMES
    if name[:2] in {"01", "04", "05", "09", "14", "20", "24", "27", "29", "30", "42"}
]
X, Y = jnp.ones((64, 96)), jnp.ones((64, 24))
ADAM = optax.adam(1e-3)


@dataclass(frozen=True)
class Compiled:
    """`memory` is XLA's own statement about the variant."""

    lowered: Lowered
    buffers: Buffers
    memory: Memory

    @property
    def signature(self) -> Signature:
        return self.lowered.signature

    @property
    def flow(self) -> Flow:
        return Flow(self.buffers)

    @property
    def roles(self) -> Roles:
        return Roles(self.flow, self.signature)

    def position(self, path: str) -> int:
        """Where an argument stands in the entry function."""
        (found,) = [leaf.position for leaf in self.signature.arguments if leaf.path == path]
        assert found is not None
        return found


def loss(w: Any, x: Any) -> Any:
    return (jnp.tanh(x @ w) ** 2).sum()


def bare_momentum(w: Any, m: Any, x: Any) -> Any:
    m = 0.9 * m + jax.grad(loss)(w, x)
    return w - 0.1 * m, m


def unnamed_trees(a: Any, b: Any, c: Any) -> Any:
    """Momentum whose arguments have names that say nothing."""
    gradients = jax.grad(lambda p: loss(p["k"], c) + loss(p["l"], c))(a)
    b = jax.tree.map(lambda m, g: 0.9 * m + g, b, gradients)
    return jax.tree.map(lambda p, m: p - 0.1 * m, a, b), b


def one_tree(state: Any, x: Any) -> Any:
    gradients = jax.grad(loss)(state["params"], x)
    slots = jax.tree.map(lambda m, g: 0.9 * m + g, state["slots"], gradients)
    return {"params": state["params"] - 0.1 * slots, "slots": slots, "step": state["step"] + 1}


def one_model(model: Any, x: Any) -> Any:
    """A momentum that only its path tells from the layers."""
    gradients = jax.grad(loss)(model["layers"]["k"], x)
    momentum = 0.9 * model["memory"]["k"] + gradients
    return {"layers": {"k": model["layers"]["k"] - 0.1 * momentum}, "memory": {"k": momentum}}


def scanned_steps(w: Any, m: Any, x: Any) -> Any:
    return jax.lax.scan(lambda c, _: (bare_momentum(*c, x), None), (w, m), None, length=3)[0]


def gradients_alone(params: Any, x: Any) -> Any:
    return jax.value_and_grad(lambda p: loss(p["a"], x) + loss(p["b"], x))(params)


def deep(params: Any, x: Any) -> Any:
    """Six layers whose only residuals are their outputs."""
    for w in params:
        x = jnp.tanh(x @ w)
    return (x**2).sum()


def deep_gradient(params: Any, x: Any) -> Any:
    return jax.grad(deep)(params, x)


def deep_recomputed(params: Any, x: Any) -> Any:
    return jax.grad(jax.checkpoint(deep, policy=jax.checkpoint_policies.nothing_saveable))(params, x)


def elementwise(a: Any, b: Any) -> Any:
    return jnp.sin(a) + 1, jnp.cos(b)


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(96, 128, rngs=rngs)
        self.norm = nnx.BatchNorm(128, rngs=rngs)
        self.out = nnx.Linear(128, 24, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.out(nnx.relu(self.norm(self.hidden(x))))


@nnx.jit(donate_argnames=("model", "optimizer"))
def nnx_step(model: Net, optimizer: Any, x: Any, y: Any) -> Any:
    value, gradients = nnx.value_and_grad(lambda model, x, y: ((model(x) - y) ** 2).mean())(model, x, y)
    optimizer.update(model, gradients)
    return value


@equinox.filter_jit(donate="all")
def equinox_step(model: Any, opt_state: Any, x: Any, y: Any) -> Any:
    value, gradients = equinox.filter_value_and_grad(lambda model: ((jax.vmap(model)(x) - y) ** 2).mean())(model)
    updates, opt_state = ADAM.update(gradients, opt_state)
    return equinox.apply_updates(model, updates), opt_state, value


def _of_nnx() -> Lowered:
    model = Net(nnx.Rngs(0))
    return lower(nnx_step, (model, nnx.Optimizer(model, ADAM, wrt=nnx.Param), X, Y), {})


def _of_equinox() -> Lowered:
    model = equinox.nn.MLP(96, 24, 128, 2, key=jax.random.key(0))
    return lower(equinox_step, (model, ADAM.init(equinox.filter(model, equinox.is_array)), X, Y), {})


def _of_gpt() -> Lowered:
    step, params, opt_state, ids = gpt_train_step.make(1, 32)
    return lower(jax.jit(step, donate_argnums=(0, 1)), (params, opt_state, ids), {})


def _of(fn: Callable[..., Any], *args: Any, donate: tuple[int, ...] = ()) -> Callable[[], Lowered]:
    return lambda: lower(jax.jit(fn, donate_argnums=donate), args, {})


def _matrix(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


_W, _TREE = _matrix(96, 80), {"k": _matrix(96, 80), "l": _matrix(96, 80)}
_LAYERS = tuple(_matrix(96, 96) for _ in range(6))

PROGRAMS: dict[str, Callable[[], Lowered]] = {
    "gpt": _of_gpt,
    "nnx": _of_nnx,
    "equinox": _of_equinox,
    "bare momentum": _of(bare_momentum, _W, _W, X, donate=(0, 1)),
    "unnamed trees": _of(unnamed_trees, _TREE, _TREE, X, donate=(0, 1)),
    "one tree": _of(one_tree, {"params": _W, "slots": _W, "step": jnp.int32(0)}, X, donate=(0,)),
    "one model": _of(one_model, {"layers": {"k": _W}, "memory": {"k": _W}}, X, donate=(0,)),
    "scanned steps": _of(scanned_steps, _W, _W, X, donate=(0, 1)),
    "gradients alone": _of(gradients_alone, {"a": _W, "b": _W}, X),
    "deep gradient": _of(deep_gradient, _LAYERS, _matrix(64, 96)),
    "deep recomputed": _of(deep_recomputed, _LAYERS, _matrix(64, 96)),
    "elementwise": _of(elementwise, _W, _W, donate=(0, 1)),
    **{name: (lambda name=name: lower_case(name)) for name in CASES},
}


@cache
def _lowered(name: str) -> Lowered:
    return PROGRAMS[name]()


@cache
def _all() -> dict[str, Compiled]:
    wanted: dict[str, tuple[Lowered, Program]] = {}
    for name in PROGRAMS:
        lowered = _lowered(name)
        wanted[f"{name} jax"] = lowered, lowered.program()
        wanted[f"{name} none"] = lowered, lowered.program(with_donation(lowered.module, Donation()))
    for name in CASES:
        lowered = _lowered(name)
        for left in lowered.donation.positions:
            wanted[f"{name} without {left}"] = (
                lowered,
                lowered.program(with_donation(lowered.module, _less(lowered, left))),
            )
    done = compile_variants({name: program for name, (_, program) in wanted.items()}, hlo=True)
    found: dict[str, Compiled] = {}
    for name, answer in done.items():
        assert answer.status == "ok", f"{name}: {answer.error}"
        assert answer.hlo is not None
        assert answer.memory is not None
        found[name] = Compiled(wanted[name][0], read_buffers(answer.hlo), answer.memory)
    return found


def _less(lowered: Lowered, left: int) -> Donation:
    aliases = {argument: result for argument, result in lowered.donation.aliases.items() if argument != left}
    return Donation(aliases, lowered.donation.donors - {left})


def compiled(name: str, variant: str = "jax") -> Compiled:
    """One of PROGRAMS: "jax" as it donates, "none" without donation, for CASES "without 3": without that one pair."""
    return _all()[f"{name} {variant}"]
