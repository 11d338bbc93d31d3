"""What `compare` and `measure` take, as ratios against single compiles of the same run: wall time, children and all."""

import os
import resource
import time
from collections.abc import Callable
from typing import Any

import donation_inspector as di
from donation_inspector.common.parallel_jobs import workers
from donation_inspector.program.answer_cache import COMPILED, EXECUTABLES
from donation_inspector.questions.compare.ask import NOTHING, programs
from donation_inspector.xla.compile import compile_variants
from donation_inspector.xla.targets import resolve


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall seconds, seconds of the children's processors, and what it returned."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    result = work()
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def show(step: Any, arguments: tuple[Any, ...]) -> None:
    """Both variants alone, then `compare`, then `measure` with what it left and without."""
    inspection = di.inspect(step, *arguments)
    subject = inspection._subject
    donations = {"none": NOTHING, "jax": subject.origin.decide(inspection.donated_by_function)}
    made = programs(subject, donations, resolve(None, platform=inspection.platform, devices=inspection.devices))
    print(f"\ncompiles, load {os.getloadavg()[0]:.1f} on {workers()} cores")
    alone = {
        name: timed(lambda one=program: compile_variants({"one": one}, hlo=True)) for name, program in made.items()
    }
    for name, (wall, processors, _) in alone.items():
        print(f"  {name} alone: {wall:.1f} s, {processors / wall:.2f} cores busy")
    slower = max(wall for wall, _, _ in alone.values())
    COMPILED.clear()
    wall, processors, comparison = timed(inspection.compare)
    print(f"  compare ÷ the slower compile: {wall / slower:.2f}, {processors / wall:.2f} cores busy; {comparison.how}")
    least = sum(used for _, used, _ in alone.values()) / workers() / slower
    print(f"  the processors' time of both, on all cores ÷ the slower compile: {least:.2f}: it cannot be less")
    kept, _, measurement = timed(lambda: inspection.measure(inputs="generated", runs=1))
    EXECUTABLES.clear()
    anew, _, again = timed(lambda: inspection.measure(inputs="generated", runs=1))
    print(f"  measure ({measurement.executables}) ÷ measure ({again.executables}): {kept / anew:.2f}")
