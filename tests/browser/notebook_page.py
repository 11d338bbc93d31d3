"""One notebook open in the browser: run its cells, read it back, change what surrounds it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import ConsoleMessage, Error, Locator, Page

from browser.server import Server

TIMEOUT_MS = 60_000

# Answers only for the notebook in front, with its kernel connected and nothing left to run.
IDLE = """() => {
    const panel = window.jupyterapp?.shell?.currentWidget;
    const context = panel?.sessionContext;
    const kernel = context?.session?.kernel;
    return !!(panel?.content?.widgets?.length && context.isReady
        && kernel?.status === 'idle' && kernel.connectionStatus === 'connected'
        && panel.content.widgets.every(cell => cell.model.executionState !== 'running'));
}"""
NOTEBOOK = "window.jupyterapp.shell.currentWidget.content"


def notebook_json(cells: Sequence[str]) -> str:
    """An unrun notebook (nbformat 4.5) of these code cells."""
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
            "cells": [
                {
                    "cell_type": "code",
                    "id": f"cell-{index}",
                    "metadata": {},
                    "source": source,
                    "outputs": [],
                    "execution_count": None,
                }
                for index, source in enumerate(cells)
            ],
        }
    )


@dataclass
class NotebookPage:
    """One notebook open in the browser.

    `errors` collects what the page threw or logged as an error since the notebook was open; a test that expects none
    asserts that it is empty.
    """

    server: Server
    page: Page
    name: str
    artifacts: Path
    errors: list[str] = field(default_factory=list)

    def open(self, cells: Sequence[str]) -> None:
        """Write a notebook of these cells, load it, and wait until its kernel is idle."""
        (self.server.root / self.name).write_text(notebook_json(cells))
        self.page.goto(self.server.address(self.name))
        self.wait_idle()
        # From here on: Notebook 7 itself throws while it loads.
        self.page.on("pageerror", self._keep_page_error)
        self.page.on("console", self._keep_console_error)

    def wait_idle(self, timeout_ms: float = TIMEOUT_MS) -> None:
        self.page.wait_for_function(IDLE, timeout=timeout_ms)

    def cell(self, index: int) -> Locator:
        """The code cell at `index`; only cells on or near the screen are in the page."""
        return self.page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{index}']")

    def outputs(self, index: int) -> Locator:
        """The output area of the cell at `index`."""
        return self.cell(index).locator(".jp-Cell-outputArea")

    def start_cell(self, index: int) -> None:
        """Start the cell at `index` and return at once."""
        self.page.evaluate(f"index => {{ {NOTEBOOK}.activeCellIndex = index; }}", index)
        self._start("notebook:run-cell")

    def run_cell(self, index: int, timeout_ms: float = TIMEOUT_MS) -> None:
        """Run the cell at `index` and wait until the kernel has done it."""
        self.start_cell(index)
        self._wait_done(timeout_ms)
        self.wait_idle(timeout_ms)

    def run_all(self, timeout_ms: float = TIMEOUT_MS) -> None:
        """Run every cell in order; whether one that raises stops the rest is a race in the kernel."""
        self._start("notebook:run-all-cells")
        self._wait_done(timeout_ms)
        self.wait_idle(timeout_ms)

    def execution_count(self, index: int) -> int | None:
        return self.page.evaluate(f"index => {NOTEBOOK}.widgets[index].model.executionCount", index)

    def cell_count(self) -> int:
        return self.page.evaluate(f"() => {NOTEBOOK}.widgets.length")

    def sources(self) -> list[str]:
        return self.page.evaluate(f"() => {NOTEBOOK}.widgets.map(cell => cell.model.sharedModel.getSource())")

    def command_mode(self) -> None:
        """Leave the editor: from here on the notebook takes single keys as commands."""
        self.page.evaluate(f"() => {{ {NOTEBOOK}.mode = 'command'; }}")

    def set_theme(self, theme: Literal["light", "dark"]) -> None:
        name = f"JupyterLab {theme.capitalize()}"
        self._start("apputils:change-theme", {"theme": name})
        self._wait_done()
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)

    def save(self) -> None:
        self._start("docmanager:save")
        self._wait_done()

    def saved(self) -> dict[str, Any]:
        """The notebook as it lies on disk."""
        return json.loads((self.server.root / self.name).read_text())

    def reopen_without_kernel(self) -> None:
        """Save, end the kernel, and open the file again where nothing can run it."""
        self.save()
        self.server.end_session(self.name)
        notebook = self.saved()
        # With the language known, the applications would take another kernel that speaks it.
        notebook["metadata"].pop("language_info", None)
        notebook["metadata"]["kernelspec"] = {"name": "absent", "display_name": "Absent", "language": "absent"}
        (self.server.root / self.name).write_text(json.dumps(notebook))
        self.page.goto(self.server.address(self.name))
        self.page.locator(".jp-Dialog .jp-mod-reject").click()
        self.page.locator(".jp-Dialog").wait_for(state="detached")
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()

    def _start(self, command: str, args: dict[str, Any] | None = None) -> None:
        self.page.evaluate(
            """([command, args]) => {
                const state = { done: false, error: null };
                window.harness = state;
                window.jupyterapp.commands.execute(command, args ?? undefined).then(
                    () => { state.done = true; },
                    error => { state.done = true; state.error = String(error); });
            }""",
            [command, args],
        )

    def _wait_done(self, timeout_ms: float = TIMEOUT_MS) -> None:
        self.page.wait_for_function("window.harness.done", timeout=timeout_ms)
        error = self.page.evaluate("window.harness.error")
        assert error is None, error

    def screenshot(self, label: str) -> Path:
        """A picture of the page under the artifacts folder, named after the application and `label`."""
        path = self.artifacts / f"{label}-{self.server.app}.png"
        self.page.screenshot(path=path)
        return path

    def _keep_page_error(self, error: Error) -> None:
        self.errors.append(str(error))

    def _keep_console_error(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")
