"""The runtime's own count of device memory, on made-up devices: what it can and cannot tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from donation_inspector.xla import measure, worker
from donation_inspector.xla.measure import measure_variants
from donation_inspector.xla.peak import DeviceMeter
from small_programs import add, program


class Device:
    """A device whose program takes `takes` bytes above what is in use, each time it is run."""

    def __init__(self, in_use: int, peak: int, reserved: int | None = None) -> None:
        self.stats: dict[str, int] | None = {"bytes_in_use": in_use, "peak_bytes_in_use": peak}
        if reserved is not None:
            self.stats["peak_bytes_reserved"] = reserved

    def memory_stats(self) -> dict[str, int] | None:
        return self.stats

    def run(self, takes: int) -> None:
        assert self.stats is not None
        self.stats["peak_bytes_in_use"] = max(self.stats["peak_bytes_in_use"], self.stats["bytes_in_use"] + takes)


def test_a_peak_above_all_before_is_the_programs() -> None:
    devices = [Device(100, 150), Device(100, 150)]
    meter = DeviceMeter(devices)
    meter.rest()
    assert meter.start()
    for device in devices:
        device.run(300)
    assert (meter.highest(), meter.baseline) == (800, 200)


def test_a_peak_below_an_earlier_one_is_unknown() -> None:
    device = Device(100, 5000)
    meter = DeviceMeter([device])
    meter.rest()
    assert meter.start()
    device.run(300)
    assert meter.highest() is None


def test_what_a_tpu_sets_aside_for_a_program_counts() -> None:
    device = Device(0, 0, reserved=0)
    meter = DeviceMeter([device])
    device.run(300)
    assert device.stats is not None
    device.stats["peak_bytes_reserved"] = 40
    assert meter.highest() == 340


def test_a_runtime_that_does_not_count_gives_nothing() -> None:
    device = Device(0, 0)
    device.stats = None
    meter = DeviceMeter([device])
    meter.rest()
    assert not meter.start()
    assert (meter.highest(), meter.baseline) == (None, None)


def test_in_the_kernel_every_variant_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(64, 64)

    def meter_for(_program: Any) -> DeviceMeter:
        return DeviceMeter([device])

    def no_child(*_: Any, **__: Any) -> Any:
        raise AssertionError("a process was started")

    call = worker.Runner.call

    def counted(self: worker.Runner, inputs: list[Any]) -> list[list[Any]]:
        device.run(3 * 8 * 4)
        return call(self, inputs)

    monkeypatch.setattr(worker, "meter_for", meter_for)
    monkeypatch.setattr(worker.Runner, "call", counted)
    monkeypatch.setattr(measure, "child", no_child)
    steps: list[tuple[int, int, str]] = []
    programs = {"a": program(add, (8,), (8,)), "b": program(add, (8,), (8,))}
    answers = measure_variants(
        programs, [np.ones(8, np.float32)] * 2, runs=2, in_kernel=True, progress=lambda *step: steps.append(step)
    )
    # The second one's peak is no higher than the first one's: it cannot be told from it.
    assert [(one.status, one.peak, one.runs) for one in answers.values()] == [("ok", 96, 2), ("ok", None, 2)]
    assert answers["a"].output_hashes == answers["b"].output_hashes
    assert steps[-1][:2] == (8, 8)
