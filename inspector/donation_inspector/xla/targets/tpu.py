"""TPUs, by libtpu's compiler, in a child process: no TPU need be here."""

from __future__ import annotations

import importlib
import importlib.util
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from donation_inspector.errors import CompileError
from donation_inspector.xla.targets.target import Listed, Target

_MiB = 1 << 20
_ENVIRONMENT = {
    # no host of a cloud TPU to ask
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    # libtpu lets one process of a machine in, because a TPU belongs to one: here nobody touches any
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    # libtpu keeps its log, and there is nothing in it that XLA's errors do not say
    "TPU_LOG_DIR": "disabled",
}
_EXTRA = "pip install 'donation-inspector[tpu]'"


@dataclass(frozen=True, slots=True)
class Generation:
    """One kind of TPU. Every chip is one device, as JAX lists them where they are.

    `capacity` is what XLA's compiler lets a program have of the HBM of one device, its code included, in bytes: below
    the figure that the data sheet gives. `sizes` are the topologies that can be rented, smallest first.
    """

    name: str
    accelerator: str
    """What TPU_ACCELERATOR_TYPE begins with."""
    cores: int
    """Tensor cores of a chip: accelerator types count them."""
    capacity: int
    sizes: tuple[tuple[int, ...], ...]
    options: tuple[tuple[str, Any], ...] = ()
    """What PJRT is told besides the topology."""


_FLAT = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
_DEEP = (
    *((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4), (4, 4, 4), (4, 4, 8), (4, 8, 8), (8, 8, 8)),
    *((8, 8, 16), (8, 16, 16), (16, 16, 16)),
)

GENERATIONS = {
    generation.name: generation
    for generation in (
        # two cores act as one device; without it libtpu lists each by itself, with half the memory
        Generation("v4", "v4", 2, 31485 * _MiB, _DEEP, (("chip_config_name", "megacore"),)),
        Generation("v5e", "v5litepod", 1, 16126 * _MiB, _FLAT),
        Generation("v5p", "v5p", 2, 98041 * _MiB, _DEEP),
        Generation("v6e", "v6e", 1, 31996 * _MiB, _FLAT),
    )
}


def resolve(spec: str, devices: int) -> Target:
    """The target that "tpu:v5e" or "tpu:v5e:4x4" means for a program of so many devices.

    Raises:
      CompileError: no such TPU or topology, one that is too small, or no libtpu.
    """
    _, _, rest = spec.partition(":")
    name, _, topology = rest.partition(":")
    generation = GENERATIONS.get(name)
    if generation is None:
        there = ", ".join(f"tpu:{name}" for name in GENERATIONS)
        raise CompileError(f"There is no target {spec!r}. The TPUs that can be asked for: {there}.")
    sizes = _sizes(spec, generation, topology) if topology else _smallest(generation, devices)
    chips = math.prod(sizes)
    if chips < devices:
        raise CompileError(
            f"{spec} has {chips} devices, the program runs on {devices}. "
            f"The smallest that has as many is tpu:{name}:{_text(_smallest(generation, devices))}."
        )
    missing = why_not()
    if missing is not None:
        raise CompileError(f"{spec} cannot be compiled for: {missing}")
    text = f"{name}:{_text(sizes)}"
    return Target(f"tpu:{text}", "tpu", False, text, "", chips, generation.capacity)


def why_not() -> str | None:
    """Why no TPU can be compiled for on this machine, and what to do; None where it can."""
    if importlib.util.find_spec("libtpu") is None:
        return f"libtpu is not installed. Install it for your own jax: {_EXTRA}"
    return None


def listed() -> tuple[Listed, ...]:
    """Every generation."""
    reason = why_not()
    return tuple(
        Listed(f"tpu:{one.name}", f"TPU {one.name}", one.capacity, False, reason is None, reason)
        for one in GENERATIONS.values()
    )


def environment(target: Target) -> dict[str, str]:
    """What must stand in the environment of a child before libtpu is loaded there."""
    generation, sizes = _of(target)
    return _ENVIRONMENT | {
        "TPU_ACCELERATOR_TYPE": f"{generation.accelerator}-{math.prod(sizes) * generation.cores}",
        # what JAX itself runs on in the child
        "JAX_PLATFORMS": "cpu",
    }


def devices(target: Target) -> Sequence[Any]:
    """In the child: the topology's devices, which have no runtime behind them, by PJRT's numbers."""
    generation, sizes = _of(target)
    options = dict(generation.options)
    if math.prod(sizes) == 1:
        # a chip of a host of its own
        options["chips_per_host_bounds"] = [1, 1, 1]
    topologies: Any = importlib.import_module("jax.experimental.topologies")
    return tuple(topologies.get_topology_desc(target.topology, platform="tpu", **options).devices)


def _of(target: Target) -> tuple[Generation, tuple[int, ...]]:
    name, _, topology = target.topology.partition(":")
    return GENERATIONS[name], tuple(int(size) for size in topology.split("x"))


def _text(sizes: Sequence[int]) -> str:
    return "x".join(str(size) for size in sizes)


def _smallest(generation: Generation, devices: int) -> tuple[int, ...]:
    for sizes in generation.sizes:
        if math.prod(sizes) >= devices:
            return sizes
    largest = generation.sizes[-1]
    raise CompileError(
        f"The program runs on {devices} devices; a TPU {generation.name} has {math.prod(largest)} at most "
        f"(tpu:{generation.name}:{_text(largest)})."
    )


def _sizes(spec: str, generation: Generation, topology: str) -> tuple[int, ...]:
    """The topology as the user writes it. PJRT takes any whose hosts are full: two by two chips."""
    dimensions = len(generation.sizes[0])
    sizes = tuple(int(size) for size in topology.split("x")) if re.fullmatch(r"\d+(x\d+)*", topology) else ()
    full = bool(sizes) and min(sizes) > 0 and all(size % 2 == 0 for size in sizes[:2])
    if len(sizes) == dimensions and (full or sizes in generation.sizes):
        return sizes
    like = ", ".join(_text(size) for size in generation.sizes[:5])
    raise CompileError(
        f"{spec}: a TPU {generation.name} is laid out in {dimensions} dimensions of whole hosts, as {like}, …"
    )
