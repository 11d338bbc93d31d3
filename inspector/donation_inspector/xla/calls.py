"""Hears the calls of `jax.jit` functions as they are made, before they run and before they donate anything."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import update_wrapper
from types import FrameType
from typing import Any

import jax

from donation_inspector.errors import TraceError
from donation_inspector.xla import internals

with suppress(internals.MissingNameError):
    internals.register_exclusion(__file__)

_PARAMETERS = ["fun", "ji", "args", "kwargs"]


class Jitted:
    """A function with what its `jax.jit` knows: traced as the `jax.jit` object itself, which is not at hand.

    A call that is under way has no way back to the object that was called.
    """

    def __init__(self, function: Any, info: Any) -> None:
        update_wrapper(self, function)
        self._fun, self._jit_info = function, info

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the plain function."""
        return self._fun(*args, **kwargs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """As `jax.jit(…).trace`."""
        return internals.pjit.jit_trace(self, *args, **kwargs)


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a `jax.jit` function that is about to run, with `frame`, the Python frame that made it."""

    function: Jitted
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    frame: FrameType | None


Heard = Callable[[Call], None]

_changing = threading.RLock()
_listeners: list[tuple[int, Heard]] = []
_within = threading.local()


@contextmanager
def heard(hear: Heard) -> Generator[Callable[[], None]]:
    """While inside, `hear` is told each top-level call of a `jax.jit` function that this thread makes, until `stop()`.

    A function that JAX already dispatches without Python is heard too: the dispatch cache is emptied, which costs each
    function one slower call, and is not filled while anybody listens. Nothing is traced or compiled again for it.

    Raises:
        TraceError: this JAX dispatches in another way.
    """
    entry = (threading.get_ident(), hear)

    def stop() -> None:
        with _changing:
            if entry in _listeners:
                _listeners.remove(entry)
            if _replaced and not _listeners:
                _unhook()

    try:
        with _changing:
            _hook()
            _listeners.append(entry)
            _empty_dispatch_cache()
        yield stop
    finally:
        stop()


_replaced: dict[str, Any] = {}


def _hook() -> None:
    """Stand in for the two functions that a call goes through where the dispatch cache has nothing for it."""
    if _replaced:
        return
    entry = _entry_name()
    infer, remember = getattr(internals.pjit, entry), internals.pjit._get_fastpath_data

    def hearing(function: Any, info: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        # never its own frame in a variable of its own: that is garbage which only the collector finds
        frame = inspect.currentframe()
        frame = None if frame is None else frame.f_back
        # the same function serves .trace() and .lower(), which are no calls
        if frame is not None and frame.f_code.co_name == "cache_miss":
            _tell(function, info, args, kwargs, frame)
        return infer(function, info, args, kwargs)

    def nothing_to_remember(*_args: Any, **_kwargs: Any) -> None:
        return None

    _replaced.update({entry: infer, "_get_fastpath_data": remember})
    setattr(internals.pjit, entry, hearing)
    internals.pjit._get_fastpath_data = nothing_to_remember


def _unhook() -> None:
    for name, original in _replaced.items():
        setattr(internals.pjit, name, original)
    _replaced.clear()
    # A call for which there was nothing to remember would go through Python ever after. What cannot be emptied is told
    # where the listening begins.
    with suppress(internals.MissingNameError):
        _empty_dispatch_cache()


def _empty_dispatch_cache() -> None:
    internals.pjit._cpp_pjit_cache_fun_only.clear()
    internals.pjit._cpp_pjit_cache_explicit_attributes.clear()


def _tell(function: Any, info: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], frame: FrameType) -> None:
    # what a listener does may itself call jitted functions
    if getattr(_within, "telling", False) or not internals.trace_state_clean():
        return
    here = threading.get_ident()
    _within.telling = True
    try:
        for thread, hear in tuple(_listeners):
            if thread == here:
                hear(Call(Jitted(function, info), args, kwargs, _caller(frame)))
    finally:
        _within.telling = False


def _caller(frame: FrameType | None) -> FrameType | None:
    """The frame that called the jitted function, above JAX's own dispatch."""
    dispatch = ("jax._src.pjit", "jax._src.traceback_util")
    while frame is not None and frame.f_globals.get("__name__") in dispatch:
        frame = frame.f_back
    return frame


def _entry_name() -> str:
    """The function of this JAX that takes (function, jit's options, args, kwargs) where a call has to be looked at."""
    for name in ("_infer_params", "_trace_for_jit"):
        found = getattr(internals.pjit, name, None)
        known = found is not None and list(inspect.signature(found).parameters) == _PARAMETERS
        if known and hasattr(internals.pjit, "_get_fastpath_data"):
            return name
    raise TraceError(
        f"di.watch does not know how jax {jax.__version__} dispatches a call; it is tested with jax "
        f"{internals.TESTED}. Give the step and its arguments to di.inspect instead."
    )
