"""Saying what long work is at, where nobody gave a callback: one line in the notebook or on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

Progress = Callable[[int, int, str], None]
"""Called with the steps done, all steps, and what was just done."""


@contextmanager
def reported(given: Progress | None, doing: str, done: str) -> Generator[Progress]:
    """The callback to use: `given`, or one that shows `doing` and how far it is; `done` is what stays in a notebook.

    What stays is the same in every run, so that a notebook under test can be compared.
    """
    if given is not None:
        yield given
        return
    show, end = _place()

    def progress(step: int, steps: int, label: str) -> None:
        show(f"{doing}: {label}, {step} of {steps}")

    show(f"{doing} …")
    try:
        yield progress
    except BaseException:
        end(f"{doing}: not finished")
        raise
    end(done)


def _place() -> tuple[Callable[[str], None], Callable[[str], None]]:
    """How to show a line that changes, and how to show the last one."""
    shell = _notebook_shell()
    if shell is not None:
        from IPython import display

        handle: Any = cast(Any, display).display({"text/plain": ""}, raw=True, display_id=True)
        return _in_notebook(handle), _in_notebook(handle)
    if sys.stderr.isatty():
        return _on_terminal, lambda _line: _on_terminal("")
    return _nowhere, _nowhere


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
