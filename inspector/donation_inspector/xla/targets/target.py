"""What a program is compiled for: plain data, so that a child can unpickle it before it starts JAX."""

from __future__ import annotations

from dataclasses import dataclass

from donation_inspector.common.tables import aligned
from donation_inspector.common.units import format_bytes


@dataclass(frozen=True, slots=True)
class Target:
    """A device that XLA compiles for.

    `name` is as shown: "cpu", "tpu:v5e:2x2", "cuda:h100". `platform` is what the program is lowered for. `here` is True
    for this machine's own devices, on which it can be run. `topology` is PJRT's name of the devices that are not here
    and `devices` how many these are; `config` the text of a GpuTargetConfigProto. `capacity` is the memory in bytes
    that a program can have on one device, None where it is not known.
    """

    name: str
    platform: str
    here: bool = True
    topology: str = ""
    config: str = ""
    devices: int = 0
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of `di.targets()`: what can be asked for, or `why_not`."""

    name: str
    device: str
    capacity: int | None
    here: bool
    available: bool
    why_not: str | None = None


class Targets(tuple[Listed, ...]):
    """What can be asked for on this machine, shown as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        rows = [
            (
                one.name,
                one.device,
                format_bytes(one.capacity),
                "here, can be run" if one.here else "compiled, not run" if one.available else one.why_not or "missing",
            )
            for one in self
        ]
        return "\n".join(aligned(("target", "device", "memory", "what is done"), rows))
