"""The widget's kernel side: traits and messages, no analysis.

Traits carry what `payload.py` makes; messages from the front end are {"type": "donate", "whole": int, "donate": bool},
{"type": "compare", "target": str | None}, {"type": "measure"} and {"type": "cancel"}. JupyterLab delivers them on a
subshell thread while a cell is busy, and may deliver several at once: one lock per widget keeps them in order.
"""

from __future__ import annotations

import functools
import gc
import pathlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import anywidget
import traitlets

from donation_inspector.errors import DonationInspectorError
from donation_inspector.inspection import Inspection
from donation_inspector.present import payload, payload_buffers, report, shown
from donation_inspector.present.payload_buffers import Layout

if TYPE_CHECKING:
    from donation_inspector.questions.compare.answer import Comparison
    from donation_inspector.questions.measure.answer import Measurement

_STATIC = pathlib.Path(__file__).parents[1] / "static"


class DonationWidget(anywidget.AnyWidget):
    """Shows one Inspection and the ones that its checkboxes lead to; `inspection` is the one on the screen."""

    # As paths they would be watched for changes, and the watch of a class holds each widget for ever.
    _esm = traitlets.Unicode((_STATIC / "widget.js").read_text("utf-8")).tag(sync=True)
    _css = traitlets.Unicode((_STATIC / "widget.css").read_text("utf-8")).tag(sync=True)

    program = traitlets.Dict().tag(sync=True)
    ir = traitlets.Unicode().tag(sync=True)
    ranges = traitlets.Bytes().tag(sync=True)
    range_bytes = traitlets.Bytes().tag(sync=True)
    baseline_curve = traitlets.Bytes().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    freed = traitlets.Bytes().tag(sync=True)
    ends = traitlets.Bytes().tag(sync=True)
    comparison = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    xla_curves = traitlets.Bytes().tag(sync=True)
    measurement = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    job = traitlets.Dict().tag(sync=True)

    def __init__(self, inspection: Inspection, **kwargs: Any) -> None:
        self.inspection = self._given = inspection
        self._revision = 0
        self._lock = threading.RLock()
        self._cancel = threading.Event()
        self._thread: threading.Thread | None = None
        self._layouts: dict[bytes, Layout] = {}
        if inspection.comparison is not None:
            self._layouts.update(payload_buffers.read(inspection, inspection.comparison, self._layouts))
        super().__init__(
            **payload.once(inspection),
            **payload.current(inspection, self._revision, self._layouts),
            job=payload.IDLE,
            **kwargs,
        )
        cast(Any, self).on_msg(self._receive)
        _answer_where_asked(self.comm)

    def _receive(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        match content.get("type"):
            case "donate":
                self._donate(int(content["whole"]), bool(content["donate"]))
            case "compare":
                self._start("compare", functools.partial(self._compare_for, content.get("target")))
            case "measure":
                self._start("measure", Inspection.measure)
            case "cancel":
                self._cancel.set()
            case _:
                # A message of a newer or older front end: nothing here can answer it.
                return

    def _donate(self, whole: int, donate: bool) -> None:
        with self._lock:
            name = self.inspection.wholes[whole].name
            self._revision += 1
            try:
                self.inspection = self.inspection.donate(name) if donate else self.inspection.keep(name)
                update = payload.current(self.inspection, self._revision, self._layouts)
            except DonationInspectorError as error:
                self.state = {**self.state, "revision": self._revision, "error": {"text": str(error)}}
                return
            self._show(update)

    def _show(self, update: dict[str, Any]) -> None:
        with self.hold_sync():
            for name, value in update.items():
                setattr(self, name, value)

    def _start(self, kind: str, work: Callable[..., Comparison | Measurement]) -> None:
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._cancel = threading.Event()
            self.job = payload.job(kind, step=0, steps=0, label="starting")
            self._thread = threading.Thread(
                target=self._run, args=(kind, work, self.inspection), name=f"donation-{kind}", daemon=True
            )
            self._thread.start()

    def _compare_for(self, target: str | None, inspection: Inspection, **work: Any) -> Comparison:
        answer = inspection.compare(target, **work)
        self.job = payload.job("compare", step=0, steps=0, label="reading XLA's buffers")
        self._layouts.update(payload_buffers.read(inspection, answer, self._layouts))
        return answer

    def _run(self, kind: str, work: Callable[..., Comparison | Measurement], inspection: Inspection) -> None:
        def progress(step: int, steps: int, label: str) -> None:
            self.job = payload.job(kind, step=step, steps=steps, label=label)

        try:
            answer = work(inspection, progress=progress, cancel=self._cancel)
            cancelled = any(variant.status == "cancelled" for variant in answer.variants.values())
            done = payload.failed(kind, "Cancelled; what was finished before is kept.") if cancelled else payload.IDLE
        except DonationInspectorError as error:
            done = payload.failed(kind, str(error))
        except Exception as error:  # the thread has no cell to raise in: the place on the screen is the only one
            done = payload.failed(kind, f"unexpected {type(error).__name__}: {error}")
        with self._lock:
            self._show({**payload.current(self.inspection, self._revision, self._layouts), "job": done})

    @property
    def closed(self) -> bool:
        """Whether nothing shows it any more."""
        return self.comm is None

    def close(self) -> None:
        """Cancel what runs, then close the comm."""
        self._cancel.set()
        models = cast(Any, self)
        models.on_msg(self._receive, remove=True)
        if models.layout is not None:
            models.layout.close()
        super().close()

    def replaced(self) -> None:
        """Close it, and let go of what its inspections would make again: IPython's `Out` holds them for ever."""
        self.close()
        self.let_go()

    def let_go(self) -> None:
        """Let go of what its inspections make again when they are asked, unless a job is at it."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive() or self._thread is threading.current_thread():
                for inspection in (self._given, self.inspection):
                    inspection.forget()
                # operations and blocks hold each other
                gc.collect()

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle: tuple[dict[str, Any], dict[str, Any]] | None = cast(Any, super())._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        shown.note(self)
        data, metadata = bundle
        # What a saved notebook shows without a kernel, and what nbval compares.
        data["text/plain"] = report.summary(self.inspection)
        data["text/html"] = report.static_html(self.inspection)
        return data, metadata


def _answer_where_asked(comm: Any) -> None:
    """Let messages come in on the shell that the front end chose, so that they do not wait for a busy cell.

    ipykernel 7.4 sends them to the shell that last published on the comm instead, which is the cell's own, and has no
    public way to say otherwise.
    """

    def as_sent(_data: object, default: str | None) -> str | None:
        return default

    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = as_sent
