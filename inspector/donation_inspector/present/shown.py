"""Which cell shows which widget: a cell that is run again closes those that it showed before and does not show now.

Cells are known by the id that the front end gives them, by their text where it gives none.
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import WeakSet


class Widget(Protocol):
    """What a cell shows."""

    def let_go(self) -> None:
        """The cell is run again."""
        ...

    def replaced(self) -> None:
        """That took its place."""
        ...


class Cells:
    """The widgets of one IPython shell by the cells that show them."""

    def __init__(self, shell: Any) -> None:
        """Listens to the shell's cells from now on."""
        self._shown: dict[str, WeakSet[Widget]] = {}
        self._now = WeakSet[Widget]()
        self._running = True
        shell.events.register("pre_run_cell", self._begin)
        shell.events.register("post_run_cell", self._end)

    def note(self, widget: Widget) -> None:
        """The cell that is run shows a widget; what a callback shows belongs to no cell."""
        if self._running:
            self._now.add(widget)

    def _begin(self, info: Any) -> None:
        self._running = True
        # most often the cell makes the same anew: both at once would take twice the memory
        for widget in tuple(self._shown.get(_name(info), ())):
            widget.let_go()

    def _end(self, result: Any) -> None:
        cell = _name(result.info)
        before, self._shown[cell] = self._shown.get(cell, ()), self._now
        self._now, self._running = WeakSet[Widget](), False
        self._shown = {cell: widgets for cell, widgets in self._shown.items() if widgets}
        kept = [widget for widgets in self._shown.values() for widget in widgets]
        for widget in tuple(before):
            if not any(widget is one for one in kept):
                widget.replaced()


def _name(info: Any) -> str:
    return str(getattr(info, "cell_id", None) or info.raw_cell)


_cells: list[tuple[Any, Cells]] = []


def note(widget: Widget) -> None:
    """Remember that the cell that is run shows a widget; nothing outside of IPython."""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    if shell is None:
        return
    if not any(known is shell for known, _ in _cells):
        _cells[:] = [(shell, Cells(shell))]
    _cells[-1][1].note(widget)
