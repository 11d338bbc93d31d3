"""Devices to compile for: those of this machine, and those that are not here."""

from __future__ import annotations

from donation_inspector.errors import CompileError
from donation_inspector.xla.targets.target import Listed as Listed
from donation_inspector.xla.targets.target import Target as Target


def resolve(spec: str | Target | None, *, platform: str, devices: int) -> Target:  # noqa: ARG001
    """The target that is meant. Raises CompileError."""
    if isinstance(spec, Target):
        return spec
    if spec in (None, platform):
        return Target(platform, platform)
    raise CompileError(f"no target {spec!r}: this program was lowered for {platform!r}, the only target here")


def listed(platform: str) -> tuple[Listed, ...]:
    """What can be asked for on this machine."""
    return (Listed(platform, platform, None, True, True),)
