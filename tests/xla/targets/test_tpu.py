"""TPUs by name: what is meant, what is refused and in which words. Nothing is compiled, libtpu need not be there."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import math
from typing import Any

import pytest

from donation_inspector.errors import CompileError
from donation_inspector.xla.targets import Target, listed, resolve, tpu

THERE = "The TPUs that can be asked for: tpu:v4, tpu:v5e, tpu:v5p, tpu:v6e."
SMALLEST = "The smallest that has as many is tpu:v5e:2x4."
FLAT = "a TPU v5e is laid out in 2 dimensions of whole hosts, as 1x1, 2x2, 2x4, 4x4, 4x8, …"
DEEP = "a TPU v4 is laid out in 3 dimensions of whole hosts, as 2x2x1, 2x2x2, 2x2x4, 2x4x4, 4x4x4, …"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """libtpu is there wherever the tests run."""
    find = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> Any:
        return importlib.machinery.ModuleSpec(name, None) if name == "libtpu" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", found)


@pytest.mark.parametrize(
    ("spec", "devices", "name", "chips"),
    [
        ("tpu:v5e", 1, "tpu:v5e:1x1", 1),
        ("tpu:v5e", 2, "tpu:v5e:2x2", 4),
        ("tpu:v5e", 8, "tpu:v5e:2x4", 8),
        ("tpu:v5e", 256, "tpu:v5e:16x16", 256),
        ("tpu:v5e:16x16", 8, "tpu:v5e:16x16", 256),
        ("tpu:v5e:2x6", 1, "tpu:v5e:2x6", 12),
        ("tpu:v6e", 1, "tpu:v6e:1x1", 1),
        ("tpu:v6e", 5, "tpu:v6e:2x4", 8),
        ("tpu:v4", 1, "tpu:v4:2x2x1", 4),
        ("tpu:v4", 5, "tpu:v4:2x2x2", 8),
        ("tpu:v5p", 64, "tpu:v5p:4x4x4", 64),
        ("tpu:v5p:2x2x3", 1, "tpu:v5p:2x2x3", 12),
    ],
)
def test_the_smallest_topology_that_has_the_devices(spec: str, devices: int, name: str, chips: int) -> None:
    target = resolve(spec, platform="cpu", devices=devices)
    assert (target.name, target.topology, target.devices) == (name, name.removeprefix("tpu:"), chips)
    assert (target.platform, target.here, target.config) == ("tpu", False, "")


def test_every_topology_is_larger_than_the_one_before() -> None:
    for generation in tpu.GENERATIONS.values():
        chips = [math.prod(sizes) for sizes in generation.sizes]
        assert chips == sorted(set(chips))
        for sizes in generation.sizes:
            name = f"tpu:{generation.name}:{'x'.join(map(str, sizes))}"
            assert resolve(name, platform="cpu", devices=math.prod(sizes)).name == name


@pytest.mark.parametrize(
    ("spec", "devices", "said"),
    [
        ("tpu:v7x", 1, f"There is no target 'tpu:v7x'. {THERE}"),
        ("tpu", 1, f"There is no target 'tpu'. {THERE}"),
        ("tpu:v5e:2x2", 8, f"tpu:v5e:2x2 has 4 devices, the program runs on 8. {SMALLEST}"),
        ("tpu:v5e", 300, "The program runs on 300 devices; a TPU v5e has 256 at most (tpu:v5e:16x16)."),
        ("tpu:v5e:3x2", 1, f"tpu:v5e:3x2: {FLAT}"),
        ("tpu:v5e:0x2", 1, f"tpu:v5e:0x2: {FLAT}"),
        ("tpu:v5e:big", 1, f"tpu:v5e:big: {FLAT}"),
        ("tpu:v4:2x2", 1, f"tpu:v4:2x2: {DEEP}"),
        ("tpu:v4:1x1x1", 1, f"tpu:v4:1x1x1: {DEEP}"),
        ("abacus", 1, "There is no target 'abacus'. What can be asked for: cpu, tpu:v4, "),
    ],
)
def test_what_there_is_not(spec: str, devices: int, said: str) -> None:
    with pytest.raises(CompileError) as raised:
        resolve(spec, platform="cpu", devices=devices)
    assert str(raised.value).startswith(said)


def test_this_machine() -> None:
    here = Target("cpu", "cpu")
    assert resolve(None, platform="cpu", devices=3) == resolve("cpu", platform="cpu", devices=3) == here
    assert here.here
    # beside a GPU the CPU is compiled for, and the program is not run on it
    assert resolve("cpu", platform="cuda", devices=1) == Target("cpu", "cpu", here=False)
    assert resolve(here, platform="tpu", devices=1) is here


def test_without_libtpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    with pytest.raises(CompileError) as raised:
        resolve("tpu:v5e", platform="cpu", devices=1)
    reason = "libtpu is not installed. Install it for your own jax: pip install 'donation-inspector[tpu]'"
    assert str(raised.value) == f"tpu:v5e cannot be compiled for: {reason}"
    lines = {one.name: one for one in listed("cpu")}
    assert not lines["tpu:v5e"].available
    assert lines["tpu:v5e"].why_not == reason
    assert lines["cpu"].available


def test_what_can_be_asked_for() -> None:
    lines = {one.name: one for one in listed("cpu")}
    assert {f"tpu:{name}" for name in ("v4", "v5e", "v5p", "v6e")} < lines.keys()
    for name, line in lines.items():
        if name.startswith("tpu:"):
            assert (line.available, line.why_not, line.here) == (True, None, False)
            assert line.capacity == resolve(name, platform="cpu", devices=1).capacity
    assert lines["cpu"].here
    assert not {one.name: one for one in listed("cuda")}["cpu"].here
