"""One clear message from whatever a function raised while JAX traced it: what, where in the user's code, what to do."""

from __future__ import annotations

import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_OURS = str(Path(__file__).parent.parent)
_LONGEST = 500

_ADVICE = {
    "TracerBoolConversionError": "Use jnp.where or jax.lax.cond, or make the argument static (static_argnames).",
    "TracerIntegerConversionError": "Make the argument static (static_argnames), or index with JAX operations.",
    "TracerArrayConversionError": "Use jax.numpy instead of numpy inside, or make the argument static.",
    "ConcretizationTypeError": "Make the argument static (static_argnames), or use JAX control flow.",
    "NonConcreteBooleanIndexError": "Use jnp.where with three arguments, or a fixed size.",
    "UnexpectedTracerError": "A value from an earlier trace was stored outside its function: return it instead.",
}


_NO_MESH = re.compile("requires a non-empty mesh|context mesh cannot be empty|not under a mesh context")


def trace_failure(name: str, error: BaseException, function: Any = None) -> str:
    """The message for a function that does not trace or lower."""
    message = shown(str, error)
    not_an_array = re.search(r"is of type <class '([^']+)'> and was passed to the function at path (.+?)\.\s", message)
    if not_an_array:
        type_, path = not_an_array.groups()
        return (
            f"{name} cannot be traced: its argument {path} is a {type_.rpartition('.')[2]}, which is no array for JAX. "
            "Mark it static (static_argnames), leave it out, or use the framework's own jit (eqx.filter_jit, nnx.jit)."
        )
    kind = type(error).__name__
    place = user_line(error)
    where = "" if place is None else f"\n  at {place}"
    if _NO_MESH.search(message):
        return (
            f"{name} needs a mesh, and none is set: {essence(message)}{where}\n"
            f"Inspect it as you call it:\n    with jax.set_mesh(mesh):\n        inspect({name}, …)"
        )
    advice = _ADVICE.get(kind) or _call_advice(message, place, function)
    return f"{name} cannot be traced: {kind}: {essence(message)}{where}" + (f"\n{advice}" if advice else "")


def platform_failure(name: str, platform: str, error: BaseException) -> str:
    """The message for a function that JAX lowers for the devices that are here, and not for another platform."""
    message = essence(shown(str, error))
    if "is different from the lowering platform" in message:
        return (
            f"{name} cannot be lowered for {platform}: it calls back into Python (jax.debug.print, jax.pure_callback, "
            "io_callback), and JAX lowers that for a device that is here alone. Leave the call out for this target."
        )
    return f"{name} cannot be lowered for {platform}: {type(error).__name__}: {message}"


def shown(how: Callable[[Any], str], value: Any) -> str:
    """`str(value)` or `repr(value)`; the user's own `__str__` may raise, and must not hide what is told about it."""
    try:
        return how(value)
    except Exception as error:
        return f"(its {how.__name__}() raises {type(error).__name__})"


def essence(message: str) -> str:
    """The first paragraph of a JAX message, without its links and its note about filtered tracebacks."""
    paragraph = re.split(r"\n\s*\n|\n-{5,}|\nSee https?://", message.strip(), maxsplit=1)[0]
    text = " ".join(re.sub(r"\s*\(https?://[^)]*\)", "", paragraph).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def user_line(error: BaseException) -> str | None:
    """`file.py:12: y = x.reshape(7)`: the innermost line of the traceback outside installed packages."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if _is_user_file(frame.filename):
            source = frame.line or linecache.getline(frame.filename, frame.lineno or 0).strip()
            return f"{Path(frame.filename).name}:{frame.lineno}: {source}"
    return None


def _is_user_file(filename: str) -> bool:
    library = any(f"{part}" in filename for part in ("site-packages", "dist-packages")) or filename.startswith(
        (sys.prefix + "/lib/python", sys.base_prefix + "/lib/python", "<frozen")
    )
    return not library and not filename.startswith(_OURS)


def _call_advice(message: str, place: str | None, function: Callable[..., Any] | None) -> str | None:
    wrong_call = re.search(r"missing .*argument|positional argument|unexpected keyword|multiple values", message)
    if not wrong_call or place is not None or function is None:
        return None
    try:
        return f"It is called as {getattr(function, '__name__', 'f')}{inspect.signature(function)}."
    except (TypeError, ValueError):
        return None
