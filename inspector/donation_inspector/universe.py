"""The passes that `xdsl-opt` finds through the entry point `xdsl.universe` once the inspector is installed."""

from __future__ import annotations

from xdsl.passes import ModulePass
from xdsl.universe import Universe


def _materialize_to_aliasing_output() -> type[ModulePass]:
    from donation_inspector.passes.materialize_to_aliasing_output import MaterializeToAliasingOutput

    return MaterializeToAliasingOutput


UNIVERSE = Universe(all_passes={"materialize-to-aliasing-output": _materialize_to_aliasing_output})
