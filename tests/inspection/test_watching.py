"""Watching: the user's own next call is inspected before it runs, and runs as it would have."""

from __future__ import annotations

import functools
import gc
import importlib
import threading
import warnings
import weakref
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import linen, nnx

from donation_inspector.capture.opening import inspect
from donation_inspector.capture.watch import Watched, watch
from donation_inspector.errors import TraceError
from donation_inspector.xla import calls

pjit: Any = importlib.import_module("jax._src.pjit")
BIG = 1 << 19
"""Elements of an array that is too big for an Inspection to keep."""


class Trainer:
    """A step hidden in a class, with a jitted initialisation before it, and JAX's own small jits around."""

    def __init__(self) -> None:
        def train_step(params: Any, x: Any) -> Any:
            return {"w": params["w"] + x.sum()}, x.mean()

        self.traced = 0
        self._step = jax.jit(self.counted(train_step), donate_argnames="params")
        self._init = jax.jit(lambda: {"w": jnp.zeros(BIG)})
        self.params: Any = None

    def counted(self, step: Any) -> Any:
        @functools.wraps(step)
        def counting(*args: Any) -> Any:
            self.traced += 1
            return step(*args)

        return counting

    @functools.partial(jax.jit, static_argnums=0)
    def doubled(self, x: Any) -> Any:
        return 2 * x

    def start(self) -> None:
        self.params = self._init()

    def fit_one(self) -> Any:
        x = jnp.arange(4.0) * jnp.ones(4)
        self.params, loss = self._step(self.params, x)
        return loss


@pytest.fixture
def trainer() -> Trainer:
    made = Trainer()
    made.start()
    return made


def paths(watched: Watched) -> list[str]:
    return [argument.path for argument in watched.inspection.arguments]


def test_the_call_is_inspected_and_runs(trainer: Trainer) -> None:
    given = trainer.params["w"]

    with watch() as watched:
        loss = trainer.fit_one()

    assert (watched.inspection.name, paths(watched)) == ("train_step", ["params['w']", "x"])
    assert [argument.donated for argument in watched.inspection.arguments] == [True, False]
    assert float(loss) == 1.5
    assert float(trainer.params["w"][0]) == 6.0
    assert given.is_deleted()


def test_a_call_that_jax_dispatches_without_python_is_caught_and_not_traced_again(trainer: Trainer) -> None:
    for _ in range(3):
        trainer.fit_one()

    with watch() as watched:
        trainer.fit_one()

    assert watched.inspection.name == "train_step"
    assert trainer.traced == 1


def test_calls_afterwards_are_dispatched_without_python(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    with watch() as watched:
        trainer.fit_one()
        trainer.fit_one()
    caught = watched.inspection
    with watch("nothing is called so"):
        trainer.fit_one()
    trainer.fit_one()

    missed: list[Any] = []
    x = jnp.arange(4.0) * jnp.ones(4)
    from jax._src import pjit

    monkeypatch.setattr(pjit, "_run_python_pjit", lambda *args: missed.append(args))
    trainer._step(trainer.params, x)

    assert not missed
    assert watched.inspection is caught


def test_the_arrays_are_not_held(trainer: Trainer) -> None:
    given = weakref.ref(trainer.params["w"])

    with watch() as watched:
        trainer.fit_one()
    gc.collect()

    assert given() is None
    assert watched.inspection.arguments[0].nbytes == BIG * 4


def test_a_failed_inspection_holds_no_arrays_either() -> None:
    step = jax.jit(lambda x: x.reshape(7))
    x = jnp.ones(BIG)
    given = weakref.ref(x)

    with watch() as watched, pytest.raises(TypeError, match="cannot reshape"):
        step(x)
    del x
    gc.collect()

    assert given() is None
    with pytest.raises(TraceError, match="cannot be traced: TypeError: cannot reshape"):
        _ = watched.inspection


def test_a_name_waits_for_its_function() -> None:
    trainer = Trainer()

    with watch("train_step") as watched:
        trainer.start()
        trainer.fit_one()

    assert watched.inspection.name == "train_step"


def test_a_method_is_called_by_its_class_too(trainer: Trainer) -> None:
    with watch("Trainer.doubled") as watched:
        trainer.fit_one()
        trainer.doubled(jnp.ones(3))

    assert paths(watched) == ["x"]


def test_jaxs_own_functions_are_passed_over() -> None:
    with watch() as watched:
        (jnp.ones(4) + 1).sum().block_until_ready()

    with pytest.raises(TraceError, match=r"caught no call of a jitted function of yours.*disable_jit"):
        _ = watched.inspection


def test_the_functions_that_were_called_are_told(trainer: Trainer) -> None:
    with watch("fit_step") as watched:
        trainer.fit_one()
        trainer.fit_one()

    with pytest.raises(TraceError, match=r"named fit_step\. Called were: train_step \(2×\); .*watch\('train_step'\)"):
        _ = watched.inspection


def test_tracing_and_lowering_are_no_calls(trainer: Trainer) -> None:
    with watch() as watched:
        trainer._step.lower(trainer.params, jnp.ones(4))
        jax.vmap(trainer.doubled)(jnp.ones(3))

    with pytest.raises(TraceError, match="caught no call"):
        _ = watched.inspection


def test_a_frameworks_function_that_the_user_calls_is_caught() -> None:
    dense = linen.Dense(3)

    with watch() as watched:
        jax.jit(dense.init)(jax.random.key(0), jnp.ones((2, 4)))

    assert watched.inspection.name == "init"


def test_exceptions_inside_pass_through(trainer: Trainer) -> None:
    with pytest.raises(KeyError, match="inside"), watch():
        raise KeyError("inside")

    with watch() as watched:
        trainer.fit_one()
    assert watched.inspection.name == "train_step"


def test_only_the_thread_that_entered_is_watched(trainer: Trainer) -> None:
    with watch() as watched:
        other = threading.Thread(target=trainer.fit_one)
        other.start()
        other.join()
        trainer.doubled(jnp.ones(3))

    assert watched.inspection.name == "doubled"


def test_watches_nest(trainer: Trainer) -> None:
    with watch("doubled") as outer, watch() as inner:
        trainer.fit_one()
        trainer.doubled(jnp.ones(3))

    assert (inner.inspection.name, outer.inspection.name) == ("train_step", "doubled")


def test_jaxs_warning_is_not_lost() -> None:
    step = jax.jit(lambda unusable: unusable.sum(), donate_argnums=0)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with watch():
            step(jnp.ones(5))

    assert [str(one.message)[:65] for one in caught] == [
        "Some donated buffers were not usable: unusable float32[5]. No res"
    ]


class Net(nnx.Module):
    def __init__(self) -> None:
        self.layer = nnx.Linear(4, 2, rngs=nnx.Rngs(0))

    @nnx.jit(donate_argnums=0)
    def shift(self, x: Any) -> Any:
        self.layer.bias[...] += 1
        return self.layer(x)


def test_an_nnx_call_is_inspected_as_the_user_made_it() -> None:
    net, x = Net(), jnp.ones((3, 4))
    expected = [argument.path for argument in inspect(net.shift, x).arguments]
    net.shift(x)

    with watch() as watched:
        net.shift(x)

    assert paths(watched) == expected == ["self.layer.bias", "self.layer.kernel", "x"]
    assert net.layer.bias[...].tolist() == [2, 2]


def test_an_nnx_call_in_tree_mode_is_too() -> None:
    net, x = Net(), jnp.ones((3, 4))
    forward = nnx.jit(lambda model, x: model.layer(x), graph=False)

    with watch() as watched:
        forward(net, x)

    assert paths(watched) == ["model.layer.bias", "model.layer.kernel", "x"]


@eqx.filter_jit(donate="all-except-first")
def equinox_step(model: Any, x: Any, *, scale: float) -> Any:
    return jax.vmap(model)(x) * scale


@pytest.mark.parametrize("before", [0, 2])
def test_an_equinox_call_is_inspected_as_the_user_made_it(before: int) -> None:
    model = eqx.nn.Linear(4, 4, key=jax.random.key(0))
    for _ in range(before):
        equinox_step(model, jnp.ones((3, 4)), scale=2.0)
    x = jnp.ones((3, 4))

    with watch() as watched:
        equinox_step(model, x, scale=2.0)

    assert watched.inspection.name == "equinox_step"
    assert set(paths(watched)) == {"model.weight", "model.bias", "x"}
    assert x.is_deleted()


@pytest.mark.parametrize("framework", ["nnx", "equinox"])
def test_a_frameworks_call_is_not_held_either(framework: str) -> None:
    x = jnp.ones((BIG // 4, 4))
    given = weakref.ref(x)
    net, model = Net(), eqx.nn.Linear(4, 4, key=jax.random.key(0))

    with watch() as watched:
        if framework == "nnx":
            net.shift(x)
        else:
            equinox_step(model, x, scale=2.0)
    del x
    gc.collect()

    assert given() is None
    assert "x" in paths(watched)


def test_a_module_that_equinox_jits_is_caught() -> None:
    model = eqx.filter_jit(eqx.nn.Linear(4, 4, key=jax.random.key(0)))

    with watch() as watched:
        model(jnp.ones(4))

    assert watched.inspection.name == "Linear"


def test_a_jax_that_dispatches_in_another_way_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from jax._src import pjit

    for name in ("_infer_params", "_trace_for_jit"):
        monkeypatch.setattr(pjit, name, lambda *args: args, raising=False)

    with pytest.raises(TraceError, match=r"di\.watch does not know how jax .* dispatches a call"), watch():
        pass


def test_what_is_no_name_is_told_at_once() -> None:
    with pytest.raises(TraceError, match="waits for a function by its name"), watch(jnp.sin):  # type: ignore[arg-type]
        pass


@functools.partial(jax.pmap, axis_name="device", donate_argnums=0)
def mapped_step(state: Any, x: Any) -> Any:
    return jax.tree.map(lambda p: p - 0.1 * jax.lax.pmean(x.sum(), "device"), state)


def test_a_pmap_step_is_caught_as_the_user_calls_it() -> None:
    state = {"w": jnp.ones((1, 8))}

    with watch() as watched:
        mapped_step(state, jnp.ones((1, 4)))

    assert (watched.inspection.name, paths(watched)) == ("mapped_step", ["state['w']", "x"])
    assert [argument.donated for argument in watched.inspection.arguments] == [True, False]


# the function that a call goes through has another name in the oldest jax
@pytest.mark.parametrize("name", ["_cpp_pjit_cache_fun_only", "_get_fastpath_data", calls._entry_name()])
def test_jax_is_as_it_was_whatever_raises(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delattr(pjit, name)
    before = dict(vars(pjit))

    with pytest.raises(TraceError, match=f"jax {jax.__version__}"), watch():
        raise AssertionError("watch was entered")

    assert dict(vars(pjit)) == before
