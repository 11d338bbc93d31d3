"""What else fills the device: by variable, each buffer once, and never held."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import importlib
import sys
import types
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import donation_inspector as di
from donation_inspector.present import report
from donation_inspector.questions.outside import ask as outside
from donation_inspector.questions.outside.ask import LiveArray, Outside
from donation_inspector.questions.outside.variables import of_namespace
from donation_inspector.xla.pointers import buffers

ROWS = 8  # times 4 KB


def array(rows: int = ROWS) -> jax.Array:
    return jnp.ones((rows, 1024))


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what other tests of this process keep alive: on eight devices, or failed, which have no address."""
    live = jax.live_arrays
    others = {id(one): one for one in live()}
    monkeypatch.setattr(jax, "live_arrays", lambda *platform: [one for one in live(*platform) if id(one) not in others])


def look(namespace: Mapping[str, Any], *arguments: Any) -> dict[str | None, int]:
    """Bytes by path, of the arrays that the namespace reaches; None for all the others together."""
    found = outside.look("cpu", arguments, of_namespace(namespace))
    sizes: dict[str | None, int] = {}
    for one in found.arrays:
        sizes[one.path] = sizes.get(one.path, 0) + one.nbytes
    return sizes


@dataclasses.dataclass(slots=True)
class Slotted:
    weight: Any


class Model(nnx.Module):
    def __init__(self) -> None:
        self.l1 = nnx.Linear(2, 3, rngs=nnx.Rngs(0))


def closed_over(value: Any) -> Any:
    return jax.jit(lambda x: x + value)


PLACES = {
    "history[3]": lambda value: {"history": [0, 1, 2, value]},
    "log['loss'][0].x": lambda value: {"log": {"loss": (types.SimpleNamespace(x=value),)}},
    "state.count": lambda value: {"state": optax.ScaleByAdamState(value, None, None)},
    "held.weight": lambda value: {"held": Slotted(value)},
    "step.args[0]": lambda value: {"step": functools.partial(max, value)},
    "step.<closure>.value": lambda value: {"step": closed_over(value)},
    "Out[12]": lambda value: {"_": value, "_12": value, "Out": {12: value}, "_oh": {12: value}, "In": ["x"]},
    "_saved": lambda value: {"_saved": value},
    "short": lambda value: {"long": [[value]], "short": value, "Out": {1: value}},
}


@pytest.mark.parametrize("path", PLACES)
def test_an_array_is_named_by_its_shortest_path(path: str) -> None:
    value = array()
    assert look(PLACES[path](value))[path] == value.nbytes


def test_a_models_arrays_are_named_as_the_user_writes_them() -> None:
    model = Model()
    found = look({"model": model})
    assert found["model.l1.kernel"] == 24
    assert found["model.l1.bias"] == 12


def test_a_buffer_counts_once_and_arguments_not_at_all() -> None:
    given, kept = array(), array()
    names = {"given": given, "again": [given], "kept": kept, "same": kept, "part": kept.addressable_shards[0].data}
    found = look(names, given)
    assert [path for path in found if path is not None] == ["kept"]
    assert found["kept"] == kept.nbytes


def test_the_total_is_that_of_the_buffers() -> None:
    given, kept = array(), array()
    found = outside.look("cpu", [given], of_namespace({"kept": kept}))
    parts = {
        (shard.device, shard.data.unsafe_buffer_pointer()): shard.data.nbytes
        for one in jax.live_arrays()
        for shard in one.addressable_shards
        if shard.data.unsafe_buffer_pointer() != given.unsafe_buffer_pointer()
    }
    assert found.total == sum(parts.values())
    assert sum(found.per_device.values()) == found.total
    assert [one.nbytes for one in found.arrays] == sorted((one.nbytes for one in found.arrays), reverse=True)


def test_a_deleted_array_is_gone() -> None:
    value = array()
    value.delete()
    assert "value" not in look({"value": value})


def test_each_device_has_its_part() -> None:
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
    split, copied = (jax.device_put(array(), NamedSharding(mesh, spec)) for spec in (P("x"), P()))
    shards = [shard.data for shard in split.addressable_shards]
    look_at = {"shards": shards, "split": split, "copied": copied}
    found = {one.path: one for one in outside.look("cpu", [], of_namespace(look_at)).arrays}
    assert not any(path.startswith("shards[") for path in found if path)
    assert found["split"].nbytes == split.nbytes
    assert found["split"].per_device == {f"cpu:{i}": split.nbytes // 4 for i in range(4)}
    assert found["copied"].nbytes == 4 * copied.nbytes
    assert found["copied"].per_device == {f"cpu:{i}": copied.nbytes for i in range(4)}


@functools.lru_cache
def cached() -> jax.Array:
    return array(3 * ROWS)


def test_what_no_variable_reaches_is_said_to_be_so() -> None:
    size = cached().nbytes
    found = outside.look("cpu", [], of_namespace({"cached": cached}))
    assert any(one.path is None and one.nbytes == size for one in found.arrays)
    assert outside.NO_VARIABLE in repr(found)


def test_a_huge_namespace_is_not_looked_at_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    value = array()
    monkeypatch.setattr(outside, "Walk", functools.partial(outside.Walk, limit=100))
    for long in ([[i] for i in range(200)], list(range(200))):
        found = outside.look("cpu", [], of_namespace({"long": long, "value": [[[value]]]}))
        assert not found.complete
        assert "Names are from the first" in repr(found)
    assert outside.look("cpu", [], of_namespace({"value": [[[value]]]})).complete


def test_a_ring_ends() -> None:
    ring: list[Any] = [array()]
    ring.append(ring)
    assert look({"ring": ring})["ring[0]"] == ring[0].nbytes


def test_looking_runs_nobodys_code() -> None:
    class Trap:
        @property
        def weight(self) -> Any:
            raise AssertionError("a property was run")

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was asked for")

    look({"trap": Trap()})


def test_the_last_errors_traceback_holds_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(batch: Any) -> None:
        raise ValueError(batch.shape)

    with pytest.raises(ValueError, match="1024") as caught:
        train(array())
    monkeypatch.setattr(sys, "last_traceback", caught.value.__traceback__, raising=False)
    paths = [one.path for one in outside.look("cpu", []).arrays]
    assert "batch in train(), kept by the last error's traceback" in paths


# ---- of an Inspection


def step(w: Any, x: Any, unread: Any) -> Any:  # noqa: ARG001
    return w * x.sum()


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = types.SimpleNamespace(user_ns={})
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    monkeypatch.setitem(sys.modules, "__main__", types.SimpleNamespace(kept=array()))


def variables() -> dict[str, Any]:
    """Those of the notebook; a local of a test's, its monkeypatch too, would be another way to what is in them."""
    return cast(Any, sys.modules["IPython"]).get_ipython().user_ns


@pytest.mark.usefixtures("notebook")
def test_an_inspection_leaves_out_its_own_arguments() -> None:
    # larger than what an Inspection holds of small inputs
    variables().update(w=array(512), x=array(), unread=array(), old=array(512))
    inspection = di.inspect(jax.jit(step, donate_argnums=0), *(variables()[name] for name in ("w", "x", "unread")))
    paths = [one.path for one in inspection.outside.arrays]
    assert paths[0] == "old"
    assert not {"w", "x", "unread"} & set(paths)
    gc.disable()
    try:
        gone = weakref.ref(variables()["old"])
        del variables()["old"]
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.usefixtures("notebook")
def test_arguments_that_are_gone_are_said_to_be() -> None:
    variables().update(w=array(512), x=array(512))
    inspection = di.inspect(step, variables()["w"], variables()["x"], jax.ShapeDtypeStruct((1,), jnp.float32))
    assert (inspection.outside.arguments, inspection.outside.gone) == (2, 0)
    variables()["w"].delete()
    del variables()["x"]
    variables()["y"] = array()
    assert (inspection.outside.arguments, inspection.outside.gone) == (0, 2)
    assert "2 arguments that are gone since" in inspection.outside.sentence()


@pytest.mark.usefixtures("script")
def test_a_script_has_the_variables_of_its_main_module() -> None:
    found = di.inspect(step, *[jax.ShapeDtypeStruct((2,), jnp.float32)] * 3).outside
    assert "kept" in {one.path for one in found.arrays}


def test_the_locals_of_the_functions_under_way_are_named() -> None:
    mine = {"deep": [array()]}

    def helper(given: Any) -> dict[str | None, int]:
        own = array(2 * ROWS)
        return {one.path: one.nbytes for one in outside.look("cpu", [given]).arrays} | {"own": own.nbytes}

    given = array()
    again = given  # noqa: F841
    name = "test_the_locals_of_the_functions_under_way_are_named()"
    found = helper(given)
    assert found["own"] == 2 * array().nbytes
    assert found[f"mine['deep'][0] in {name}"] == mine["deep"][0].nbytes
    assert not {f"given in {name}", "given", f"again in {name}"} & found.keys()
    said = Outside((live(f"mine['a in b()'][0] in {name}", 10, d0=10),)).sentence()
    assert said.endswith(f": mine in {name} 10 B.")


def test_looking_at_locals_keeps_none_alive() -> None:
    def train() -> tuple[list[str | None], Any]:
        value = array()
        paths = [one.path for one in outside.look("cpu", []).arrays]
        gone = weakref.ref(value)
        del value
        return paths, gone()

    gc.disable()
    try:
        paths, left = train()
    finally:
        gc.enable()
    assert "value" in paths
    assert left is None


def test_what_the_user_called_locals_for_stays_theirs() -> None:
    value = array()
    held = locals()
    outside.look("cpu", [])
    assert held["value"] is value


def test_a_module_of_the_users_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_loop.py").write_text("import jax.numpy as jnp\nhistory = [jnp.ones(999)]\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_loop", raising=False)
    importlib.import_module("my_loop")
    try:
        found = {one.path: one for one in outside.look("cpu", []).arrays}
    finally:
        del sys.modules["my_loop"]
    assert found["history[0] in module my_loop"].nbytes == 4 * 999


def test_what_an_inspection_keeps_is_said_to_be_held_by_it() -> None:
    before = {"first": di.inspect(step, array(), array(), array())}  # noqa: F841
    paths = [one.path for one in di.inspect(step, *[jax.ShapeDtypeStruct((2,), jnp.float32)] * 3).outside.arrays]
    assert paths.count("held by before['first'] (Inspection)") == 3
    said = Outside((live("held by before['first'] (Inspection)", 10, d0=10),)).sentence()
    assert said.endswith(": held by before['first'] (Inspection) 10 B.")


@pytest.mark.usefixtures("notebook")
def test_the_report_tells_it_after_compare_and_a_saved_notebook_never() -> None:
    variables()["old"] = array(256)
    inspection = di.inspect(step, jnp.ones(64), jnp.ones(64), 1.0)
    assert "What else fills" not in inspection.report()
    inspection.compare()
    (line,) = [line for line in inspection.report().splitlines() if line.startswith("What else fills cpu:0")]
    assert "old 1.0 MB" in line
    assert "What else fills" in report.page(inspection)
    assert "What else fills" not in report.summary(inspection) + report.static_html(inspection)


def test_a_platform_that_is_not_here_is_unknown() -> None:
    found = outside.look("rocm", [])
    assert (found.known, found.total) == (False, None)
    assert "unknown" in repr(found)


# ---- in words


def live(path: str | None, nbytes: int, **per_device: int) -> LiveArray:
    return LiveArray(path, "f32[?]", nbytes, {f"cpu:{name[1:]}": size for name, size in per_device.items()})


def test_variables_are_added_up_in_the_sentence() -> None:
    arrays = (
        live("history[0]", 3000, d0=3000),
        live("history[1]", 3000, d0=3000),
        live("Out[12]", 2000, d0=2000),
        live(None, 1000, d0=1000),
        live("Out[7].x", 900, d0=900),
    )
    said = Outside(arrays, 3, 2).sentence()
    assert said == (
        "What else fills cpu:0 besides this call's 3 arrays, 9.9 KB: history (2 arrays) 6.0 KB, Out[12] 2.0 KB, "
        "no variable found 1.0 KB, 1 more. What took the place of 2 arguments that are gone since is among it."
    )


def test_several_devices_tell_the_fullest() -> None:
    said = Outside((live("a", 3000, d0=1000, d1=2000), live("b", 500, d0=500)), unplaced=2).sentence()
    assert "2 devices where no array of this call is, at most 2.0 KB on one (cpu:1)" in said
    assert "2 of unknown size" in said
    assert Outside((live("a", 10, d0=10),), unplaced=1).total is None


def test_nothing_else_is_said() -> None:
    assert Outside(()).sentence().startswith("Nothing else is alive")
    assert Outside(()).total == 0


def test_names_are_text_in_a_notebook() -> None:
    shown = Outside((live("d['<script>']", 10, d0=10),))._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_numpys_arrays_are_not_the_devices() -> None:
    assert look({"host": np.ones(10)}).keys() <= {None}


def test_an_array_whose_computation_failed_has_no_address() -> None:
    # asked for it, jaxlib ends the process
    huge = jax.jit(lambda x: jnp.cumsum(jnp.broadcast_to(x, (1 << 20, x.size)), axis=1))
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        failed = huge(jnp.ones(1 << 24))
        assert buffers(failed) is None
