"""What a person does with the inspector in a notebook, in the real JupyterLab and the real Notebook 7."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, expect

from browser.conftest import OpenNotebook
from browser.notebook_page import NotebookPage

SETUP = """
%load_ext donation_inspector
import jax, jax.numpy as jnp

def step(params, moments, batch):
    gradient = jax.grad(lambda w: (jnp.tanh(batch @ w) ** 2).sum())(params["w"])
    m = 0.9 * moments["m"] + 0.1 * gradient
    v = 0.99 * moments["v"] + 0.01 * gradient ** 2
    return {"w": params["w"] - 0.1 * m / (jnp.sqrt(v) + 1e-8)}, {"m": m, "v": v}

w = jnp.ones((512, 512)) / 512
arguments = {"w": w}, {"m": w + 1, "v": w + 2}, jnp.ones((8, 512))
"""
MAGIC = "%donation new_params, new_moments = step(*arguments)"
LONG = 120_000


def _show(notebook: NotebookPage, index: int) -> Locator:
    """Run the cell and give its widget."""
    notebook.run_cell(index)
    widget = notebook.outputs(index).locator(".di-root[data-ready='1']")
    expect(widget).to_be_visible()
    return widget


def _by(widget: Locator, name: str) -> Locator:
    return widget.get_by_test_id(name)


def test_toggle_compare_measure(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(SETUP, MAGIC, "print('params' in dir(), len(arguments))", height=1600)
    notebook.run_cell(0)
    widget = _show(notebook, 1)
    headline = _by(widget, "headline")
    expect(headline).to_contain_text("Nothing is donated")
    expect(headline).to_contain_text("3.1 MB of arguments could be")

    before = _by(widget, "sub").inner_text()
    _by(widget, "tab-after").click()
    expect(_by(widget, "ir")).not_to_contain_text("materialize_in_destination")
    _by(widget, "donate-moments").check()
    expect(headline).to_contain_text("2.1 MB of 2.1 MB donated")
    expect(_by(widget, "sub")).not_to_have_text(before)
    _by(widget, "tab-diff").click()
    expect(_by(widget, "ir")).to_contain_text("materialize_in_destination")
    expect(_by(widget, "tree")).to_contain_text("aliased")
    _by(widget, "donate-params").check()
    expect(_by(widget, "fix")).to_contain_text('donate_argnames=("params", "moments")')

    _by(widget, "compare").click()
    expect(headline).to_contain_text(re.compile(r"Donation saves .* compiled for cpu"), timeout=LONG)
    expect(_by(widget, "bars")).to_contain_text("compiled with XLA for cpu")
    _by(widget, "measure").click()
    expect(_by(widget, "measured-sentence")).to_contain_text("Measured: donation saves", timeout=LONG)
    expect(_by(widget, "measured-sentence")).to_contain_text("bit-equal")
    expect(headline).to_contain_text("measured")
    notebook.screenshot("widget-light")
    notebook.set_theme("dark")
    notebook.screenshot("widget-dark")

    # What was compiled for this donation is there again after a toggle and its return.
    _by(widget, "donate-params").uncheck()
    expect(headline).to_contain_text("can be reused")
    _by(widget, "donate-params").check()
    expect(headline).to_contain_text("compiled for cpu; measured")
    notebook.run_cell(2)
    expect(notebook.outputs(2)).to_contain_text("False 3")
    assert notebook.errors == []


def test_a_real_call_and_one_that_failed(open_notebook: OpenNotebook) -> None:
    jitted = (
        "import numpy as np, donation_inspector as di\n"
        "jitted = jax.jit(step, donate_argnums=(0, 1))\n"
        "params, moments = {'w': w + 0}, {'m': w + 1, 'v': w + 2}\n"
        "view = np.asarray(params['w'])\n"
        "found = di.verify(jitted, params, moments, arguments[2])"
    )
    given = "state = {'m': w + 1, 'v': w + 2}\njitted({'w': w + 0}, state, arguments[2])"
    again = "jitted(found.result[0], state, arguments[2])"
    notebook = open_notebook(SETUP, jitted, "found.inspection", given, again, "%donation")
    notebook.run_cell(0)
    notebook.run_cell(1)
    table = (widget := _show(notebook, 2)).locator(".di-arguments")
    expect(table).to_contain_text("2 of 3 donated arguments were reused in your call")
    expect(table.get_by_text("reused in your call", exact=True)).to_be_visible()
    expect(_by(table, "tree")).to_contain_text("still alive")
    _by(widget, "donate-moments").uncheck()
    expect(table.get_by_text("reused in your call", exact=True)).to_be_hidden()

    notebook.run_cell(3)
    notebook.run_cell(4)
    expect(notebook.outputs(4)).to_contain_text("deleted")
    expect(_by(_show(notebook, 5), "headline")).to_contain_text("3.1 MB of 3.1 MB donated")
    expect(notebook.outputs(5)).to_contain_text("state was donated to jitted by the call in cell [4], line 2")


def test_cancel_and_errors_leave_it_usable(open_notebook: OpenNotebook) -> None:
    slow = """
%load_ext donation_inspector
import jax, jax.numpy as jnp
def forever(x):
    return jax.lax.while_loop(lambda c: c[0] < 10**9, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))[1]
"""
    notebook = open_notebook(
        slow, "%donation forever(jnp.ones((64, 64)))", "%donation nothing(1)", "%donation 3", "1 + 1"
    )
    notebook.run_cell(0)
    widget = _show(notebook, 1)
    _by(widget, "measure").click()
    expect(_by(widget, "job")).not_to_be_empty()
    _by(widget, "cancel").click()
    expect(_by(widget, "error").first).to_contain_text("ancelled", timeout=LONG)
    _by(widget, "donate-x").check()
    expect(_by(widget, "headline")).to_contain_text("16.4 KB of 16.4 KB donated")
    for index, words in ((2, "name 'nothing' is not defined"), (3, "`3` is not a call")):
        notebook.run_cell(index)
        expect(notebook.outputs(index)).to_contain_text(words)
        expect(notebook.outputs(index)).not_to_contain_text("Traceback")
    notebook.run_cell(4)
    expect(notebook.outputs(4)).to_contain_text("2")
    _by(widget, "donate-x").uncheck()
    expect(_by(widget, "headline")).to_contain_text("Nothing is donated")


def test_no_key_reaches_the_notebook(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(SETUP, MAGIC, *["1"] * 5)
    notebook.run_cell(0)
    widget = _show(notebook, 1)
    cells, sources = notebook.cell_count(), notebook.sources()
    focusable = widget.locator("button, input, [tabindex], a[href], summary, select, textarea")
    tried = 0
    for index in range(focusable.count()):
        element = focusable.nth(index)
        if not element.is_visible() or element.is_disabled():
            continue
        notebook.command_mode()
        element.focus()
        for key in ("d", "d", "b", "a", "x"):
            notebook.page.keyboard.press(key)
        tried += 1
    assert tried >= 8
    assert notebook.cell_count() == cells
    assert notebook.sources() == sources
    expect(widget).to_be_visible()


def test_twenty_thousand_operations(open_notebook: OpenNotebook) -> None:
    big = """
%load_ext donation_inspector
import jax, jax.numpy as jnp
def unrolled(x, y):
    for i in range(10_000):
        x = x * y + i
    return x
"""
    notebook = open_notebook(big, "%donation unrolled(jnp.ones(4), jnp.ones(4))")
    notebook.run_cell(0)
    notebook.run_cell(1, timeout_ms=LONG)
    widget = notebook.outputs(1).locator(".di-root[data-ready='1']")
    expect(widget).to_be_visible(timeout=LONG)
    operations = notebook.page.evaluate("() => document.querySelector('.di-root').textContent.match(/([\\d,]+) op/)[1]")
    assert int(operations.replace(",", "")) > 20_000
    nodes = "() => document.querySelector('.di-root').querySelectorAll('*').length"
    assert notebook.page.evaluate(nodes) < 400
    ir = _by(widget, "ir")
    ir.evaluate("element => { element.scrollTop = element.scrollHeight; }")
    expect(ir).to_contain_text("return")
    assert notebook.page.evaluate(nodes) < 400
    _by(widget, "donate-x").check()
    expect(_by(widget, "headline")).to_contain_text("16 B of 16 B donated")
    _by(widget, "curve").click(position={"x": 200, "y": 20})
    assert notebook.page.evaluate(nodes) < 400
    assert notebook.errors == []


def test_a_second_widget_while_a_cell_runs(open_notebook: OpenNotebook) -> None:
    wait = "import time\nwhile time.time() < until: time.sleep(.05)\nprint('done waiting')"
    notebook = open_notebook(
        SETUP,
        MAGIC,
        "%donation --donate params step(*arguments)",
        "import time\nuntil = time.time() + 25",
        wait,
        height=2400,
    )
    notebook.run_cell(0)
    first = _show(notebook, 1)
    second = _show(notebook, 2)
    notebook.run_cell(3)
    notebook.start_cell(4)
    if notebook.server.app == "jupyterlab":
        _by(second, "donate-moments").check()
        expect(_by(second, "headline")).to_contain_text("3.1 MB of 3.1 MB donated", timeout=20_000)
        expect(notebook.outputs(4)).not_to_contain_text("done waiting")
        expect(_by(first, "headline")).to_contain_text("Nothing is donated")
    expect(notebook.outputs(4)).to_contain_text("done waiting", timeout=LONG)
    _by(first, "donate-params").check()
    expect(_by(first, "headline")).to_contain_text("1.0 MB of 1.0 MB donated")


def test_a_saved_notebook_needs_no_kernel(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(SETUP, MAGIC)
    notebook.run_cell(0)
    _show(notebook, 1)
    notebook.save()
    output = notebook.saved()["cells"][1]["outputs"][0]["data"]
    assert "Nothing is donated" in "".join(output["text/plain"])
    assert "<table>" in "".join(output["text/html"])
    notebook.reopen_without_kernel()
    expect(notebook.outputs(1)).to_contain_text("params")
    expect(notebook.outputs(1)).to_contain_text("Nothing is donated")


@pytest.mark.parametrize("width", [1200, 600])
def test_it_fits_the_width(open_notebook: OpenNotebook, width: int) -> None:
    notebook = open_notebook(SETUP, MAGIC, width=width, height=1600)
    notebook.run_cell(0)
    widget = _show(notebook, 1)
    assert widget.evaluate("element => element.scrollWidth <= element.clientWidth + 1")
    notebook.screenshot(f"widget-{width}")
