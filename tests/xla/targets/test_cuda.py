"""GPUs by name and by file, wherever the tests run: what is installed is made up in a folder of its own."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path

import pytest

from donation_inspector.errors import CompileError
from donation_inspector.xla.targets import cuda, resolve

NAMES = ("a100", "a100-40gb", "b200", "h100", "h200", "l4", "rtx4090", "t4")
JAXLIB = version("jaxlib")

# Memory as NVIDIA sells it, in GB and in GiB: what the driver leaves is below the larger and near the smaller.
SOLD = dict(zip(NAMES, (80, 40, 192, 80, 141, 24, 24, 16), strict=True))

CONFIG = """
gpu_device_info {
  cuda_compute_capability { major: 8 minor: 6 }  # an RTX 3090
  device_memory_size: 25300000000
  threads_per_warp: 32
  block_dim_limit_x: 2147483647
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 101376
  cub_version: "3.1.2"
}
platform_name: "CUDA"
"""


class Installation:
    """A site-packages of our own, alone on the path for what a CUDA compile needs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def package(self, name: str, *files: str) -> None:
        for file in ("__init__.py", *files):
            path = self.folder / name.replace(".", "/") / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def distribution(self, name: str, number: str) -> None:
        folder = self.folder / f"{name.replace('-', '_')}-{number}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n")

    def plugin(self, kind: str, number: str = JAXLIB) -> None:
        self.package(f"jax_plugins.xla_{kind}")
        self.distribution(f"jax-{kind}-pjrt", number)

    def tools(self, package: str = "nvidia.cuda_nvcc") -> None:
        self.package(package, "bin/ptxas", "nvvm/libdevice/libdevice.10.bc")


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """Nothing of CUDA is installed."""

    def find_spec(name: str, _: str | None = None) -> ModuleSpec | None:
        folder = tmp_path / name.replace(".", "/")
        if not folder.is_dir():
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(folder)]
        return spec

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(cuda, "_WHERE_XLA_LOOKS", ())
    monkeypatch.setattr(shutil, "which", lambda _: None)
    for name in ("CUDA_ROOT", "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        monkeypatch.delenv(name, raising=False)
    return Installation(tmp_path)


@pytest.fixture
def complete(installation: Installation) -> Installation:
    """Everything that a CUDA compile needs is there."""
    installation.plugin("cuda13")
    installation.tools()
    return installation


@pytest.mark.usefixtures("complete")
@pytest.mark.parametrize("name", NAMES)
def test_each_config_is_a_gpu_of_the_memory_it_is_sold_with(name: str) -> None:
    target = resolve(f"cuda:{name}", platform="cpu", devices=1)
    assert (target.name, target.platform, target.here) == (f"cuda:{name}", "cuda", False)
    size = int(re.findall(r"device_memory_size: (\d+)", target.config)[0])
    assert 0.9 * SOLD[name] * 10**9 < size < SOLD[name] * 2**30
    assert target.capacity == int(size * 0.75)


def test_every_config_is_listed_with_its_device() -> None:
    listed = {one.name: one for one in cuda.listed()}
    assert tuple(listed) == tuple(f"cuda:{name}" for name in NAMES)
    assert listed["cuda:h100"].device.startswith("NVIDIA H100 80GB HBM3, ")
    assert not any(one.here for one in listed.values())


@pytest.mark.usefixtures("complete")
@pytest.mark.parametrize(
    ("devices", "topology", "has"),
    [(1, "1x1x1", 1), (3, "1x1x3", 3), (8, "1x1x8", 8), (9, "1x2x8", 16), (256, "1x32x8", 256)],
)
def test_there_are_as_many_as_the_program_wants_eight_to_a_host(devices: int, topology: str, has: int) -> None:
    target = cuda.resolve("cuda:h100", devices)
    assert (target.topology, target.devices) == (topology, has)


@pytest.mark.usefixtures("complete")
@pytest.mark.parametrize("variable", ["XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"])
def test_the_share_that_jax_takes_is_the_users(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, ".9")
    assert cuda.resolve("cuda:l4", 1).capacity == int(23612293120 * 0.9)
    assert {one.name: one for one in cuda.listed()}["cuda:l4"].device == "NVIDIA L4, 90% of its memory"
    monkeypatch.setenv(variable, "most of it")
    assert cuda.resolve("cuda:l4", 1).capacity == int(23612293120 * 0.75)


@pytest.mark.usefixtures("complete")
def test_an_unknown_gpu_names_those_there_are() -> None:
    with pytest.raises(CompileError, match=r"no target 'cuda:h1000'.*cuda:a100, .*cuda:t4; cuda:FILE\.txtpb"):
        cuda.resolve("cuda:h1000", 1)
    with pytest.raises(CompileError, match="no target 'cuda'"):
        cuda.resolve("cuda", 1)


@pytest.mark.usefixtures("complete")
def test_a_config_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "rtx3090.txtpb"
    path.write_text(CONFIG)
    target = resolve(f"cuda:{path}", platform="cpu", devices=2)
    assert (target.name, target.capacity, target.topology) == (f"cuda:{path}", 18975000000, "1x1x2")
    assert "minor: 6" in target.config
    # it would ask the CUDA of this machine how much scratch a sort takes
    assert "cub_version" not in target.config


@pytest.mark.usefixtures("complete")
def test_a_config_without_memory_has_an_unknown_capacity(tmp_path: Path) -> None:
    path = tmp_path / "own.pbtxt"
    path.write_text(CONFIG.replace("device_memory_size: 25300000000", ""))
    assert cuda.resolve(f"cuda:{path}", 1).capacity is None


@pytest.mark.usefixtures("complete")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: .*No such file"),
        ("hello", "lacks cuda_compute_capability, threads_per_warp, block_dim_limit_x, shared_memory_per_block, "),
        (CONFIG.replace("threads_per_warp: 32", "# threads_per_warp: 32"), r"it lacks threads_per_warp\."),
        (CONFIG.replace('"CUDA"', '"ROCM"'), "the config of a ROCM device, not of an NVIDIA GPU"),
    ],
)
def test_a_file_that_is_no_config(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "own.txtpb"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CompileError, match=message):
        cuda.resolve(f"cuda:{path}", 1)


def test_without_the_plugin_the_extra_is_named(installation: Installation) -> None:
    installation.tools()
    with pytest.raises(CompileError, match=r"cuda:h100 cannot.*installed.* pip install 'donation-inspector\[cuda\]'"):
        cuda.resolve("cuda:h100", 1)
    assert all(not one.available and "plugin is not installed" in (one.why_not or "") for one in cuda.listed())


def test_a_plugin_of_another_jaxlib_is_named(installation: Installation) -> None:
    installation.plugin("cuda12", "0.1.2")
    installation.tools()
    assert (cuda.why_not() or "").startswith(f"jax-cuda12-pjrt is 0.1.2, jaxlib is {JAXLIB}")


@pytest.mark.parametrize("kind", ["cuda12", "cuda13"])
@pytest.mark.parametrize("package", ["nvidia.cuda_nvcc", "nvidia.cu13"])
def test_either_plugin_works_with_the_tools_of_either_cuda(installation: Installation, kind: str, package: str) -> None:
    installation.plugin(kind)
    assert "ptxas and libdevice" in (cuda.why_not() or "")
    installation.tools(package)
    assert cuda.why_not() is None
    assert all(one.available and one.why_not is None for one in cuda.listed())


def test_the_tools_of_the_system(installation: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installation.plugin("cuda13")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert "ptxas and libdevice" in (cuda.why_not() or "")
    (tmp_path / "toolkit/nvvm/libdevice").mkdir(parents=True)
    (tmp_path / "toolkit/nvvm/libdevice/libdevice.10.bc").touch()
    monkeypatch.setenv("CUDA_ROOT", str(tmp_path / "toolkit"))
    assert cuda.why_not() is None
