"""NVIDIA GPUs, by the compiler in jax's CUDA plugin, in a child process: no GPU and no driver need be here.

XLA reads the device off a target config and tunes nothing on it. It lays out a program that is larger than the device
as any other, and refuses none for its size.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from donation_inspector.errors import CompileError
from donation_inspector.xla.targets.target import Listed, Target

_CONFIGS = Path(__file__).with_name("configs")
_FILES = (".txtpb", ".pbtxt", ".textproto", ".txt")

_PLUGINS = ("cuda13", "cuda12")
_EXTRA = "pip install 'donation-inspector[cuda]'"
_WHERE_XLA_LOOKS = ("/usr/local/cuda", "/opt/cuda")

_ENVIRONMENT = {
    # with the CPU as its platform JAX registers the plugin, but neither asks for a driver nor makes a client
    "JAX_PLATFORMS": "cpu",
    # JAX 0.9 holds the versions of CUDA's libraries, of which none is needed here, against the plugin's all the same
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
    # where there are GPUs the answer is the same, and none of their memory is taken
    "CUDA_VISIBLE_DEVICES": "",
}

_GPUS_OF_A_HOST = 8

# without one of these XLA divides by zero, or finds no kernel that is small enough
_NEEDED = (
    *("cuda_compute_capability", "threads_per_warp", "block_dim_limit_x"),
    *("shared_memory_per_block", "shared_memory_per_block_optin"),
)


def resolve(spec: str, devices: int) -> Target:
    """The target that "cuda:h100" or "cuda:/path/to/config.txtpb" means for a program of so many devices.

    A file holds the text of a GpuTargetConfigProto: XLA writes one beside its dump on a machine that has the GPU
    (`XLA_FLAGS=--xla_dump_to=DIR`, `*.gpu_target_config.pbtxt`).

    Raises:
      CompileError: no such GPU, a file that describes none, or no plugin.
    """
    name = spec.partition(":")[2]
    config = _read(spec, name) if "/" in name or name.endswith(_FILES) else _shipped(spec, name)
    missing = why_not()
    if missing is not None:
        raise CompileError(f"{spec} cannot be compiled for: {missing}")
    hosts = -(-devices // _GPUS_OF_A_HOST)
    each = devices if hosts == 1 else _GPUS_OF_A_HOST
    return Target(spec, "cuda", False, f"1x{hosts}x{each}", config, hosts * each, _capacity(config))


def why_not() -> str | None:
    """Why no GPU can be compiled for on this machine, and what to do; None where it can."""
    plugin = next((one for one in _PLUGINS if _packages(f"jax_plugins.xla_{one}")), None)
    if plugin is None:
        return f"jax's CUDA plugin is not installed. Install it for your own jax: {_EXTRA}"
    ours, jaxlib = _version(f"jax-{plugin}-pjrt"), _version("jaxlib")
    if None not in (ours, jaxlib) and ours != jaxlib:
        return f"jax-{plugin}-pjrt is {ours}, jaxlib is {jaxlib}, and they work in pairs. Install its pair: {_EXTRA}"
    roots = (
        *([Path(os.environ["CUDA_ROOT"])] if "CUDA_ROOT" in os.environ else []),
        *_packages("nvidia.cu13"),
        *_packages("nvidia.cuda_nvcc"),
        *map(Path, _WHERE_XLA_LOOKS),
    )
    assembler = shutil.which("ptxas") is not None or any((root / "bin/ptxas").exists() for root in roots)
    if not assembler or not any((root / "nvvm/libdevice/libdevice.10.bc").exists() for root in roots):
        return (
            f"XLA calls CUDA's ptxas and libdevice, which are not installed. Install them: {_EXTRA}, "
            "or set CUDA_ROOT to the folder of a CUDA toolkit before jax is imported"
        )
    return None


def listed() -> tuple[Listed, ...]:
    """Every GPU that we bring a config for."""
    reason = why_not()
    configs = ((name, _config(name)) for name in _names())
    return tuple(
        Listed(f"cuda:{name}", _described(config), _capacity(config), False, reason is None, reason)
        for name, config in configs
    )


def environment(target: Target) -> dict[str, str]:  # noqa: ARG001
    """What must stand in the environment of a child before JAX is imported there."""
    return _ENVIRONMENT


def devices(target: Target) -> Sequence[Any]:
    """In the child: as many of the GPU as the topology has, with no runtime behind them."""
    topologies: Any = importlib.import_module("jax.experimental.topologies")
    found = topologies.get_topology_desc(platform="cuda", target_config=target.config, topology=target.topology)
    return tuple(found.devices)


def _names() -> list[str]:
    return sorted(path.stem for path in _CONFIGS.glob("*.txtpb"))


def _config(name: str) -> str:
    return (_CONFIGS / f"{name}.txtpb").read_text()


def _shipped(spec: str, name: str) -> str:
    names = _names()
    if name not in names:
        there = ", ".join(f"cuda:{one}" for one in names)
        raise CompileError(f"There is no target {spec!r}. What can be asked for: {there}; cuda:FILE.txtpb is your own.")
    return _config(name)


def _read(spec: str, name: str) -> str:
    """The user's config, without what ties it to the machine that wrote it."""
    path = Path(name).expanduser()
    try:
        config = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"{spec} cannot be read: {error}") from None
    config = re.sub(r"#.*", "", config)
    missing = [field for field in _NEEDED if not re.search(rf"\b{field}\b", config)]
    if missing:
        raise CompileError(f"{spec} is no config of a GPU: it lacks {', '.join(missing)}.")
    platform = re.search(r'\bplatform_name:\s*"(.*?)"', config)
    if platform is not None and platform[1] != "CUDA":
        raise CompileError(f"{spec} is the config of a {platform[1]} device, not of an NVIDIA GPU.")
    # with it XLA asks CUDA's runtime, which has no device here, for the scratch space of a sort
    return re.sub(r'\bcub_version:\s*".*?"', "", config)


def _capacity(config: str) -> int | None:
    """What JAX takes of the GPU's memory, in bytes: three quarters, unless the user's environment says otherwise."""
    size = re.search(r"\bdevice_memory_size:\s*(\d+)", config)
    return None if size is None else int(int(size[1]) * _share())


def _share() -> float:
    for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        with suppress(KeyError, ValueError):
            return float(os.environ[name])
    return 0.75


def _described(config: str) -> str:
    found = re.search(r'\bdevice_description_str:\s*"(.*?)"', config)
    name = "an NVIDIA GPU" if found is None else found[1]
    return f"{name}, {_share():.0%} of its memory"


def _packages(name: str) -> list[Path]:
    """The folders of a package, without importing it; none where it is not installed."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return []
    return [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
