"""What buffer donation does to a JAX program: live ranges, verdicts with reasons, the real xDSL pass, measured memory.

`%load_ext donation_inspector`, then `%donation step(params, batch)`; or `di.inspect(step, params, batch)`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from donation_inspector.analysis.donation import Argument as Argument
    from donation_inspector.analysis.donation import Result as Result
    from donation_inspector.analysis.donation import Verdict as Verdict
    from donation_inspector.analysis.live_range import LiveRange as LiveRange
    from donation_inspector.analysis.memory import MemoryCurve as MemoryCurve
    from donation_inspector.answers import Applied as Applied
    from donation_inspector.answers import Comparison as Comparison
    from donation_inspector.answers import Comparisons as Comparisons
    from donation_inspector.answers import Measurement as Measurement
    from donation_inspector.checking import assert_donated as assert_donated
    from donation_inspector.donating import jit as jit
    from donation_inspector.errors import CompileError as CompileError
    from donation_inspector.errors import DonationError as DonationError
    from donation_inspector.errors import DonationInspectorError as DonationInspectorError
    from donation_inspector.errors import IRError as IRError
    from donation_inspector.errors import MeasureError as MeasureError
    from donation_inspector.errors import PassError as PassError
    from donation_inspector.errors import PathError as PathError
    from donation_inspector.errors import TraceError as TraceError
    from donation_inspector.inspection import Inspection as Inspection
    from donation_inspector.opening import inspect as inspect
    from donation_inspector.opening import inspect_ir as inspect_ir
    from donation_inspector.opening import load as load
    from donation_inspector.opening import targets as targets
    from donation_inspector.outside import Outside as Outside
    from donation_inspector.recommendation import Recommendation as Recommendation
    from donation_inspector.sweep import Sweep as Sweep
    from donation_inspector.sweep import SweepRow as SweepRow
    from donation_inspector.verification import Verification as Verification
    from donation_inspector.verifying import verify as verify
    from donation_inspector.watching import Watched as Watched
    from donation_inspector.watching import watch as watch
    from donation_inspector.xla.targets.target import Target as Target

__version__ = "0.1.0"

_HOME = {
    "Argument": "analysis.donation",
    "Result": "analysis.donation",
    "Verdict": "analysis.donation",
    "LiveRange": "analysis.live_range",
    "MemoryCurve": "analysis.memory",
    "Applied": "answers",
    "Comparison": "answers",
    "Comparisons": "answers",
    "Measurement": "answers",
    "assert_donated": "checking",
    "jit": "donating",
    "CompileError": "errors",
    "DonationError": "errors",
    "DonationInspectorError": "errors",
    "IRError": "errors",
    "MeasureError": "errors",
    "PassError": "errors",
    "PathError": "errors",
    "TraceError": "errors",
    "Inspection": "inspection",
    "inspect": "opening",
    "inspect_ir": "opening",
    "load": "opening",
    "targets": "opening",
    "Outside": "outside",
    "Verification": "verification",
    "verify": "verifying",
    "Recommendation": "recommendation",
    "Sweep": "sweep",
    "SweepRow": "sweep",
    "Watched": "watching",
    "watch": "watching",
    "Target": "xla.targets.target",
}

__all__ = ["__version__", "load_ipython_extension", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    # Importing the package loads neither jax nor a widget: `%load_ext` and `import` stay instant.
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext donation_inspector`: makes `%donation` known."""
    from donation_inspector.magic import DonationMagics

    ipython.register_magics(DonationMagics)
