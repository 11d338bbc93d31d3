"""Every variant run in a process of its own: the executables that were compiled before, or one compile for all runs."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from donation_inspector.common.visible import repr_of
from donation_inspector.errors import MeasureError
from donation_inspector.program.answer_cache import EXECUTABLES, ExecutableOf
from donation_inspector.program.subject import donation_key
from donation_inspector.questions.compare.answer import VARIANTS
from donation_inspector.questions.compare.ask import CompiledFor, compile_to_run, distinct, known, programs
from donation_inspector.questions.measure.answer import MeasuredVariant, Measurement, WhichExecutable
from donation_inspector.xla.devices import why_not_beside
from donation_inspector.xla.measure import measure_variants
from donation_inspector.xla.program import fingerprint
from donation_inspector.xla.results import Executable, Measured
from donation_inspector.xla.targets import resolve

if TYPE_CHECKING:
    from donation_inspector.common.progress import Progress
    from donation_inspector.common.signature import Donation
    from donation_inspector.program.subject import Subject
    from donation_inspector.questions.compare.ask import Case
    from donation_inspector.xla.kept_executable import KeptExecutable
    from donation_inspector.xla.program import Program
    from donation_inspector.xla.results import Compiled
    from donation_inspector.xla.targets import Target

INPUTS = ("real", "generated")


def measure(
    case: Case,
    inputs: str,
    runs: int,
    timeout: float,
    in_kernel: bool,
    progress: Progress,
    cancel: threading.Event | None,
) -> Measurement:
    """Run every variant anew; see `Inspection.measure`."""
    if not (isinstance(cast(object, inputs), str) and inputs in INPUTS):
        raise MeasureError(f"inputs={repr_of(inputs)} is neither of {', '.join(map(repr, INPUTS))}")
    # a NaN fails every comparison
    numbers = isinstance(cast(object, runs), int) and isinstance(cast(object, timeout), int | float)
    if not (numbers and runs >= 1 and timeout > 0):
        raise MeasureError(
            f"runs={repr_of(runs)}, timeout={repr_of(timeout)}: at least one run and more than 0 seconds are needed"
        )
    subject, applied, variants = case.subject, case.applied, case.variants
    platform = subject.origin.platform
    if in_kernel and platform == "cpu":
        raise MeasureError(
            "in_kernel=True is for a device that this kernel holds; on a CPU a fresh process always runs"
        )
    held = None if in_kernel else why_not_beside(platform, _largest(subject))
    if held is not None:
        raise MeasureError(held)
    wanted = distinct(variants)
    if in_kernel:
        # The count of a kernel's device is its highest ever: what takes less goes first, or it would not be seen.
        wanted = dict(reversed(wanted.items()))
    values, description = values_of(subject, inputs)
    target = resolve(None, platform=platform, devices=subject.signature.devices)
    made = programs(subject, wanted, target)
    kept = {label for label, program in made.items() if EXECUTABLES.get(ExecutableOf(fingerprint(program)))}
    measured: dict[str, Measured] = {}
    if not in_kernel:
        measured = _compiled(subject, wanted, made, kept, target, runs, timeout, progress, cancel)
    left = {label: program for label, program in made.items() if label not in measured}
    before = len(made) * (runs + 2) - len(left) * (runs + 2)
    measured |= measure_variants(
        left,
        values,
        runs=runs,
        timeout=timeout,
        in_kernel=in_kernel,
        executables=_executables(subject, wanted, left, target),
        progress=lambda step, steps, label: progress(before + step, before + steps, label),
        cancel=cancel,
    )
    by_donation = {donation_key(wanted[label]): (label, result) for label, result in measured.items()}
    rows: dict[str, MeasuredVariant] = {}
    for name in VARIANTS:
        if name not in variants:
            rows[name] = MeasuredVariant(name, None, None, None, None, "refused", applied.why_not)
            continue
        label, result = by_donation[donation_key(variants[name])]
        fresh = result.executable == "kept" and label not in kept
        ran = "compiled for the runs" if fresh else _WHICH[result.executable]
        rows[name] = MeasuredVariant(
            name, result.peak, result.spread, result.predicted, result.seconds, result.status, result.error, ran
        )
    results = [by_donation[donation_key(donated)][1] for donated in variants.values()]
    hashes = [result.output_hashes for result in results if result.output_hashes is not None]
    equal = all(one == hashes[0] for one in hashes) if len(hashes) > 1 else None
    answer = Measurement(
        platform, description, runs, rows, equal, _IN_KERNEL if in_kernel else None, subject.signature.devices
    )
    subject.measurements[case.key] = answer
    return answer


def kept_measurement(case: Case) -> Measurement | None:
    """The latest measurement of this donation, None where there is none."""
    return case.subject.measurements.get(case.key)


def values_of(subject: Subject, inputs: str) -> tuple[Sequence[Any] | None, str]:
    """One entry for each argument of the entry function, None where it is to be generated; and what to say of it."""
    if inputs == "generated":
        return None, "generated"
    values = subject.origin.values()
    real = sum(value is not None for value in values)
    if real == len(values):
        return values, "real"
    return values, f"{real} of {len(values)} real, the others generated" if real else "generated"


_IN_KERNEL = "run in this kernel: a peak that was reached before on the device hides a lower one, which is then unknown"
_WHICH: Mapping[Executable | None, WhichExecutable | None] = {
    None: None,
    "kept": "compiled before",
    "cached": "from the compilation cache",
    "compiled": "compiled again to be run",
}


def _compiled(
    subject: Subject,
    wanted: Mapping[str, Donation],
    made: Mapping[str, Program],
    kept: set[str],
    target: Target,
    runs: int,
    timeout: float,
    progress: Progress,
    cancel: threading.Event | None,
) -> dict[str, Measured]:
    """Compile what nobody has asked for yet, several at once; what came to no executable is not run."""
    # One with callbacks is not run, and one that was compiled before without an executable compiles in its own process.
    fresh = {
        label: donation
        for label, donation in wanted.items()
        if label not in kept and not made[label].callbacks and known(subject, donation, target) is None
    }
    if not fresh or (cancel is not None and cancel.is_set()):
        return {}
    steps = len(made) * (runs + 2)
    made_now = compile_to_run(
        subject,
        fresh,
        target,
        each=timeout,
        progress=lambda _done, _steps, label: progress(0, steps, f"{label}: compiled"),
        cancel=cancel,
    )
    failed = {label: result for label, result in made_now.items() if result.status != "ok"}
    return {label: Measured(result.status, error=_told(result)) for label, result in failed.items()}


def _told(result: Compiled) -> str | None:
    late = result.status in ("timed out", "cancelled")
    return f"{(result.error or '').rstrip('.')}, while it was compiled." if late else result.error


def _executables(
    subject: Subject, wanted: Mapping[str, Donation], made: Mapping[str, Program], target: Target
) -> dict[str, tuple[KeptExecutable, Compiled]]:
    """What can be loaded, with what XLA said of it."""
    found: dict[str, tuple[KeptExecutable, Compiled]] = {}
    for label, program in made.items():
        kept = EXECUTABLES.get(ExecutableOf(fingerprint(program)))
        result = known(subject, wanted[label], target)
        if kept is not None and result is not None and result.memory is not None:
            found[label] = kept, dataclasses.replace(result, hlo=None)
    return found


def _largest(subject: Subject) -> int | None:
    """The largest total a device of what is compiled for this machine; None where nothing is."""
    compiled = subject.answers.of_kind(CompiledFor)
    totals = [result.memory.total for one, result in compiled if one.target.here and result.memory]
    return max(totals, default=None)
