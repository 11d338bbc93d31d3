"""What a call of a function that jits gives away, as far as the function itself tells."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from donation_inspector.frameworks import equinox, nnx
from donation_inspector.xla.stage import bind

_OWN = ("jax", "jaxlib")


def is_step(fn: Any) -> bool:
    """Whether a call of it is jitted, by `jax.jit`, `nnx.jit` or `eqx.filter_jit`, and it is none of JAX's own."""
    if str(getattr(fn, "__module__", "")).partition(".")[0] in _OWN:
        return False
    if equinox.wrapped_call(fn, (), {}) is not None:
        return True
    bound, _, _ = bind(fn, (), {})
    return nnx.is_wrapped(bound) or hasattr(bound, "_jit_info")


def donated(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Those of a call's arguments that the function donates, with what a bound method or a partial of it holds.

    Each is the very object that was given; none where nothing tells what is donated.
    """
    filtered = equinox.wrapped_call(fn, args, kwargs)
    if filtered is not None:
        wrapper, args, kwargs = filtered
        named_first = _first_parameter(wrapper) if not args else None
        first = [*args[:1], *(value for name, value in kwargs.items() if name == named_first)]
        rest = [*args[1:], *(value for name, value in kwargs.items() if name != named_first)]
        return [*(first if wrapper.donate_first else ()), *(rest if wrapper.donate_rest else ())]
    jitted, args, kwargs = bind(fn, tuple(args), kwargs)
    args = (*getattr(jitted, "partial_args", ()), *args)
    info: Any = getattr(getattr(jitted, "jitted_fn", jitted), "_jit_info", None)
    if info is None:
        return []
    by_number = [value for number, value in enumerate(args) if number in (info.donate_argnums or ())]
    return [*by_number, *(value for name, value in kwargs.items() if name in (info.donate_argnames or ()))]


def _first_parameter(fn: Any) -> str | None:
    try:
        return next(iter(inspect.signature(fn).parameters), None)
    except (TypeError, ValueError):
        return None
