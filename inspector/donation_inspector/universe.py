"""Passes and dialects that `xdsl-opt` finds through the entry point `xdsl.universe` once the inspector is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

from donation_inspector.ir import opaque

_NAME = "donation-inspector"


def _materialize_to_aliasing_output() -> type[ModulePass]:
    from donation_inspector.passes.materialize_to_aliasing_output import MaterializeToAliasingOutput

    return MaterializeToAliasingOutput


def _donate_by_live_range() -> type[ModulePass]:
    from donation_inspector.passes.donate_by_live_range import DonateByLiveRange

    return DonateByLiveRange


def _check_donated_buffers() -> type[ModulePass]:
    from donation_inspector.passes.check_donated_buffers import CheckDonatedBuffers

    return CheckDonatedBuffers


def _reuse_donated_buffers() -> type[ModulePass]:
    from donation_inspector.passes.reuse_donated_buffers import ReuseDonatedBuffers

    return ReuseDonatedBuffers


def _dialects() -> dict[str, Callable[[], Dialect]]:
    """Those that no other package has: `xdsl-opt` ends where two do."""
    others = (plugin.load() for plugin in entry_points(group="xdsl.universe") if plugin.name != _NAME)
    taken = {name for other in others for name in other.all_dialects}
    return {name: make for name, make in opaque.dialects().items() if name not in taken}


UNIVERSE = Universe(
    all_dialects=_dialects(),
    all_passes={
        "check-donated-buffers": _check_donated_buffers,
        "donate-by-live-range": _donate_by_live_range,
        "materialize-to-aliasing-output": _materialize_to_aliasing_output,
        "reuse-donated-buffers": _reuse_donated_buffers,
    },
)
