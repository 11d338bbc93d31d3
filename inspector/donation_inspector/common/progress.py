"""Saying what long work is at, where nobody gave a callback: one line in the notebook or on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

Progress = Callable[[int, int, str], None]
"""Called with the steps done, all steps, and what was just done."""


@contextmanager
def reported(given: Progress | None, title: str) -> Generator[Progress]:
    """The callback to use: `given`, or one that shows how far it is behind `title`.

    A notebook keeps the title alone, as it stood there first: a notebook under test can be compared.
    """
    if given is not None:
        yield given
        return
    show, end = _place(title)

    def progress(step: int, steps: int, label: str) -> None:
        show(f"{title} · {label}, {step} of {steps}")

    try:
        yield progress
    finally:
        end()


def _place(title: str) -> tuple[Callable[[str], None], Callable[[], None]]:
    """How to show a line that changes, and what to do at the end."""
    shell = _notebook_shell()
    if shell is not None:
        from IPython import display

        handle: Any = cast(Any, display).display({"text/plain": title}, raw=True, display_id=True)
        show = _in_notebook(handle)
        return show, lambda: show(title)
    if sys.stderr.isatty():
        _on_terminal(title)
        return _on_terminal, lambda: _on_terminal("")
    return _nowhere, lambda: None


def _notebook_shell() -> Any:
    """The running kernel's shell, None outside a notebook and in IPython's terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


def _in_notebook(handle: Any) -> Callable[[str], None]:
    return lambda line: handle.update({"text/plain": line}, raw=True)


def _on_terminal(line: str) -> None:
    # Back to the start of the line, the line, and what was longer before it wiped.
    print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)


def _nowhere(_line: str) -> None:
    return None
