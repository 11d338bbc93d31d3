"""What a person gives to follow long work and to end it, checked before the work starts."""

from __future__ import annotations

from donation_inspector.common.visible import repr_of
from donation_inspector.errors import DonationInspectorError


def check(progress: object, cancel: object, error: type[DonationInspectorError]) -> None:
    """Raise `error` where `progress` cannot be called, or `cancel` is no event."""
    if progress is not None and not callable(progress):
        raise error(f"progress must be a function of (step, steps, label), got {repr_of(progress)}.")
    if cancel is not None and not callable(getattr(type(cancel), "is_set", None)):
        raise error(f"cancel must be a threading.Event, got {repr_of(cancel)}.")
