"""The user's own place in a Python stack."""

from __future__ import annotations

from collections.abc import Iterable

from donation_inspector.common.user_code import is_user_code
from donation_inspector.xla.hlo.source import Frame


def user_frame(stack: Iterable[Frame]) -> Frame | None:
    """The innermost frame of the user's own code, None where all of it is a library's."""
    return next((frame for frame in stack if is_user_code(frame.file)), None)
