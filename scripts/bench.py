"""From trace to toggle, as ratios against real work of the same run: JAX's own trace and lower, xDSL's own text parser.

Compiles nothing for that. Each figure is the best of a few tries in process time; the parser runs once, it takes
seconds. Then what a call of `di.jit` takes against one of `jax.jit`, on programs that are compiled and do next to
nothing: the median of many rounds in which both are called by turns.
"""

import gc
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from xdsl.parser import Parser  # noqa: E402

import bench_compile  # noqa: E402
import bench_life  # noqa: E402
import donation_inspector as di  # noqa: E402
from donation_inspector.ir.dialect import make_context  # noqa: E402
from donation_inspector.ir.importer import import_module  # noqa: E402
from donation_inspector.present import payload  # noqa: E402
from donation_inspector.program.subject import Subject  # noqa: E402
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


def tiny(layers: int) -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
    """The train step's trees with one number to a leaf, a step that returns its state before its parameters, and a
    batch."""
    params, state, _ = jax.tree.map(lambda leaf: jnp.ones((1,), leaf.dtype), example(layers, WIDTH))

    def step(params: Any, state: Any, x: Any) -> tuple[Any, Any]:
        return jax.tree.map(lambda leaf: leaf + 1, state), jax.tree.map(
            lambda leaf: leaf * x.astype(leaf.dtype), params
        )

    return step, (params, state), jnp.ones(())


def three() -> tuple[Callable[..., Any], tuple[Any, ...], Any]:
    """Three arrays of one number."""
    return lambda p, m, x: (m + x, p - m), (jnp.ones((1,)), jnp.zeros((1,))), jnp.ones((1,))


def seconds_of_calls(step: Any, donated: list[Any], batch: Any, calls: int = 20) -> float:
    """Wall time of `calls` calls, each with what the one before gave; `donated` is what the next ones start from."""
    started = time.perf_counter()
    for _ in range(calls):
        state, params = step(*donated, batch)
        donated[:] = params, state
    jax.block_until_ready(donated)
    return time.perf_counter() - started


def dispatch(step: Callable[..., Any], donated: tuple[Any, ...], batch: Any, pairs: Any, rounds: int = 200) -> float:
    """The median over the rounds of `di.jit`'s time by `jax.jit`'s, for calls that are compiled already."""
    names = jax.jit(step, donate_argnums=(0, 1)), di.jit(step, pairs=pairs)
    runs = [(one, [jax.tree.map(jnp.copy, tree) for tree in donated]) for one in names]
    ratios: list[float] = []
    for turn in range(rounds + 1):
        times = dict.fromkeys(range(2), 0.0)
        for which in (0, 1) if turn % 2 else (1, 0):
            times[which] = seconds_of_calls(*runs[which], batch)
        ratios.append(times[1] / times[0])
    return statistics.median(ratios[1:])


def show_dispatch() -> None:
    """The ratios for few and many leaves, whole arguments and all leaves but one."""
    step, donated, batch = tiny(LAYERS[0])
    leaves = len(jax.tree.leaves((donated, batch)))
    paths = [jax.tree_util.keystr(keys) for keys, _ in jax.tree_util.tree_flatten_with_path(donated[0])[0]]
    whole, single = {"params": "[1]", "state": "[0]"}, {f"params{path}": f"[1]{path}" for path in paths[1:]}
    few = dispatch(*three(), {"p": "[1]", "m": "[0]"})
    many, but_one = (dispatch(step, donated, batch, one) for one in (whole, {**single, "state": "[0]"}))
    print(f"di.jit's call against jax.jit's: {few:.2f} on 3 leaves, {many:.2f} on {leaves}, ", end="")
    print(f"{but_one:.2f} with one of the {leaves} left out; promised at most 1.20")


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
    show_dispatch()
    bench_compile.show(train_step, example(4, WIDTH))
    path = f"import sys; sys.path.insert(0, {str(ROOT / 'notebooks')!r})"
    named = f"from train_step import example, train_step\narguments = example(24, {WIDTH})"
    bench_life.show(f"{path}\n{named}", "train_step(*arguments)")


if __name__ == "__main__":
    main()
