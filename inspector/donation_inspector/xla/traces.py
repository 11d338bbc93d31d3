"""The traces that a thread makes: one that is alive after tracing is held by a tracer that was stored somewhere.

Nothing public tells of a trace, and to look for tracers among all living objects takes as long as there are many.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from donation_inspector.xla import internals
from donation_inspector.xla.stand_ins import StandIns

Traces = list[weakref.ref[Any]]

_listening: list[tuple[int, Traces]] = []


@contextmanager
def made() -> Generator[Traces]:
    """The traces of functions to jaxprs that this thread makes inside, held weakly."""
    entry = (threading.get_ident(), Traces())
    with _STAND_INS.listening():
        _listening.append(entry)
        try:
            yield entry[1]
        finally:
            _listening.remove(entry)


def are_held(traces: Traces) -> bool:
    """Whether any of them is alive, and not in a cycle alone that waits for the garbage collector."""
    for generation in range(3):
        if all(trace() is None for trace in traces):
            return False
        gc.collect(generation)
    # JAX itself keeps the trace of a function with a derivative of its own (jax.custom_vjp), and no tracer of it
    return any(isinstance(holder, internals.Tracer) for holder in gc.get_referrers(*_alive(traces)))


def _alive(traces: Traces) -> list[Any]:
    return [one for trace in traces if (one := trace()) is not None]


def _replacements() -> dict[str, Any]:
    watched = getattr(internals.core, "ensure_no_leaks", None)
    if watched is None:
        return {}

    def noting(trace: Any) -> Any:
        here = threading.get_ident()
        for thread, traces in tuple(_listening):
            if thread == here:
                traces.append(weakref.ref(trace))
        return watched(trace)

    return {"ensure_no_leaks": noting}


_STAND_INS = StandIns(internals.core, _replacements)
