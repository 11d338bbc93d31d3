"""The passes that `xdsl-opt` finds through the entry point `xdsl.universe` once the inspector is installed."""

from __future__ import annotations

from xdsl.passes import ModulePass
from xdsl.universe import Universe


def _materialize_to_aliasing_output() -> type[ModulePass]:
    from donation_inspector.passes.materialize_to_aliasing_output import MaterializeToAliasingOutput

    return MaterializeToAliasingOutput


def _donate_by_live_range() -> type[ModulePass]:
    from donation_inspector.passes.donate_by_live_range import DonateByLiveRange

    return DonateByLiveRange


UNIVERSE = Universe(
    all_passes={
        "donate-by-live-range": _donate_by_live_range,
        "materialize-to-aliasing-output": _materialize_to_aliasing_output,
    }
)
