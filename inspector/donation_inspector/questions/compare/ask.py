"""From one donation and what the pass made of it to three variants: compiled by XLA, and run on the device.

Equal variants are compiled and run once: where the pass pairs as JAX does, "jax" and "pass" are one program.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from donation_inspector.attribution.compiled_module import CompiledModule
from donation_inspector.common.parallel_jobs import run_together, workers
from donation_inspector.common.signature import Donation
from donation_inspector.errors import MeasureError
from donation_inspector.ir.exporter import with_donation
from donation_inspector.program.as_generated import handed_over
from donation_inspector.program.subject import CompiledKey, DonationKey, PassKey, donation_key
from donation_inspector.questions.apply.answer import Applied
from donation_inspector.questions.compare.answer import VARIANTS, Comparison, Variant
from donation_inspector.questions.measure.answer import MeasuredVariant, Measurement
from donation_inspector.xla.compile import compile_variants
from donation_inspector.xla.devices import why_not_beside
from donation_inspector.xla.measure import measure_variants
from donation_inspector.xla.results import Compiled

if TYPE_CHECKING:
    from donation_inspector.analysis.donation import Argument, Result
    from donation_inspector.common.progress import Progress
    from donation_inspector.program.subject import Subject
    from donation_inspector.xla.program import Program
    from donation_inspector.xla.targets import Target

NOTHING = Donation()
INPUTS = ("real", "generated")


@dataclass(frozen=True)
class Case:
    """A program as it is donated, what JAX decided about it, and what the pass made of it."""

    subject: Subject
    donation: Donation
    applied: Applied
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]

    @property
    def variants(self) -> dict[str, Donation]:
        """The variants that there are, by name."""
        variants = {"none": NOTHING, "jax": self.donation}
        if self.applied.compilable:
            variants["pass"] = self.applied.donation
        return variants

    @property
    def key(self) -> tuple[DonationKey, PassKey]:
        """What answers about it are kept under."""
        made = donation_key(self.applied.donation) if self.applied.compilable else None
        return donation_key(self.donation), made


class Job:
    """One comparison to make: a case for one target."""

    def __init__(self, case: Case, target: Target) -> None:
        self._case, self._target = case, target
        self._part = _Part(case.subject, _missing(case.subject, case.variants, target, hlo=True), target, None, True)
        self.steps = len(self._part.donations)

    def run(self, progress: Progress | None, cancel: threading.Event | None) -> Comparison:
        """Compile what is not compiled yet. What is finished is kept, however the rest ends."""
        case = self._case
        fresh = self._part.run(progress, cancel)
        answer = _comparison(case, {**case.subject.compiled, **fresh}, self._target)
        case.subject.comparisons[self._target, *case.key] = answer
        return answer


_FINAL = ("ok", "refused", "does not fit")


def compare(jobs: Sequence[Job], progress: Progress, cancel: threading.Event | None) -> list[Comparison]:
    """Every comparison, several targets at once; see `Inspection.compare`."""
    if len(jobs) == 1:
        return [jobs[0].run(progress, cancel)]
    return run_together([job.run for job in jobs], sum(job.steps for job in jobs), progress, cancel)


def compile_donations(
    subject: Subject,
    donations: Mapping[str, Donation],
    target: Target,
    *,
    progress: Progress,
    cancel: threading.Event | None = None,
    timeout: float | None = None,
    hlo: bool = False,
) -> None:
    """Compile these donations of one program at once, split over as many children as there are cores.

    What is finished is kept on the subject, `known` finds it; the rest is not there after `timeout` seconds for all
    together, or once `cancel` is set. On Ctrl-C it is raised when all have ended. With `hlo` a comparison can use it.
    """
    missing = _missing(subject, donations, target, hlo=hlo)
    parts = min(workers(), len(missing))
    jobs = [_Part(subject, dict(list(missing.items())[part::parts]), target, timeout, hlo).run for part in range(parts)]
    run_together(jobs, len(missing), progress, cancel)


def compile_programs(
    programs: Sequence[tuple[str, Subject, Mapping[str, Donation]]],
    target: Target,
    *,
    progress: Progress,
    cancel: threading.Event | None = None,
) -> list[dict[str, Compiled]]:
    """Compile the donations of several programs for their totals, a child for each program, several at once.

    The progress is told under the name that comes with each.
    What is finished is kept on its subject, as by `compile_donations`; what was cancelled says so.
    """
    parts = [_Part(one, _missing(one, wanted, target, hlo=False), target, None, False) for _, one, wanted in programs]
    jobs = [_under(name, part) for (name, _, _), part in zip(programs, parts, strict=True)]
    fresh = run_together(jobs, sum(len(part.donations) for part in parts), progress, cancel)
    return [
        {
            name: known(subject, donation, target) or made[_compiled_key(target, donation)]
            for name, donation in wanted.items()
        }
        for (_, subject, wanted), made in zip(programs, fresh, strict=True)
    ]


def compile_handed_over(
    subject: Subject,
    pairs: Mapping[int, int],
    target: Target,
    *,
    progress: Progress,
    cancel: threading.Event | None = None,
) -> Compiled:
    """Compile the program as `donation_inspector.jit` gives it to JAX for these pairs, by position, for its total.

    It is no module of the program as the user wrote it: with its results in another order XLA schedules it anew.
    """
    key = _compiled_key(target, Donation(pairs))
    if key not in subject.handed_over:
        with subject.lock:
            program = subject.origin.program(handed_over(subject, pairs), target)

        def run(progress: Progress, cancel: threading.Event) -> Compiled:
            (result,) = compile_variants({"as handed over": program}, progress=progress, cancel=cancel).values()
            return result

        (result,) = run_together([run], 1, progress, cancel)
        if result.status not in _FINAL:
            return result
        subject.handed_over[key] = result
    return subject.handed_over[key]


def _under(name: str, part: _Part) -> Callable[[Progress, threading.Event], dict[CompiledKey, Compiled]]:
    def run(progress: Progress, cancel: threading.Event) -> dict[CompiledKey, Compiled]:
        return part.run(lambda done, steps, label: progress(done, steps, f"{name}: {label}"), cancel)

    return run


def _missing(subject: Subject, donations: Mapping[str, Donation], target: Target, *, hlo: bool) -> dict[str, Donation]:
    """What is not compiled yet, each program once."""
    return {
        label: wanted
        for label, wanted in _distinct(donations).items()
        if known(subject, wanted, target, hlo=hlo) is None
    }


@dataclass(frozen=True)
class _Part:
    """What one child compiles."""

    subject: Subject
    donations: Mapping[str, Donation]
    target: Target
    timeout: float | None
    hlo: bool

    def run(self, progress: Progress | None, cancel: threading.Event | None) -> dict[CompiledKey, Compiled]:
        """What came of it; what another compile could not change is kept on the subject."""
        programs = _programs(self.subject, self.donations, self.target)
        compiled = compile_variants(programs, progress=progress, cancel=cancel, timeout=self.timeout, hlo=self.hlo)
        made = {_compiled_key(self.target, self.donations[label]): result for label, result in compiled.items()}
        kept = self.subject.compiled if self.hlo else self.subject.totals
        # What ended for another reason than the program may go better the next time.
        kept.update({key: result for key, result in made.items() if result.status in _FINAL})
        return made


def known(subject: Subject, donation: Donation, target: Target, *, hlo: bool = False) -> Compiled | None:
    """What XLA made of a donation, None where it was not asked yet; with `hlo` only as a comparison can use it."""
    key = _compiled_key(target, donation)
    return subject.compiled.get(key) or (None if hlo else subject.totals.get(key))


def kept_comparison(case: Case, target: Target) -> Comparison | None:
    """The comparison of this donation as far as it is compiled; None where it never was."""
    subject = case.subject
    found = subject.comparisons.get((target, *case.key))
    if found is None and all(_compiled_key(target, wanted) in subject.compiled for wanted in case.variants.values()):
        found = subject.comparisons[target, *case.key] = _comparison(case, subject.compiled, target)
    return found


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
    if inputs not in INPUTS:
        raise MeasureError(f"inputs={inputs!r} is neither of {', '.join(map(repr, INPUTS))}")
    # a NaN fails every comparison
    numbers = isinstance(cast(object, runs), int) and isinstance(cast(object, timeout), int | float)
    if not (numbers and runs >= 1 and timeout > 0):
        raise MeasureError(f"runs={runs!r}, timeout={timeout!r}: at least one run and more than 0 seconds are needed")
    subject, applied, variants = case.subject, case.applied, case.variants
    platform = subject.origin.platform
    if in_kernel and platform == "cpu":
        raise MeasureError(
            "in_kernel=True is for a device that this kernel holds; on a CPU a fresh process always runs"
        )
    distinct = _distinct(variants)
    held = None if in_kernel else why_not_beside(platform, _largest(subject))
    if held is not None:
        raise MeasureError(held)
    if in_kernel:
        # The count of a kernel's device is its highest ever: what takes less goes first, or it would not be seen.
        distinct = dict(reversed(distinct.items()))
    values, description = values_of(subject, inputs)
    measured = measure_variants(
        _programs(subject, distinct, None),
        values,
        runs=runs,
        timeout=timeout,
        in_kernel=in_kernel,
        progress=progress,
        cancel=cancel,
    )
    by_donation = {donation_key(distinct[label]): result for label, result in measured.items()}
    rows: dict[str, MeasuredVariant] = {}
    for name in VARIANTS:
        if name not in variants:
            rows[name] = MeasuredVariant(name, None, None, None, None, "refused", applied.why_not)
            continue
        result = by_donation[donation_key(variants[name])]
        rows[name] = MeasuredVariant(
            name, result.peak, result.spread, result.predicted, result.seconds, result.status, result.error
        )
    results = [by_donation[donation_key(donated)] for donated in variants.values()]
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


_IN_KERNEL = "run in this kernel: a peak that was reached before on the device hides a lower one, which is then unknown"


def _largest(subject: Subject) -> int | None:
    """The largest total a device of what is compiled for this machine; None where nothing is."""
    totals = [result.memory.total for (target, _), result in subject.compiled.items() if target.here and result.memory]
    return max(totals, default=None)


# ---- variants and their keys


def _compiled_key(target: Target, donation: Donation) -> CompiledKey:
    return dataclasses.replace(target, capacity=None), donation_key(donation)


def _distinct(variants: Mapping[str, Donation]) -> dict[str, Donation]:
    """Each program once, under the names of all the variants that it is."""
    names: dict[DonationKey, list[str]] = {}
    for name, donation in variants.items():
        names.setdefault(donation_key(donation), []).append(name)
    return {" = ".join(group): variants[group[0]] for group in names.values()}


def _programs(subject: Subject, donations: Mapping[str, Donation], target: Target | None) -> dict[str, Program]:
    with subject.lock:
        return {
            label: subject.origin.program(with_donation(subject.origin.module, wanted), target)
            for label, wanted in donations.items()
        }


def _module(subject: Subject, key: CompiledKey, result: Compiled) -> CompiledModule | None:
    """The module of one answer, the same object for all who ask."""
    if result.hlo is None:
        return None
    known = subject.modules.get(key)
    if known is None or known.hlo is not result.hlo:
        known = subject.modules[key] = CompiledModule(result.hlo, subject.signature, result.memory)
    return known


def _comparison(case: Case, compiled: Mapping[CompiledKey, Compiled], target: Target) -> Comparison:
    subject, applied, variants = case.subject, case.applied, case.variants
    rows: dict[str, Variant] = {}
    for name in VARIANTS:
        if name not in variants:
            rows[name] = Variant(name, None, {}, None, "refused", applied.why_not)
            continue
        wanted = variants[name]
        result = compiled[_compiled_key(target, wanted)]
        missing = (
            tuple(
                (subject.leaf_of_argument.get(argument, argument), subject.leaf_of_result.get(place, place))
                for argument, place in wanted.aliases.items()
                if result.input_output_alias.get(argument) != place
            )
            if result.memory is not None
            else ()
        )
        aliases = {
            subject.leaf_of_argument[argument]: subject.leaf_of_result[place]
            for argument, place in result.input_output_alias.items()
            if argument in subject.leaf_of_argument and place in subject.leaf_of_result
        }
        rows[name] = Variant(
            name,
            result.memory,
            aliases,
            result.seconds,
            result.status,
            result.error,
            missing,
            target.capacity or result.capacity,
            _module(subject, _compiled_key(target, wanted), result),
        )
    return Comparison(target.name, applied.pipeline, rows, target.here, (case.arguments, case.results))


def values_of(subject: Subject, inputs: str) -> tuple[Sequence[Any] | None, str]:
    """One entry for each argument of the entry function, None where it is to be generated; and what to say of it."""
    if inputs == "generated":
        return None, "generated"
    values = subject.origin.values()
    real = sum(value is not None for value in values)
    if real == len(values):
        return values, "real"
    return values, f"{real} of {len(values)} real, the others generated" if real else "generated"
