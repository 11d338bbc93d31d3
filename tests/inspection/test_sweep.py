"""`Inspection.sweep`: other sizes of the arguments, held to a fresh inspection at each size."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.sharding import NamedSharding, PartitionSpec

from donation_inspector.capture.opening import inspect, inspect_ir, load
from donation_inspector.errors import DonationInspectorError, IRError, PathError, TraceError
from donation_inspector.inspection import Inspection
from donation_inspector.program.origins import FromFunction
from donation_inspector.program.selection import select
from donation_inspector.questions.sweep.answer import Sweep, SweepRow


def train_step(params: Any, batch: Any) -> Any:
    def loss(p: Any) -> Any:
        return jnp.square(jnp.tanh(batch["x"] @ p["w"])).sum() * batch["scale"]

    return jax.tree.map(jnp.subtract, params, jax.grad(loss)(params))


STEP = jax.jit(train_step, donate_argnames="params")


def given(rows: int = 8) -> tuple[Any, Any]:
    return {"w": jnp.ones((32, 32))}, {"x": jnp.ones((rows, 32)), "scale": jnp.float32(2)}


def totals(row: SweepRow) -> tuple[int | None, int | None]:
    return row.none, row.jax


@pytest.fixture(scope="module")
def sweep() -> Sweep:
    return inspect(STEP, *given()).sweep(batch=[16, 64], fits="20KB")


def test_each_total_is_that_of_an_inspection_at_that_size(sweep: Sweep) -> None:
    for row, size in zip(sweep, (16, 64), strict=True):
        fresh = inspect(STEP, *given(size)).compare().variants
        assert totals(row) == (fresh["none"].memory.total, fresh["jax"].memory.total)
        assert row.sizes == {"batch": size}
        assert row.shapes == {"batch['x']": (size, 32)}


def test_what_fits_and_the_largest_that_does(sweep: Sweep) -> None:
    small, large = sweep
    assert large.jax is not None
    assert [(row.fits, row.over) for row in sweep] == [(True, 0), (False, large.jax - 20_000)]
    assert sweep.largest is small
    assert repr(sweep).endswith(f"Largest that fits: batch = 16, {small.jax / 1000:.1f} KB.")
    assert json.loads(json.dumps(sweep.to_dict()))["rows"][1]["over"] == large.over


def test_what_a_program_says_is_escaped() -> None:
    row = SweepRow({"<b>": 8}, {}, {}, "<i>no</i>")
    shown = Sweep("<f>", "cpu", (row,))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "&lt;i&gt;no" in shown
    assert "<b>" not in shown + shown.replace("<i>", "<b>")


class Linear(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.linear = nnx.Linear(4, 4, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)


@nnx.jit(donate_argnames=("model", "optimizer"))
def nnx_step(model: Any, optimizer: Any, x: Any) -> Any:
    value, gradients = nnx.value_and_grad(lambda m: m.dropout(m.linear(x)).sum())(model)
    optimizer.update(model, gradients)
    return value


def nnx_call(rows: int) -> tuple[Any, ...]:
    model = Linear(nnx.Rngs(0))
    return nnx_step, model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param), jnp.ones((rows, 4))


class Scale(eqx.Module):
    w: jax.Array
    name: str = eqx.field(static=True)

    @eqx.filter_jit(donate="all-except-first")
    def apply(self, x: Any) -> Any:
        return x * self.w


def sharded(rows: int) -> Any:
    mesh = jax.make_mesh((1,), ("d",))
    return jax.device_put(jnp.ones((rows, 4)), NamedSharding(mesh, PartitionSpec("d")))


CALLS: Mapping[str, Callable[[int], tuple[Any, ...]]] = {
    "jit": lambda rows: (STEP, *given(rows)),
    "plain function": lambda rows: (train_step, *given(rows)),
    "static arguments": lambda rows: (
        jax.jit(lambda n, x, y: x * n + y.sum(), static_argnums=0, donate_argnums=1),
        3,
        jnp.ones((rows, 2)),
        np.ones((5, 2)),
    ),
    "the same array twice": lambda rows: (lambda x, y: x @ y.T, *[jnp.ones((rows, 2))] * 2),
    "shapes alone": lambda rows: (lambda x, y: x @ y.T, *[jax.ShapeDtypeStruct((rows, 2), "float32")] * 2),
    "committed": lambda rows: (lambda x: x + 1, sharded(rows)),
    "typed keys": lambda rows: (lambda x: jax.random.bits(x[0]), jax.random.split(jax.random.key(0), rows)),
    "nnx.jit": nnx_call,
    "eqx.filter_jit": lambda rows: (eqx.filter_jit(lambda m, x: m.w + x), Scale(jnp.ones(4), "s"), jnp.ones((rows, 4))),
    "a method of equinox": lambda rows: (Scale(jnp.ones(4), "s").apply, jnp.ones((rows, 4))),
}


@pytest.mark.parametrize("kind", CALLS)
def test_lowered_again_it_is_as_inspected_at_that_size(kind: str) -> None:
    call = CALLS[kind]
    origin, wanted = (FromFunction(fn, args, {}) for fn, *args in (call(6), call(10)))
    shapes = {
        leaf.index: new.shape
        for leaf, new in zip(origin.signature.arguments, wanted.signature.arguments, strict=True)
        if leaf.shape != new.shape
    }
    assert shapes
    resized = origin.resized(shapes)
    assert resized.signature == wanted.signature
    assert str(resized.module) == str(wanted.module)


def test_an_array_is_changed_where_it_is_named_alone() -> None:
    shared = jnp.ones((6, 2))
    origin = FromFunction(lambda x, y: x @ y.T, (shared, shared), {})
    resized = origin.resized(dict.fromkeys(select(origin.signature, ["y"]), (10, 2)))
    assert [leaf.shape for leaf in resized.signature.arguments] == [(6, 2), (10, 2)]


def test_the_model_of_nnx_is_left_alone_and_still_trains() -> None:
    step, model, optimizer, x = nnx_call(6)
    kernel = model.linear.kernel.get_value()
    FromFunction(step, (model, optimizer, x), {}).resized({len(jax.tree.leaves(nnx.state((model, optimizer)))): (3, 4)})
    assert model.linear.kernel.get_value() is kernel
    step(model, optimizer, x)
    assert model.linear.kernel.get_value() is not kernel


def test_no_array_is_kept_for_it() -> None:
    big = jnp.ones((1024, 1024))
    origin = FromFunction(lambda x: x + 1, (big,), {})
    watched = weakref.ref(big)
    del big
    gc.collect()
    assert watched() is None
    assert origin.resized({0: (5, 1024)}).signature.results[0].shape == (5, 1024)


def test_several_names_change_together_what_cannot_be_traced_is_a_row_and_what_is_donated_stays() -> None:
    def add(x: Any, target: Any) -> Any:
        return x + target

    inspection = inspect(add, *[jnp.ones((4, 1024))] * 2).donate("x")
    sweep = inspection.sweep({"target": [8, 8]}, x=[8, (9, 1024)])
    good, bad = sweep
    assert good.sizes == {"target": 8, "x": 8}
    assert totals(good) == (3 * 8 * 4096, 2 * 8 * 4096)
    assert totals(bad) == (None, None)
    assert bad.status == "not lowered"
    assert "incompatible shapes for broadcasting: (9, 1024), (8, 1024)" in str(bad.error)
    assert "(9, 1024)" in repr(sweep)


def test_cancelled_sizes_are_rows_and_are_compiled_the_next_time() -> None:
    inspection = inspect(lambda x: x + 1, jnp.ones(4))
    cancel = threading.Event()
    said: list[str] = []

    def stop(_done: int, _all: int, label: str) -> None:
        said.append(label)
        cancel.set()

    cancel.set()
    assert [row.status for row in inspection.sweep(x=[8, 16], cancel=cancel)] == ["not lowered"] * 2
    cancel.clear()
    first = inspection.sweep(x=[8, 16], cancel=cancel, progress=stop)
    assert said[0] in ("x = 8: none = jax", "x = 16: none = jax")
    again = inspection.sweep(x=[8, 16], progress=lambda *_: None)
    assert [totals(row) for row in again] == [(64, 64), (128, 128)]
    assert all(row.jax in (None, other.jax) for row, other in zip(first, again, strict=True))
    steps: list[str] = []
    assert inspection.sweep(x=[16, 8], progress=lambda *one: steps.append(str(one))).rows == again.rows[::-1]
    assert steps == []
    assert repr(again).endswith("How much memory a device has is not known here: give it as fits='24GB'.")


@pytest.fixture(scope="module")
def named() -> Inspection:
    batch = {"x": jnp.ones((8, 4)), "table": jnp.ones((100, 4)), "scale": jnp.float32(1)}
    return inspect(lambda batch: batch["x"].sum() * batch["scale"] + batch["table"].sum(), batch)


@pytest.mark.parametrize(
    ("sizes", "kind", "words"),
    [
        ({}, TraceError, r"sweep needs sizes: sweep\(batch=\[8, 16, 32\]\)"),
        ({"btch": [8]}, PathError, "no argument 'btch'; near it: batch"),
        (
            {"batch": [8]},
            PathError,
            r"different leading dimensions: batch\['table'\] has 100, batch\['x'\] has 8. Name",
        ),
        ({"batch": [(8, 4)]}, PathError, r"batch is 3 arrays, and \(8, 4\) the shape of one"),
        ({"batch['scale']": [8]}, PathError, "it is a scalar"),
        ("tpu:v5e", TraceError, r"sweep\('tpu:v5e'\): say of which argument, .* target="),
        ([8, 16], TraceError, "say of which argument"),
        ({"batch['x']": 8}, TraceError, "is no list of sizes"),
        ({"batch['x']": "816"}, TraceError, "is no list of sizes"),
        ({"batch['x']": []}, TraceError, "has no sizes"),
        ({"batch['x']": [8.5]}, TraceError, "8.5 is no size"),
        ({"batch['x']": [True]}, TraceError, "True is no size"),
        ({"batch['x']": [(8, -1)]}, TraceError, r"\(8, -1\) is no size"),
        (
            {"batch['x']": [8, 9], "batch['table']": [7]},
            TraceError,
            r"as many of each \(batch\['x'\]: 2, batch\['table'\]: 1\)",
        ),
        ({"batch['x']": [8], "batch": [9]}, PathError, "leading dimensions"),
    ],
)
def test_what_is_no_size_is_told(
    named: Inspection, sizes: dict[str, Any], kind: type[DonationInspectorError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        named.sweep(sizes)


def test_a_name_within_another_is_refused() -> None:
    with pytest.raises(PathError, match=r"batch\['x'\] is meant by more than one of batch, batch\['x'\]"):
        inspect(STEP, *given()).sweep({"batch": [8], "batch['x']": [8]})


def test_an_array_of_an_nnx_object_keeps_its_size() -> None:
    fn, *args = nnx_call(6)
    with pytest.raises(PathError, match="that an NNX object holds"):
        inspect(fn, *args).sweep({"model.linear.bias": [8]})


def test_what_comes_without_its_function_has_fixed_sizes(tmp_path: Any) -> None:
    inspection = inspect(STEP, *given())
    inspection.save(tmp_path / "step.di")
    for fixed in (inspect(STEP.lower(*given())), inspect_ir(inspection.ir), load(tmp_path / "step.di")):
        name = fixed.arguments[-1].path
        with pytest.raises(IRError, match=r"The sizes of this program are fixed.*inspect\(step, params, batch\)"):
            fixed.sweep({name: [77]})
