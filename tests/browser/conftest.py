"""Fixtures: a browser, a JupyterLab and a Notebook 7, and notebooks opened in them.

A test that takes `jupyter` or `open_notebook` runs once in each application. Pictures go to build/browser.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from browser.notebook_page import NotebookPage
from browser.server import Server, running_server

ARTIFACTS = Path(__file__).parents[2] / "build" / "browser"

CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

OpenNotebook = Callable[..., NotebookPage]


def chromium_path() -> str | None:
    """The Chromium named by CHROMIUM or on the PATH; None leaves it to Playwright's own build."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if name and (path := shutil.which(name))), None)


@pytest.fixture(scope="session", autouse=True)
def _end_servers_when_terminated() -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session", params=["jupyterlab", "notebook"])
def jupyter(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


@pytest.fixture
def open_notebook(jupyter: Server, browser: Browser, request: pytest.FixtureRequest) -> Iterator[OpenNotebook]:
    """`open_notebook(*cells, width=1200, height=1000)`: a new notebook of these cells, its kernel idle, nothing run."""
    contexts = []
    pages: list[NotebookPage] = []
    ARTIFACTS.mkdir(parents=True, exist_ok=True)

    def open_(*cells: str, width: int = 1200, height: int = 1000) -> NotebookPage:
        stem = re.sub(r"\W+", "-", request.node.name).strip("-")
        name = f"{stem}-{len(pages)}.ipynb"
        context = browser.new_context(viewport={"width": width, "height": height})
        contexts.append(context)
        notebook = NotebookPage(jupyter, context.new_page(), name, ARTIFACTS)
        pages.append(notebook)
        notebook.open(cells)
        return notebook

    yield open_
    for context in contexts:
        context.close()
    for notebook in pages:
        jupyter.end_session(notebook.name)
