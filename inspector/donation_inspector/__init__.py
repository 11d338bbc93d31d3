"""What buffer donation does to a JAX program: live ranges, verdicts with reasons, the real xDSL pass, measured memory.

`%load_ext donation_inspector`, then `%donation step(params, batch)`; or `di.inspect(step, params, batch)`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from donation_inspector.advice.recommendation import Recommendation as Recommendation
    from donation_inspector.analysis.donation import Argument as Argument
    from donation_inspector.analysis.donation import Result as Result
    from donation_inspector.analysis.donation import Verdict as Verdict
    from donation_inspector.analysis.live_range import LiveRange as LiveRange
    from donation_inspector.analysis.memory import MemoryCurve as MemoryCurve
    from donation_inspector.capture.opening import inspect as inspect
    from donation_inspector.capture.opening import inspect_ir as inspect_ir
    from donation_inspector.capture.opening import load as load
    from donation_inspector.capture.opening import targets as targets
    from donation_inspector.capture.watch import Watched as Watched
    from donation_inspector.capture.watch import watch as watch
    from donation_inspector.checks.assert_donated import assert_donated as assert_donated
    from donation_inspector.checks.corpus import corpus as corpus
    from donation_inspector.checks.verify import verify as verify
    from donation_inspector.donating import jit as jit
    from donation_inspector.errors import CompileError as CompileError
    from donation_inspector.errors import DonationError as DonationError
    from donation_inspector.errors import DonationInspectorError as DonationInspectorError
    from donation_inspector.errors import IRError as IRError
    from donation_inspector.errors import MachineError as MachineError
    from donation_inspector.errors import MeasureError as MeasureError
    from donation_inspector.errors import PassError as PassError
    from donation_inspector.errors import PathError as PathError
    from donation_inspector.errors import TraceError as TraceError
    from donation_inspector.inspection import Inspection as Inspection
    from donation_inspector.questions.apply.answer import Applied as Applied
    from donation_inspector.questions.compare.answer import Comparison as Comparison
    from donation_inspector.questions.compare.answer import Comparisons as Comparisons
    from donation_inspector.questions.measure.answer import Measurement as Measurement
    from donation_inspector.questions.outside.ask import Outside as Outside
    from donation_inspector.questions.sweep.answer import Sweep as Sweep
    from donation_inspector.questions.sweep.answer import SweepRow as SweepRow
    from donation_inspector.questions.verify.answer import Verification as Verification
    from donation_inspector.xla.targets.target import Target as Target

__version__ = "0.1.0"

_HOME = {
    "Argument": "analysis.donation",
    "Result": "analysis.donation",
    "Verdict": "analysis.donation",
    "LiveRange": "analysis.live_range",
    "MemoryCurve": "analysis.memory",
    "Applied": "questions.apply.answer",
    "Comparison": "questions.compare.answer",
    "Comparisons": "questions.compare.answer",
    "Measurement": "questions.measure.answer",
    "assert_donated": "checks.assert_donated",
    "corpus": "checks.corpus",
    "jit": "donating",
    "CompileError": "errors",
    "DonationError": "errors",
    "DonationInspectorError": "errors",
    "IRError": "errors",
    "MachineError": "errors",
    "MeasureError": "errors",
    "PassError": "errors",
    "PathError": "errors",
    "TraceError": "errors",
    "Inspection": "inspection",
    "inspect": "capture.opening",
    "inspect_ir": "capture.opening",
    "load": "capture.opening",
    "targets": "capture.opening",
    "Outside": "questions.outside.ask",
    "Verification": "questions.verify.answer",
    "verify": "checks.verify",
    "Recommendation": "advice.recommendation",
    "Sweep": "questions.sweep.answer",
    "SweepRow": "questions.sweep.answer",
    "Watched": "capture.watch",
    "watch": "capture.watch",
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
    from donation_inspector.notebook.magic import DonationMagics

    ipython.register_magics(DonationMagics)
