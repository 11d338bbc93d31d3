"""Devices to compile for: those of this machine, and those that are not here.

A module for each platform that need not be here offers `resolve(spec, devices)`, `listed()`, `environment(target)` for
the child that compiles and, in that child, `devices(target)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast

from donation_inspector.common.visible import repr_of
from donation_inspector.errors import CompileError
from donation_inspector.xla.targets import cuda, tpu
from donation_inspector.xla.targets.target import Listed as Listed
from donation_inspector.xla.targets.target import Target as Target
from donation_inspector.xla.targets.target import Targets as Targets


class Platform(Protocol):
    """What a platform's module offers."""

    def resolve(self, spec: str, devices: int) -> Target:
        """The target that a name of this platform means for a program of so many devices. Raises CompileError."""
        ...

    def listed(self) -> tuple[Listed, ...]:
        """The names that can be asked for."""
        ...

    def environment(self, target: Target) -> dict[str, str]:
        """What the child that compiles needs in its environment before it starts JAX."""
        ...

    def devices(self, target: Target) -> Sequence[object]:
        """In the child: PJRT's devices, compile-only, of the whole topology."""
        ...


PLATFORMS: dict[str, Platform] = {"tpu": tpu, "cuda": cuda}


def resolve(spec: str | Target | None, *, platform: str, devices: int) -> Target:
    """The target that is meant for a program lowered for `platform` that runs on so many devices.

    None and the platform itself are the devices of this machine, "cpu" is this machine wherever JAX's default is.

    Raises:
      CompileError: there is no such target, it is too small, or what compiles for it is not installed.
    """
    if isinstance(spec, Target):
        return spec
    if spec is not None and not isinstance(cast(object, spec), str):
        raise CompileError(
            f"A target is a name such as 'tpu:v5e', a Target or None, and this is {type(spec).__name__}."
        )
    if spec is None or spec == platform:
        return Target(platform, platform)
    if spec == "cpu":
        return Target("cpu", "cpu", here=False)
    found = PLATFORMS.get(spec.partition(":")[0])
    if found is None:
        there = ", ".join(one.name for one in listed(platform))
        raise CompileError(f"There is no target {repr_of(spec)}. What can be asked for: {there}.")
    return found.resolve(spec, devices)


def listed(platform: str) -> tuple[Listed, ...]:
    """What can be asked for on this machine, whose default platform is `platform`."""
    here = (Listed(platform, platform, None, True, True),)
    cpu = () if platform == "cpu" else (Listed("cpu", "cpu", None, False, True),)
    return (*here, *cpu, *(one for found in PLATFORMS.values() for one in found.listed()))
