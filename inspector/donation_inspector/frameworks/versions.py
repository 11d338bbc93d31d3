"""Whether a framework that the user has imported is new enough for what is known of it here."""

from __future__ import annotations

import re
import sys

from donation_inspector.errors import TraceError


def require(module: str, minimum: str) -> None:
    """Refuse an imported module (`flax`) that is older than `minimum` ("0.12"); one that tells no version is taken.

    Raises:
        TraceError: with the version that is there, the one that is needed, and what to do.
    """
    there = str(getattr(sys.modules.get(module), "__version__", ""))
    release = _release(there)
    if release and release < _release(minimum):
        raise TraceError(
            f"{module} {there} is too old: its jit is known here from {module} {minimum} on. "
            f"pip install -U '{module}>={minimum}', or inspect a jax.jit function of arrays alone, which needs no "
            f"{module}."
        )


def _release(version: str) -> tuple[int, ...]:
    """0.12.1.dev3 is (0, 12, 1), 0.12.0 is (0, 12) as 0.12 is; () where there are no numbers in front."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    parts = [int(part) for part in numbers.group().split(".")] if numbers else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
