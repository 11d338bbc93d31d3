"""XLA's own buffers in the widget: what fills the peak, variant by variant, here and on a device that is not here."""

from __future__ import annotations

import importlib.util
import re

from playwright.sync_api import expect

from browser.conftest import OpenNotebook
from browser.test_widget import LONG, SETUP


def test_compare_shows_what_fills_the_peak(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(SETUP, "%donation --donate params --donate moments step(*arguments)", height=1800)
    notebook.run_cell(0)
    notebook.run_cell(1)
    widget = notebook.outputs(1).locator(".di-root[data-ready='1']")
    by = widget.get_by_test_id
    expect(by("peak-sentence")).to_contain_text("Compare asks XLA")
    expect(by("schedule")).to_be_hidden()

    by("compare").click()
    sentence = by("peak-sentence")
    expect(sentence).to_contain_text("are held", timeout=LONG)
    expect(sentence).to_contain_text("optimizer state")
    expect(by("class-legend")).to_contain_text("parameters")
    expect(by("contributors").locator("li")).not_to_have_count(0)
    expect(by("schedule")).to_contain_text("XLA’s schedule, cpu, compiled")
    donated = sentence.inner_text()
    by("variant-none").click()
    expect(sentence).not_to_have_text(donated)
    expect(sentence).to_contain_text("results")
    by("contributors").locator("button").first.click()
    expect(by("contributor-details")).to_be_visible()

    canvas = by("xla-curve")
    canvas.focus()
    notebook.page.keyboard.press("Home")
    expect(canvas).to_have_attribute("aria-valuenow", "0")
    expect(by("xla-readout").locator("tbody tr")).to_have_count(2)
    by("tab-program").click()
    expect(by("curve")).to_be_visible()
    expect(canvas).to_be_hidden()
    by("tab-xla").click()
    assert widget.evaluate("element => element.scrollWidth <= element.clientWidth + 1")

    # libtpu comes with an extra: without it the choice says so
    tpu = by("target").locator("option[value='tpu:v5e']")
    if importlib.util.find_spec("libtpu") is None:
        expect(tpu).to_be_disabled()
        expect(by("missing-targets")).to_contain_text("pip install")
    else:
        by("target").select_option("tpu:v5e")
        expect(by("measure")).to_be_disabled()
        expect(by("not-here")).to_contain_text("compiled, not run")
        by("compare").click()
        expect(by("schedule")).to_contain_text(re.compile(r"tpu:v5e\S*, compiled, not run"), timeout=LONG)
        expect(by("peak-fits")).to_contain_text("fits the 16.9 GB")
        expect(by("facts")).to_contain_text("HBM")
        expect(by("targets").locator("tbody tr")).to_have_count(6)
        expect(by("targets").locator("tbody tr").first).to_contain_text("tpu:v5e")
    notebook.screenshot("buffers")
    assert notebook.errors == []
