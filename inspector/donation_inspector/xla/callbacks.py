"""The names of the user's functions behind host callbacks."""

from __future__ import annotations

from typing import Any

_MOST_WRAPPERS = 50


def callback_name(callback: Any, target: str) -> str:
    """The user's function inside the wrappers that JAX puts around it, or "jax.debug.print"; else `target`.

    `target` is the custom call's name. Nothing public leads from a lowered callback to its function: it stands in the
    closures of JAX's wrappers.
    """
    wrappers = [callback]
    # grows while it is walked: the closures' contents, outermost first
    for wrapper in wrappers:
        function = getattr(wrapper, "callback_func", wrapper)
        function = getattr(function, "func", function)
        module = str(getattr(function, "__module__", "jax"))
        if callable(function) and module.partition(".")[0] not in ("jax", "jaxlib"):
            return str(getattr(function, "__qualname__", type(function).__qualname__))
        if len(wrappers) < _MOST_WRAPPERS:
            wrappers += [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    prints = any("debug" in str(getattr(wrapper, "__qualname__", "")) for wrapper in wrappers)
    return "jax.debug.print" if prints else target
