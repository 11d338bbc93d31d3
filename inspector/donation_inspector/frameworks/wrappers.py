"""From the call that `jax.jit` gets to the framework's own jit around it: the call as the user made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any

from donation_inspector.frameworks import nnx
from donation_inspector.xla.traceback_frames import pmap_call


@dataclass(frozen=True, eq=False)
class MadeCall:
    """A function that jits, with the arguments that it was called with; `caller` is the module that called it."""

    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    caller: str


def outermost(jitted: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], frame: FrameType | None) -> MadeCall:
    """The `nnx.jit` or `eqx.filter_jit` call whose own `jax.jit` call is under way; that call itself for any other.

    `frame` is the Python frame that called `jitted`. No framework offers a way from the inner call to the outer one.
    """
    found = None if frame is None else called_in(frame)
    if found is None:
        return MadeCall(jitted, args, kwargs, _module(frame))
    wrapper = found.function
    if isinstance(wrapper, FunctionType):
        return found
    inner = wrapper.jitted_fn if nnx.is_wrapped(wrapper) else wrapper._cached
    return found if getattr(inner, "_fun", None) is jitted._fun else MadeCall(jitted, args, kwargs, _module(frame))


def called_in(frame: FrameType) -> MadeCall | None:
    """The `nnx.jit` or `eqx.filter_jit` call that a frame of these carries out; None for any other frame."""
    module = _module(frame)
    mapped = pmap_call(frame)
    if mapped is not None:
        return MadeCall(*mapped, _module(_above(frame, module)))
    # Reading a frame's variables makes it hold their values: only a framework's frame, which ends with the call.
    held = frame.f_locals if module.startswith(("equinox.", "flax.nnx")) else {}
    if "jit_wrapper" in held:
        wrapper, given = held["jit_wrapper"], tuple(held["args"])
    elif nnx.is_wrapped(held.get("self")) and "args" in held:
        wrapper = held["self"]
        given = _without_partial(wrapper, tuple(held["args"]))
    else:
        return None
    return MadeCall(wrapper, given, held["kwargs"], _module(_above(frame, module)))


def _above(frame: FrameType, module: str) -> FrameType | None:
    above: FrameType | None = frame
    while above is not None and _module(above) == module:
        above = above.f_back
    return above


def _module(frame: FrameType | None) -> str:
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def _without_partial(wrapper: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """In tree mode the wrapper puts the arguments that it holds before those of the call, in the same variable."""
    bound = tuple(getattr(wrapper, "partial_args", ()))
    ahead = args[: len(bound)]
    same = len(ahead) == len(bound) and all(one is other for one, other in zip(ahead, bound, strict=True))
    return args[len(bound) :] if same else args
