"""Bare `%donation` after an error: the call is found again, deleted arrays by their shapes, and who donated them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import start_new_kernel

from donation_inspector.capture.after_error import recover
from donation_inspector.inspection import Inspection

SET_UP = """
import jax, jax.numpy as jnp

def train_step(params, x):
    return jax.tree.map(lambda w: w * 2, params), x.sum()

step = jax.jit(train_step, donate_argnames="params")
look = jax.jit(lambda params: params["w"] + 1)
huge = jax.jit(lambda x: jnp.cumsum(jnp.broadcast_to(x, (1 << 20, x.size)), axis=1))
params, x = {"w": jnp.ones(4), "b": jnp.ones(2)}, jnp.ones(3)
"""


class Notebook:
    """An IPython shell in this process; its cells are numbered from 1, the set-up is cell [1]."""

    def __init__(self) -> None:
        self.shell = InteractiveShell.instance()
        self.shell.run_cell("%load_ext donation_inspector")
        assert self.run(SET_UP) is None

    def run(self, cell: str) -> BaseException | None:
        """What the cell raised."""
        result = self.shell.run_cell(cell, store_history=True)
        return result.error_in_exec or result.error_before_exec

    def donation(self, line: str = "") -> Inspection:
        """What the magic gives, not displayed."""
        found = self.shell.run_line_magic("donation", line)
        assert isinstance(found, Inspection)
        return found

    def refused(self, line: str = "%donation") -> str:
        error = self.run(line)
        assert error is not None
        return f"{type(error).__name__}: {error}"


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    for name in ("last_value", "last_exc", "last_type", "last_traceback"):
        monkeypatch.delattr(sys, name, raising=False)
    yield Notebook()
    InteractiveShell.clear_instance()


def paths(inspection: Inspection) -> list[str]:
    return [argument.path for argument in inspection.arguments]


PARAMS = ["params['b']", "params['w']"]


def late(error: str, call: str, place: str) -> str:
    return (
        f"{error} came up when a result was waited for. JAX runs calls in the background, so that it may be the error "
        f"of any call before; the last one is `{call}` ({place}): this is that call with what its names are bound to "
        "now, inspected.\n"
    )


@pytest.mark.parametrize(
    ("cells", "told", "arguments"),
    [
        pytest.param(
            ["step(params, x)", "y = 1\nstep(params, x)"],
            "ValueError in cell [3], line 2 came out of `step(params, x)`; this is that call, inspected.\n"
            "Deleted by now, and seen by shape alone: params (2 of 2 arrays).\n"
            "params was donated to step by the call in cell [2], line 1: use what it returned in its place.\n",
            [*PARAMS, "x"],
            id="JAX dispatched it without Python",
        ),
        pytest.param(
            ["step(params, x)", "look(params)"],
            "RuntimeError in cell [3], line 1 came out of `look(params)`; this is that call, inspected.\n"
            "Deleted by now, and seen by shape alone: params (2 of 2 arrays).\n"
            "params was donated to step by the call in cell [2], line 1: use what it returned in its place.\n",
            PARAMS,
            id="a frame of JAX's holds it",
        ),
        pytest.param(
            ["step(params, x)", "params = {'w': jnp.ones(4)}\nfor _ in range(3):\n    new, loss = step(params, x)"],
            "ValueError in cell [3], line 3 came out of `step(params, x)`; this is that call, inspected.\n"
            "Deleted by now, and seen by shape alone: params.\n"
            "params was donated to step by this same call, when it ran before: use what it returned in its place.\n",
            ["params['w']", "x"],
            id="in a loop, after it was bound anew",
        ),
        pytest.param(
            ["def fit(mine):\n    for _ in range(2):\n        step(params=mine, x=x)\nfit({'w': jnp.ones(4)})"],
            "ValueError in cell [2], line 3 came out of `step(params=mine, x=x)`; this is that call, inspected.\n"
            "Deleted by now, and seen by shape alone: params (given as mine).\n"
            "mine was most likely donated to step by this same call, when it ran before: use what it returned in its "
            "place.\n",
            ["params['w']", "x"],
            id="in a function, by keyword",
        ),
        pytest.param(
            ["step(params, x)", "step(params, x)", "step(params, x)"],
            "ValueError in cell [4], line 1 came out of `step(params, x)`; this is that call, inspected.\n"
            "Deleted by now, and seen by shape alone: params (2 of 2 arrays).\n"
            "params was most likely donated to step by the call in cell [2], line 1: use what it returned in its ",
            [*PARAMS, "x"],
            id="a cell that was run again and again",
        ),
        pytest.param(
            ["old = params\nparams, _ = step(params, x)", "step(old, x)"],
            "ValueError in cell [3], line 1 came out of `step(old, x)`; this is that call, inspected.\n"
            "Deleted by now, and seen by shape alone: params (2 of 2 arrays, given as old).\n"
            "Which call donated it is not known. Calls here that donate: step donates params (cell [2], line 2).\n",
            [*PARAMS, "x"],
            id="under another name",
        ),
        pytest.param(
            ["step(params, x)", "params['w'] + 1"],
            "RuntimeError in cell [3], line 1: params['w'] has been deleted.\n"
            "params was donated to step by the call in cell [2], line 1: use what it returned in its place.\n"
            "This is that call, inspected.\n",
            [*PARAMS, "x"],
            id="outside of any jitted function",
        ),
        pytest.param(
            ["both = jax.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1))\nboth(x, x)"],
            "JaxRuntimeError in cell [2], line 2 came out of `both(x, x)`; this is that call, inspected.\n",
            ["a", "b"],
            id="one array donated twice",
        ),
        pytest.param(
            ["many = jnp.ones(1 << 24)\njax.block_until_ready(huge(many))"],
            "JaxRuntimeError in cell [2], line 2 came out of `huge(many)`; this is that call, inspected.\n",
            ["x"],
            id="out of memory",
        ),
        pytest.param(
            ["step(params, x)\nstep(params, jnp.ones(3))"],
            "ValueError in cell [2], line 2 came out of `step(params, jnp.ones(3))`; this is that call, inspected.\n"
            "Deleted by now, and seen by shape alone: params (2 of 2 arrays).\n",
            [*PARAMS, "x"],
            id="an argument that JAX made in the call",
        ),
        pytest.param(
            ["late = huge(jnp.ones(1 << 24))\nlate.block_until_ready()"],
            late("JaxRuntimeError in cell [2], line 2", "huge(jnp.ones(1 << 24))", "cell [2], line 1"),
            ["x"],
            id="late",
        ),
        pytest.param(
            ["late = huge(jnp.ones(1 << 24))", "print(late.sum())"],
            late("JaxRuntimeError in cell [3], line 1", "huge(jnp.ones(1 << 24))", "cell [2], line 1"),
            ["x"],
            id="late, in another cell",
        ),
        pytest.param(
            [
                "def unlike(mine): step(mine, x)\n"
                "def train():\n    state = {'w': jnp.ones(5)}\n    for i in range(2):\n"
                "        state, y = step(state, jnp.ones(3))\n        raise RuntimeError('RESOURCE_EXHAUSTED: …')\n"
                "train()"
            ],
            late("RuntimeError in cell [2], line 6", "step(state, jnp.ones(3))", "cell [2], line 5"),
            ["params['w']", "x"],
            id="late, in a function",
        ),
        pytest.param(
            [
                "def train(state):\n    y = None\n    for i in range(2):\n"
                "        if y is not None: raise RuntimeError('INTERNAL: …')\n"
                "        state, y = step(state, x)\n"
                "train({'w': jnp.ones(5)})"
            ],
            late("RuntimeError in cell [2], line 4", "step(state, x)", "cell [2], line 5"),
            ["params['w']", "x"],
            id="late, by what the loop ran before",
        ),
        pytest.param(
            [
                "step(params, x)",
                "try:\n    step(params, x)\nexcept ValueError as error:\n    raise SystemError('mine') from error",
            ],
            "ValueError in cell [3], line 2 came out of `step(params, x)`; this is that call, inspected.\n"
            "Deleted by now, and seen by shape alone: params (2 of 2 arrays).\n"
            "params was donated to step by the call in cell [2], line 1: use what it returned in its place.\n",
            [*PARAMS, "x"],
            id="raised again as another error",
        ),
    ],
)
def test_the_call_that_raised_is_inspected(
    notebook: Notebook, capsys: pytest.CaptureFixture[str], cells: list[str], told: str, arguments: list[str]
) -> None:
    *before, last = cells
    for cell in before:
        notebook.run(cell)
    assert notebook.run(last) is not None
    capsys.readouterr()
    inspection = notebook.donation()
    assert capsys.readouterr().out.startswith(told)
    assert paths(inspection) == arguments


@pytest.mark.parametrize("mode", ["off", "tracebackhide", "remove_frames", "quiet_remove_frames"])
def test_however_jax_shows_its_tracebacks(notebook: Notebook, mode: str) -> None:
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", mode)
    try:
        assert notebook.run("step(params, x)") is None
        assert notebook.run("look(params)") is not None
    finally:
        jax.config.update("jax_traceback_filtering", before)
    assert paths(notebook.donation()) == PARAMS


def test_arguments_that_were_made_in_the_call_are_there_where_jax_holds_them(notebook: Notebook) -> None:
    assert notebook.run("step(params, x)") is None
    assert notebook.run("jax.jit(train_step)(params, jnp.ones(5))") is not None
    inspection = notebook.donation()
    assert {argument.path: argument.shape for argument in inspection.arguments}["x"] == (5,)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([], "MagicError: %donation needs a call to look at, or an error before it: %donation [--donate PATH]"),
        (
            ["1 / 0"],
            "TraceError: ZeroDivisionError in cell [2], line 1: division by zero. It did not come out of a jitted call "
            "that can be found. Write the call, as in `%donation train_step(params, batch)`; it is traced, never run.",
        ),
        (
            ["step(params, undefined_name)"],
            "TraceError: NameError in cell [2], line 1: name 'undefined_name' is not defined. It did not come out of a "
            "jitted call that can be found. Write the call",
        ),
        (
            ["def load(): return jnp.ones(3)\nstep(params, x)\nstep(params, load())"],
            "TraceError: ValueError in cell [2], line 3 came out of `step(params, load())`. Its argument "
            "`load()` is gone, and would have to be computed again. Put it into a variable, and write the call "
            "with that: `%donation step(…)`. It is traced, never run.",
        ),
        (
            ["def load(): return jnp.ones(1 << 24)\nlate = huge(load())\nlate.block_until_ready()"],
            "TraceError: JaxRuntimeError in cell [2], line 3 came up when a result was waited for. JAX runs calls in "
            "the background, so that it may be the error of any call before; the last one is `huge(load())` (cell [2], "
            "line 2). To look at it: `%donation huge(load())`.",
        ),
        (
            ["def train(mine):\n    new, y = step(mine, x + 1)\n    raise RuntimeError('INTERNAL: …')\ntrain(params)"],
            "TraceError: RuntimeError in cell [2], line 3 came up when a result was waited for. JAX runs calls in the "
            "background, so that it may be the error of any call before; the last one is `step(mine, x + 1)` (cell "
            "[2], line 2). Its argument `x + 1` would have to be computed again, and `mine` is local to `train`. Write "
            "`%donation step(…)` with variables that are there, or with jax.ShapeDtypeStruct(shape, dtype).",
        ),
        (
            ["old = params['w']\nparams, _ = step(params, x)\nold + 1"],
            "TraceError: RuntimeError in cell [2], line 3: old has been deleted. Which call donated it is not known. "
            "Calls here that donate: step donates params (cell [2], line 2). Write the call, as in `%donation "
            "train_step(params, batch)`: what is deleted can be given as jax.ShapeDtypeStruct(shape, dtype).",
        ),
    ],
)
def test_what_cannot_be_recovered_is_one_message(notebook: Notebook, cells: list[str], words: str) -> None:
    for cell in cells:
        notebook.run(cell)
    assert notebook.refused().startswith(words)


def test_a_call_that_failed_once_is_not_taken_for_the_one_that_donated(notebook: Notebook, capsys: Any) -> None:
    assert notebook.run(
        "broken = True\n"
        "def inner(params, y):\n"
        "    if broken: raise LookupError\n"
        "    return params, y\n"
        "trial = jax.jit(inner, donate_argnums=0)\n"
        "params['w'].delete()\n"
        "trial(params, x)"
    )
    notebook.shell.user_ns["broken"] = False
    capsys.readouterr()
    notebook.donation()
    assert capsys.readouterr().out == (
        "LookupError in cell [2], line 7 came out of `trial(params, x)`; this is that call, inspected.\n"
        "Deleted by now, and seen by shape alone: params (1 of 2 arrays).\n"
        "Which call donated it is not known: no code that is at hand donates it.\n"
    )


def test_a_cell_that_failed_comes_after_one_that_did_not(notebook: Notebook, capsys: Any) -> None:
    assert notebook.run("step(params, undefined)")
    for cell in ("step(params, x)", "step(params, x)"):
        notebook.run(cell)
    capsys.readouterr()
    notebook.donation()
    assert "params was most likely donated to step by the call in cell [3], line 1" in capsys.readouterr().out


def test_after_a_refusal_the_first_error_is_still_looked_at(notebook: Notebook) -> None:
    notebook.run("step(params, x)")
    notebook.run("step(params, x)")
    assert "There is no target" in notebook.refused("%donation --target moon")
    assert paths(notebook.donation()) == [*PARAMS, "x"]


def test_nothing_of_the_users_runs_again(notebook: Notebook) -> None:
    notebook.run(
        "ran = []\n"
        "class Data:\n"
        "    @property\n"
        "    def batch(self): ran.append('property'); return x\n"
        "    def __getitem__(self, i): ran.append('item'); return x\n"
        "    def __getattr__(self, name): ran.append(name); return x\n"
        "data = Data()\n"
        "step(params, x)"
    )
    for code in ("data.batch", "data[0]", "data.other"):
        assert notebook.run(f"step(params, {code})") is not None
        notebook.shell.user_ns["ran"].clear()
        assert f"Its argument `{code}` is gone" in notebook.refused()
    assert notebook.shell.user_ns["ran"] == []


TRAINER = """
import jax, jax.numpy as jnp

class Trainer:
    def __init__(self):
        self.params = {"w": jnp.ones(4)}
        self.step = jax.jit(lambda params, batch: (params["w"] * batch.sum(), batch), donate_argnums=0)

    def fit(self, batches):
        for batch in batches:
            self.step(self.params, batch)
"""


@pytest.mark.parametrize("folder", ["mine", "site-packages"])
def test_a_loop_in_a_file_of_the_users_or_of_a_librarys(
    notebook: Notebook, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "my_trainer.py").write_text(TRAINER)
    monkeypatch.syspath_prepend(tmp_path / folder)
    monkeypatch.delitem(sys.modules, "my_trainer", raising=False)
    assert notebook.run("import my_trainer\nmy_trainer.Trainer().fit([x, x])") is not None
    capsys.readouterr()
    assert paths(notebook.donation()) == ["params['w']", "batch"]
    assert capsys.readouterr().out.startswith(
        "ValueError in my_trainer.py, line 11 came out of `self.step(self.params, batch)`; this is that call, "
        "inspected.\n"
        "Deleted by now, and seen by shape alone: params (given as self.params).\n"
        "self.params was most likely donated to self.step by this same call, when it ran before: use what it "
        "returned in its place."
    )


def test_in_a_real_kernel_after_it_ran_out_of_memory() -> None:
    manager, client = start_new_kernel(kernel_name="python3", env={**os.environ, "JAX_PLATFORMS": "cpu"})
    try:

        def run(code: str) -> list[dict[str, Any]]:
            said: list[dict[str, Any]] = []
            client.execute_interactive(code, timeout=120, output_hook=said.append)
            return [one["content"] for one in said if one["msg_type"] in ("stream", "error", "execute_result")]

        # Where calls run in the background, a CPU's out-of-memory error only comes up when the result is waited for.
        set_up = "import jax; jax.config.update('jax_cpu_enable_async_dispatch', False)\n%load_ext donation_inspector"
        assert run(f"{set_up}\n{SET_UP}") == []
        (error,) = run("huge(jnp.ones(1 << 24))")
        assert "RESOURCE_EXHAUSTED: Out of memory" in error["evalue"]
        told, shown = run("%donation")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert told["text"] == (
        "JaxRuntimeError in cell [2], line 1 came out of `huge(jnp.ones(1 << 24))`; this is that call, inspected.\n"
    )
    assert {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"} <= shown["data"].keys()
    assert "x         1 leaf  67.1 MB" in shown["data"]["text/plain"]


def test_a_deleted_argument_of_an_inspection_says_who_donated_it(notebook: Notebook) -> None:
    notebook.run("step(params, x)")
    for cell in ("%donation look(params)", "import donation_inspector as di\ndi.inspect(look, params)"):
        assert notebook.refused(cell) == (
            "DeletedError: params['b'], params['w']: these arrays have been deleted. params was donated to step by the "
            "call in cell [2], line 1: use what it returned in its place. Or give jax.ShapeDtypeStruct(shape, dtype)."
        )


def test_a_compile_that_failed_is_the_program_that_was_to_be_compiled() -> None:
    lowered = jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((4,), "float32"))
    with pytest.raises(Exception, match="no_such_option") as raised:
        lowered.compile({"no_such_option": True})
    assert recover(raised.value).function is lowered


FLAX = """
import optax
from flax import nnx

class Net(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(3, 3, rngs=rngs)

@nnx.jit
def fit(model, opt, x):
    gradients = nnx.grad(lambda m: m.linear(x).sum())(model)
    opt.update(model, gradients)

model = Net(nnx.Rngs(0))
opt = nnx.Optimizer(model, optax.sgd(0.1, 0.9), wrt=nnx.Param)
kernel = model.linear.kernel.get_value()
take = jax.jit(lambda kernel: kernel + 1, donate_argnums=0)
take(kernel)
"""


def test_a_model_of_nnx_is_seen_by_shape_and_left_as_it_is(notebook: Notebook, capsys: Any) -> None:
    assert notebook.run(FLAX) is None
    assert notebook.run("fit(model, opt, jnp.ones((2, 3)))") is not None
    inspection = notebook.donation()
    told = capsys.readouterr().out
    assert "Deleted by now, and seen by shape alone: model (1 of 2 arrays)." in told
    assert "kernel was donated to take by the call in cell [2], line 17" in told
    shapes = {argument.path: argument.shape for argument in inspection.arguments}
    assert shapes["model.linear.kernel"] == (3, 3)
    assert shapes["x"] == (2, 3)
    assert notebook.shell.user_ns["model"].linear.kernel.get_value() is notebook.shell.user_ns["kernel"]


EQUINOX = """
import equinox as eqx

class Net(eqx.Module):
    w: jax.Array
    @eqx.filter_jit(donate="all")
    def scale(self, by):
        return self.w * by.sum(), by
net = Net(jnp.ones(3))
"""


def test_a_method_of_equinox_gives_its_object_away(notebook: Notebook, capsys: Any) -> None:
    assert notebook.run(EQUINOX) is None
    assert notebook.run("net.scale(jnp.ones(2))") is None
    assert notebook.run("net.scale(jnp.ones(2))") is not None
    inspection = notebook.donation()
    assert paths(inspection) == ["self.w", "by"]
    assert "net was donated to net.scale by the call in cell [3], line 1" in capsys.readouterr().out


def test_a_pmap_step_that_donated_its_arguments_is_found(notebook: Notebook) -> None:
    notebook.run("train = jax.pmap(train_step, donate_argnums=0)\nstate = {'w': jnp.ones((1, 4))}")
    notebook.run("train(state, jnp.ones((1, 3)))")
    assert notebook.run("train(state, jnp.ones((1, 3)))") is not None

    inspection = notebook.donation()

    assert inspection.name == "train_step"
    assert inspection.arguments[0].shape == (1, 4)
    assert inspection.arguments[0].donated
