"""Whether a fresh process can run beside this one, on machines that this is not: the runtime's answers are made up."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from donation_inspector.xla import devices, internals
from donation_inspector.xla.devices import free_bytes, held_bytes, why_not_beside

GB = 10**9


class Device:
    def __init__(self, stats: dict[str, int] | None) -> None:
        self._stats = stats

    def memory_stats(self) -> dict[str, int] | None:
        return self._stats


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A kernel on a GPU of 24 GB that has taken three quarters of it."""
    stats = {"bytes_in_use": 2 * GB, "bytes_limit": 18 * GB, "pool_bytes": 18 * GB}

    def local_devices(backend: str) -> list[Any]:
        assert backend == "cuda"
        return [Device(stats)]

    monkeypatch.setattr(devices._jax, "local_devices", local_devices)
    monkeypatch.setattr("jax._src.xla_bridge.backends_are_initialized", lambda: True)
    monkeypatch.setattr(devices, "free_bytes", lambda: 5 * GB)
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    monkeypatch.delenv("XLA_PYTHON_CLIENT_ALLOCATOR", raising=False)
    return monkeypatch


def test_a_process_on_the_cpu_is_always_possible() -> None:
    assert why_not_beside("cpu", None) is None


def test_jax_itself_says_whether_a_backend_was_started() -> None:
    """The private name that is asked: it must be there, and true once an array exists."""
    devices._jax.numpy.zeros(1)
    assert internals.xla_bridge.backends_are_initialized() is True


def test_a_tpu_belongs_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax._src.xla_bridge.backends_are_initialized", lambda: True)
    said = why_not_beside("tpu", None)
    assert said is not None
    assert said.startswith("A TPU belongs to one process")
    assert 'inspection.save("step.di")' in said
    assert "donation-inspector measure step.di" in said
    assert "measure(in_kernel=True)" in said


def test_a_process_that_has_not_started_jax_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax._src.xla_bridge.backends_are_initialized", lambda: False)
    assert why_not_beside("tpu", None) is None
    assert why_not_beside("cuda", 10 * GB) is None


def test_a_preallocated_gpu_says_who_holds_what(gpu: pytest.MonkeyPatch) -> None:
    said = why_not_beside("cuda", 9 * GB)
    assert said is not None
    assert "holds 18.0 GB of the cuda device, 5.0 GB are left, the program takes 9.0 GB" in said
    assert "XLA_PYTHON_CLIENT_PREALLOCATE=false" in said
    gpu.setattr(devices, "free_bytes", lambda: None)
    said = why_not_beside("cuda", None)
    assert said is not None
    assert "left" not in said


def test_what_fits_beside_the_kernel_may_run(gpu: pytest.MonkeyPatch) -> None:
    assert why_not_beside("cuda", 4 * GB) is None
    gpu.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    gpu.setattr(devices, "free_bytes", lambda: None)
    assert why_not_beside("cuda", 4 * GB) is None


@pytest.mark.usefixtures("gpu")
def test_what_the_kernel_holds_is_the_pool_it_took() -> None:
    assert held_bytes("cuda") == 18 * GB


def _driver(folder: Path, script: str) -> None:
    tool = folder / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IEXEC)


def test_the_driver_says_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    _driver(tmp_path, "echo 4000; echo 3000")
    assert free_bytes() == 3000 * 2**20
    _driver(tmp_path, "echo No devices were found")
    assert free_bytes() is None
    _driver(tmp_path, "exit 9")
    assert free_bytes() is None
    (tmp_path / "nvidia-smi").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert free_bytes() is None
