"""The real call: every outcome is held to addresses and to `is_deleted`, which the test reads for itself."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import donation_inspector as di
from donation_inspector.checks import verify as verifying
from donation_inspector.errors import TraceError
from donation_inspector.present import payload, report

N = 4096
double = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)
add = jax.jit(lambda x, y: x * 2 + y, donate_argnums=0)


def reads_the_second(x: Any, y: Any) -> Any:  # noqa: ARG001
    return y * 2


def ones(*shape: int) -> jax.Array:
    return jnp.ones(shape or (N,))


def mesh() -> Any:
    return jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))


def split() -> NamedSharding:
    return NamedSharding(mesh(), P("x"))


def lies(array: Any) -> set[int]:
    return {shard.data.unsafe_buffer_pointer() for shard in array.addressable_shards}


def seen(array: Any, before: set[int], result: Any) -> str:
    """What became of an array, by what anybody can see."""
    if not array.is_deleted():
        return "alive"
    after = set[int]().union(*(lies(leaf) for leaf in jax.tree.leaves(result)))
    return "reused" if before <= after else "freed"


class Case(NamedTuple):
    """A call whose first argument is donated; `held` is what stays alive beside it."""

    step: Any
    args: tuple[Any, ...]
    held: Any = None
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext


def numpy_view() -> Case:
    x = ones()
    return Case(double, (x,), {"seen": [np.asarray(x)[7:]]})


def dlpack() -> Case:
    x = ones()
    return Case(double, (x,), x.__dlpack__())


def numpys_memory() -> Case:
    # XLA takes over what lies at a multiple of 64 bytes
    room = np.zeros(4 * N + 64, np.uint8)
    start = -room.ctypes.data % 64
    array = room[start : start + 4 * N].view(np.float32)
    return Case(double, (jax.device_put(array),), array)


def committed_elsewhere() -> Case:
    return Case(add, (ones(), jax.device_put(ones(), jax.devices()[1])))


def other_sharding() -> Case:
    step = jax.jit(lambda x: x * 2, donate_argnums=0, in_shardings=split(), out_shardings=split())
    return Case(step, (ones(),))


def other_layout() -> Case:
    column = Format(Layout((1, 0)), SingleDeviceSharding(jax.devices()[0]))
    step = jax.jit(lambda x: x * 2, donate_argnums=0, in_shardings=column, out_shardings=column)
    return Case(step, (ones(64, 32),))


def inner_jit() -> Case:
    return Case(jax.jit(lambda x: double(x)), (ones(),))


def debug_nans() -> Case:
    return Case(jax.jit(lambda x: x * 2, donate_argnums=0), (ones(),), inside=lambda: jax.debug_nans(True))


def not_jitted() -> Case:
    return Case(double, (ones(),), inside=jax.disable_jit)


def handed_back() -> Case:
    return Case(jax.jit(lambda x: x, donate_argnums=0), (ones(),), inside=jax.disable_jit)


def dropped() -> Case:
    return Case(jax.jit(reads_the_second, donate_argnums=0), (ones(), ones()))


def other_dtype() -> Case:
    return Case(jax.jit(lambda x: x.astype(jnp.bfloat16), donate_argnums=0), (ones(),))


def other_shape() -> Case:
    return Case(jax.jit(lambda x: x.sum(), donate_argnums=0), (ones(),))


def gathered() -> Case:
    step = jax.jit(lambda x: x * 2, donate_argnums=0, out_shardings=NamedSharding(mesh(), P()))
    return Case(step, (jax.device_put(ones(), split()),))


NOT_REUSED = [
    (numpy_view, "alive", "a numpy array shares its memory, case.held['seen'][0]"),
    (dlpack, "alive", "something else holds its buffer"),
    (numpys_memory, "freed", "its memory is that of a numpy array, case.held,"),
    (committed_elsewhere, "alive", "it lies on cpu:0, and the call runs on cpu:1"),
    (other_sharding, "alive", "it lies on cpu:0, and the call runs on 4 devices (cpu:0 to cpu:3)"),
    (other_layout, "alive", "its dimensions lie in the order (0, 1), and the call is compiled for (1, 0)"),
    (inner_jit, "alive", "an inner jit donates it, which JAX ignores"),
    (debug_nans, "alive", "while jax_debug_nans is on"),
    (not_jitted, "alive", "jax.disable_jit is on"),
    (handed_back, "alive", "result is the same array"),
    (dropped, "alive", "JAX drops it"),
    (other_dtype, "alive", "XLA compares bytes"),
    (other_shape, "alive", "no result is float32[4096]"),
    (gathered, "alive", "is split differently over the devices"),
]


@pytest.mark.parametrize(("make", "outcome", "reason"), NOT_REUSED, ids=lambda one: getattr(one, "__name__", ""))
@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_where_it_is_not_reused(make: Callable[[], Case], outcome: str, reason: str) -> None:
    case = make()
    given = case.args[0]
    before = lies(given)
    with case.inside():
        found = di.verify(case.step, *case.args)
    assert seen(given, before, found.result) == outcome
    (row,) = found.arguments
    assert (row.path, row.outcome, row.result) == ("x", outcome, None)
    assert reason in row.reason
    assert found.outcomes == {"x": outcome}


REUSED = {
    "plain": (double, lambda: (ones(),)),
    "kept although unused": (
        jax.jit(lambda x, y: (x, y)[1] * 2, donate_argnums=0, keep_unused=True),
        lambda: (ones(), ones()),
    ),
    "static": (jax.jit(lambda x, n: x * n, donate_argnums=0, static_argnums=1), lambda: (ones(), 3)),
    "passed through": (jax.jit(lambda x: x, donate_argnums=0), lambda: (ones(),)),
    "a donor": (jax.jit(lambda x: x.astype(jnp.int32), donate_argnums=0), lambda: (ones(),)),
    "over devices": (jax.jit(lambda x: x * 2, donate_argnums=0), lambda: (jax.device_put(ones(), split()),)),
    "a key": (jax.jit(lambda x: jax.random.fold_in(x, 1), donate_argnums=0), lambda: (jax.random.key(0),)),
    "on another device": (double, lambda: (jax.device_put(ones(), jax.devices()[1]),)),
    "a partial": (functools.partial(add, y=1.0), lambda: (ones(),)),
}


@pytest.mark.parametrize("name", REUSED)
def test_where_it_is_reused(name: str) -> None:
    step, make = REUSED[name]
    args = make()
    before = lies(args[0])
    found = di.verify(step, *args)
    assert seen(args[0], before, found.result) == "reused"
    (row,) = found.arguments
    assert (row.path, row.outcome, row.result, row.reason) == ("x", "reused", "result", "")


def test_the_swap_names_each_result() -> None:
    a, b = ones(), jnp.zeros(N)
    lay = {"a": lies(a), "b": lies(b)}
    found = di.verify(jax.jit(lambda a, b: {"second": b, "first": a}, donate_argnums=(0, 1)), a, b)
    assert found.outcomes == {"a": "reused", "b": "reused"}
    for row in found.arguments:
        assert row.result in ("['first']", "['second']")
        assert lies(found.result[row.result[2:-2]]) == lay[row.path]


def test_what_is_given_from_the_host_stays_there() -> None:
    array = np.ones(N, np.float32)
    found = di.verify(double, array)
    assert found.outcomes == {"x": "alive"}
    assert "numpy's memory is never reused" in found.arguments[0].reason
    assert (array == 1).all()
    assert "a Python number was given" in di.verify(double, 2.0).arguments[0].reason


def test_an_array_without_bytes_has_nothing_to_reuse() -> None:
    found = di.verify(double, ones(0))
    assert (found.arguments[0].outcome, found.arguments[0].reason) == ("freed", "it has no bytes")
    assert found.sentence() == "0 of 1 donated arguments was reused in your call; 1 only freed."


def test_some_of_its_buffers_in_a_result_are_not_all(monkeypatch: pytest.MonkeyPatch) -> None:
    landed = verifying._landed
    monkeypatch.setattr(verifying, "_landed", lambda *given: dict(list(landed(*given).items())[:3]))
    (found,) = di.verify(double, jax.device_put(ones(), split())).arguments
    assert (found.outcome, found.result, found.reason) == ("freed", None, "results lie in 3 of its 4 buffers")


def test_called_alone_an_inner_jit_donates() -> None:
    x = ones()
    before = lies(x)
    found = di.verify(lambda x: double(x), x)
    assert seen(x, before, found.result) == found.arguments[0].outcome == "reused"
    assert "its donation counts" in found.arguments[0].reason


def test_nothing_donated_is_nothing_to_verify() -> None:
    found = di.verify(jax.jit(lambda x: x * 2), ones())
    assert found.arguments == ()
    assert "Nothing is donated" in repr(found)
    assert "Nothing is donated" in found._repr_html_()


# ---- the call itself


class Wrapped:
    """A step behind a wrapper of the user's own, which counts and may fail."""

    def __init__(self, step: Any, error: BaseException | None = None) -> None:
        self.trace, self._step, self._error, self.calls = step.trace, step, error, 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        if self._error is not None:
            raise self._error
        return self._step(*args)


def test_the_call_is_made_once() -> None:
    step = Wrapped(double)
    assert np.array_equal(di.verify(step, ones()).result, np.full(N, 3, np.float32))
    assert step.calls == 1


@pytest.mark.parametrize("error", [ZeroDivisionError("theirs"), KeyboardInterrupt()])
def test_what_it_raises_is_the_users(error: BaseException) -> None:
    x = ones()
    with pytest.raises(type(error)) as caught:
        di.verify(Wrapped(double, error), x)
    assert caught.value is error
    assert [argument.path for argument in caught.value.inspection.arguments] == ["x"]
    assert not x.is_deleted()


def test_what_was_returned_is_never_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_array: Any) -> None:
        raise KeyboardInterrupt

    x = ones()
    monkeypatch.setattr(verifying, "is_deleted", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        di.verify(double, x)
    assert x.is_deleted()
    assert float(caught.value.result[0]) == 3


def test_the_same_array_twice_is_named() -> None:
    x = ones()
    with pytest.raises(jax.errors.JaxRuntimeError, match="donated") as caught:
        di.verify(add, x, x)
    assert any("x and y are the same array" in note for note in caught.value.__notes__)


def test_the_same_array_twice_over_several_devices_is_not_called() -> None:
    x = jax.device_put(ones(), split())
    other = jax.make_array_from_single_device_arrays(x.shape, x.sharding, [one.data for one in x.addressable_shards])
    for y in (x, other):
        with pytest.raises(TraceError, match=r"is not called: x is donated over 4 devices, and it .* y: "):
            di.verify(add, x, y)
    assert not x.is_deleted()
    assert di.verify(add, x, jax.device_put(ones(), split())).outcomes == {"x": "reused"}


def test_shapes_cannot_be_called() -> None:
    with pytest.raises(TraceError, match=r"x: jax.ShapeDtypeStruct.*pass arrays, or use inspect"):
        di.verify(add, jax.ShapeDtypeStruct((N,), jnp.float32), ones())
    with pytest.raises(TraceError, match="Traced holds a program"):
        di.verify(double.trace(ones()))


def test_arguments_that_are_committed_to_two_devices_are_refused() -> None:
    one, two = (jax.device_put(ones(), device) for device in jax.devices()[:2])
    with pytest.raises(TraceError, match="device"):
        di.verify(add, one, two)
    assert not one.is_deleted()


def test_no_array_is_held_afterwards() -> None:
    x = ones(512, 1024)
    found = di.verify(double, x)
    held = [weakref.ref(x), weakref.ref(found.result)]
    inspection = found.inspection
    gc.disable()
    try:
        del x, found
        assert [one() for one in held] == [None, None]
    finally:
        gc.enable()
    assert inspection.verified is not None


def test_looking_for_a_view_keeps_nothing_alive() -> None:
    x = ones()
    view = np.asarray(x)
    assert di.verify(double, x).outcomes == {"x": "alive"}
    del view
    assert di.verify(double, x).outcomes == {"x": "reused"}


# ---- frameworks


class Net(nnx.Module):
    def __init__(self) -> None:
        self.l1 = nnx.Linear(8, 8, rngs=nnx.Rngs(0))

    @nnx.jit(donate_argnums=0)
    def shift(self, x: Any) -> Any:
        self.l1.bias[...] += x.sum()
        return x.sum()


@nnx.jit(donate_argnames=("model", "optimizer"))
def train(model: Net, optimizer: Any, x: Any) -> Any:
    loss, gradients = nnx.value_and_grad(lambda net: (net.l1(x) ** 2).mean())(model)
    optimizer.update(model, gradients)
    return loss


def test_an_nnx_model_is_updated_in_place_as_by_any_call() -> None:
    x = ones(3, 8)
    one, other = ((net := Net(), nnx.Optimizer(net, optax.adam(1e-3), wrt=nnx.Param)) for _ in range(2))
    lay = lies(one[0].l1.kernel.get_value())
    found = di.verify(train, *one, x)
    assert found.result == train(*other, x)
    assert lies(one[0].l1.kernel.get_value()) == lay
    (row,) = [row for row in found.arguments if row.path == "model.l1.kernel"]
    assert (row.outcome, row.result) == ("reused", "model.l1.kernel, updated")
    assert set(found.outcomes.values()) == {"reused"}
    assert train(*one, x) == train(*other, x)
    method = di.verify(one[0].shift, x)
    assert method.outcomes == {"self.l1.kernel": "reused", "self.l1.bias": "reused"}


def test_equinoxs_marker_takes_a_buffer_that_the_call_does_not_hand_on() -> None:
    @eqx.filter_jit(donate="all")
    def step(count: Any, weight: Any) -> Any:
        return count + 1, weight * 2

    count, weight = jnp.zeros((), jnp.int32), ones()
    before = lies(count)
    found = di.verify(step, count, weight)
    assert seen(count, before, found.result) == "freed"
    assert found.outcomes == {"count": "freed", "weight": "reused"}
    assert "which the call does not hand on" in found.arguments[0].reason


class Trainer:
    """Keeps its state to itself: what the call returns is not where the donated buffer went."""

    def __init__(self) -> None:
        self.state = {"w": ones()}

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def step(self, state: Any) -> Any:
        return jax.tree.map(lambda w: w * 2, state)

    def trace(self, state: Any) -> Any:
        return type(self).step.trace(self, state)

    def __call__(self, state: Any) -> None:
        self.state = self.step(state)


def test_a_result_that_an_object_keeps_is_found_there() -> None:
    trainer = Trainer()
    lay = lies(trainer.state["w"])
    found = di.verify(trainer, trainer.state)
    assert lies(trainer.state["w"]) == lay
    assert [(row.outcome, row.result) for row in found.arguments] == [("reused", "Trainer.state['w'], updated")]


# ---- where it is shown


def test_report_page_widget_and_file_have_the_column(tmp_path: Path) -> None:
    params = {"<w>": ones(), "b": ones(16)}
    view = np.asarray(params["<w>"])
    step = jax.jit(lambda params, x: jax.tree.map(lambda leaf: leaf * x, params), donate_argnums=0)
    found = di.verify(step, params, 2.0)
    inspection = found.inspection
    assert inspection.verified == found.arguments
    assert inspection.keep("params").verified is None
    text = report.summary(inspection)
    assert "1 of 2 donated arguments were reused in your call, 64 B of 16.4 KB; 1 still alive." in text
    assert "no, still alive" in text
    assert "in your call a numpy array shares its memory" in text
    assert "reused in your call" not in report.summary(inspection.keep("params"))
    page = report.static_html(inspection)
    assert "reused in your call" in page
    assert "<w>" not in page + found._repr_html_()
    state = payload.current(inspection, 0)["state"]["verified"]
    assert state["outcomes"] == ["alive", "reused", None]
    assert state["reasons"][0].startswith("a numpy array shares its memory")
    assert payload.current(inspection.keep("params"), 0)["state"]["verified"] is None
    inspection.save(tmp_path / "step.di")
    assert di.load(tmp_path / "step.di").verified == found.arguments
    assert view.sum() == N
