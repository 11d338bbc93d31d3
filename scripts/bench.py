"""From trace to toggle, as ratios against real work of the same run: JAX's own trace and lower, xDSL's own text parser.

Compiles nothing. Each figure is the best of a few tries in process time; the parser runs once, it takes seconds.
"""

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))

import jax  # noqa: E402
from xdsl.parser import Parser  # noqa: E402

import donation_inspector as di  # noqa: E402
from donation_inspector import payload  # noqa: E402
from donation_inspector.ir.dialect import make_context  # noqa: E402
from donation_inspector.ir.importer import import_module  # noqa: E402
from donation_inspector.subject import Subject  # noqa: E402
from train_step import example, train_step  # noqa: E402

LAYERS = (4, 12, 24, 48)
WIDTH = 64
SECONDS = ("trace+lower", "inspect", "import", "parse", "ranges", "toggle")
HEADER = ("layers", "ops", *SECONDS, "import/trace", "parse/import", "toggle/parse")


def best(work: Callable[[], Any], tries: int = 3) -> tuple[float, Any]:
    """Seconds of process time of the quickest try, and what it returned."""
    seconds, result = float("inf"), None
    for _ in range(tries):
        gc.collect()
        started = time.process_time()
        result = work()
        seconds = min(seconds, time.process_time() - started)
    return seconds, result


def generic_text(module: Any) -> str:
    """The module as xDSL's parser takes it."""
    return module.operation.get_asm(print_generic_op_form=True)


def toggle(inspection: di.Inspection, revision: int) -> None:
    """What one click costs the kernel: JAX's pairing, the pass, verdicts, curve, diff and payload."""
    changed = inspection.keep("opt_state") if revision % 2 else inspection.keep("params")
    payload.current(changed, revision)


def row(layers: int) -> dict[str, float]:
    """All figures at one depth, in seconds."""
    arguments = example(layers, WIDTH)

    def trace_and_lower() -> Any:
        jax.clear_caches()
        return train_step.trace(*arguments).lower()

    traced, _ = best(trace_and_lower, 2)
    jax.clear_caches()
    inspected, inspection = best(lambda: di.inspect(train_step, *arguments), 1)
    subject: Subject = inspection._subject
    module = subject.origin.module
    imported, result = best(lambda: import_module(module))
    text = generic_text(module)
    parsed, _ = best(lambda: Parser(make_context(), text).parse_module(), 1)
    ranged, _ = best(lambda: payload.once(inspection), 1)
    payload.current(inspection, 0)
    revisions = iter(range(1, 100))
    toggled, _ = best(lambda: toggle(inspection, next(revisions)), 6)
    return {
        "layers": layers,
        "ops": sum(1 for _ in result.module.walk()),
        "trace+lower": traced,
        "inspect": inspected,
        "import": imported,
        "parse": parsed,
        "ranges": ranged,
        "toggle": toggled,
    }


def show(one: dict[str, float]) -> str:
    """One line of the table: seconds, then the ratios that are promised."""
    cells = [f"{int(one['layers'])}", f"{int(one['ops']):,}", *(f"{one[name]:.3f} s" for name in HEADER[2:8])]
    ratios = (one["import"] / one["trace+lower"], one["parse"] / one["import"], one["toggle"] / one["parse"])
    cells += [f"{ratios[0]:.2f}", f"{ratios[1]:.1f}x", f"{100 * ratios[2]:.1f} %"]
    return "  ".join(cell.rjust(max(len(name), 9)) for cell, name in zip(cells, HEADER, strict=True))


def main() -> None:
    print(f"train_step of notebooks/train_step.py at width {WIDTH}; jax {jax.__version__}, {jax.default_backend()}")
    print("  ".join(name.rjust(max(len(name), 9)) for name in HEADER), flush=True)
    rows: list[dict[str, float]] = []
    for layers in LAYERS:
        rows.append(row(layers))
        print(show(rows[-1]), flush=True)
    first, last = rows[0], rows[-1]
    growth = ", ".join(f"{name} {last[name] / first[name]:.1f}x" for name in HEADER[1:8])
    print(f"growth from {LAYERS[0]} to {LAYERS[-1]} layers ({LAYERS[-1] // LAYERS[0]}x): {growth}")
    print("promised at 24 layers: import/trace at most 0.50, parse/import at least 15x, toggle/parse at most 5 %")


if __name__ == "__main__":
    main()
