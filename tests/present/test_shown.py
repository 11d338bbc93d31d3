"""A cell that is run again closes the widgets that it showed before; what is closed is freed."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import start_new_kernel

from donation_inspector.present import shown

SETUP = """
import jax, jax.numpy as jnp, donation_inspector as di
step = jax.jit(lambda w, g: w - g, donate_argnums=0)
args = jnp.ones((8, 8)), jnp.ones((8, 8))
"""


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    shell.run_cell("%load_ext donation_inspector\n" + SETUP)
    yield shell
    shown._cells.clear()
    InteractiveShell.clear_instance()


def _instances() -> dict[str, Any]:
    from ipywidgets.widgets import widget

    return dict(widget._instances)


def _run(shell: InteractiveShell, code: str, cell: str | None) -> weakref.ref[Any]:
    """Run a cell; the widget that it showed last."""
    before = set(_instances())
    result = shell.run_cell(code, store_history=True, cell_id=cell)
    assert result.success
    found = [one for key, one in _instances().items() if key not in before]
    return weakref.ref(next(one for one in found if type(one).__name__ == "DonationWidget"))


@pytest.mark.parametrize("cell", ["a", None], ids=["by id", "by text"])
def test_a_rerun_frees_the_widget_and_what_its_inspection_would_make_again(shell: Any, cell: str | None) -> None:
    first = _run(shell, "%donation step(*args)", cell)
    inspection = shell.user_ns["_"]
    imported = weakref.ref(inspection._subject.imported)
    second = _run(shell, "%donation step(*args)", cell)
    gc.collect()

    assert first() is None
    assert imported() is None
    assert second() is not None
    assert not second().closed
    assert inspection.arguments[0].donated
    assert inspection.apply().pairs == {0: 0}


def test_another_cell_and_the_same_inspection_shown_again_close_nothing(shell: Any) -> None:
    first = _run(shell, "seen = di.inspect(step, *args); seen", "a")
    second = _run(shell, "%donation step(*args)", "b")
    shell.run_cell("seen", store_history=True, cell_id="c")
    shell.run_cell("seen", store_history=True, cell_id="c")
    shell.run_cell("1 + 1", store_history=True, cell_id="a")
    assert not first().closed
    assert not second().closed
    shell.run_cell("1 + 1", store_history=True, cell_id="c")
    gc.collect()
    assert first() is None
    assert not second().closed


def test_a_closed_widget_is_freed_and_its_inspection_is_shown_anew(shell: Any) -> None:
    first = _run(shell, "seen = di.inspect(step, *args); seen", "a")
    first().close()
    gc.collect()
    assert first() is None
    assert not _run(shell, "seen", "b")().closed


def test_in_a_kernel() -> None:
    manager, client = start_new_kernel(kernel_name="python3", env={**os.environ, "JAX_PLATFORMS": "cpu"})
    try:
        texts: list[str] = []

        def hook(message: dict[str, Any]) -> None:
            content = message["content"]
            texts.append(content.get("text", "") or "\n".join(content.get("traceback", ())))

        def run(code: str) -> str:
            texts.clear()
            client.execute_interactive(code, output_hook=hook, timeout=120)
            return "".join(texts)

        run("%load_ext donation_inspector\n" + SETUP)
        for _ in range(3):
            run("%donation step(*args)")
        counted = "sum(type(one).__name__ == {!r} for one in gc.get_objects())"
        code = f"import gc; gc.collect(); print({counted.format('DonationWidget')}, {counted.format('Imported')})"
        assert run(code).split() == ["1", "1"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
