"""From one donation and what the pass made of it to three variants: compiled by XLA, and run on the device.

Equal variants are compiled and run once: where the pass pairs as JAX does, "jax" and "pass" are one program.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from donation_inspector.answers import VARIANTS, Applied, Comparison, MeasuredVariant, Measurement, Variant
from donation_inspector.errors import CompileError, MeasureError
from donation_inspector.ir.exporter import with_donation
from donation_inspector.signature import Donation
from donation_inspector.xla.compile import compile_variants
from donation_inspector.xla.measure import measure_variants
from donation_inspector.xla.results import Compiled

if TYPE_CHECKING:
    from donation_inspector.progress import Progress
    from donation_inspector.subject import Subject
    from donation_inspector.xla.program import Program

NOTHING = Donation()
INPUTS = ("real", "generated")


def compare(
    subject: Subject,
    donation: Donation,
    applied: Applied,
    target: str | None,
    progress: Progress,
    cancel: threading.Event | None,
) -> Comparison:
    """Compile what is not compiled yet; see `Inspection.compare`."""
    platform = subject.origin.platform
    if target not in (None, platform):
        raise CompileError(f"no target {target!r}: this program was lowered for {platform!r}, the only target here")
    variants = _variants(donation, applied)
    kept = _kept(subject)
    missing = {label: wanted for label, wanted in _distinct(variants).items() if _key(wanted) not in kept}
    compiled = compile_variants(_programs(subject, missing), progress=progress, cancel=cancel, hlo=True)
    fresh = {_key(missing[label]): result for label, result in compiled.items()}
    # What ended for another reason than the program may go better the next time.
    kept.update({key: result for key, result in fresh.items() if result.status in ("ok", "refused")})
    answer = _comparison(subject, applied, variants, {**kept, **fresh})
    subject.answers["comparison", _key(donation), _pass_key(applied)] = answer
    return answer


def kept_comparison(subject: Subject, donation: Donation, applied: Applied) -> Comparison | None:
    """The comparison of this donation as far as it is compiled; None where it never was."""
    variants, kept = _variants(donation, applied), _kept(subject)
    if all(_key(wanted) in kept for wanted in variants.values()):
        return _comparison(subject, applied, variants, kept)
    return subject.answers.get(("comparison", _key(donation), _pass_key(applied)))


def measure(
    subject: Subject,
    donation: Donation,
    applied: Applied,
    inputs: str,
    runs: int,
    timeout: float,
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
    variants = _variants(donation, applied)
    distinct = _distinct(variants)
    values, description = _values(subject, inputs)
    measured = measure_variants(
        _programs(subject, distinct), values, runs=runs, timeout=timeout, progress=progress, cancel=cancel
    )
    by_donation = {_key(distinct[label]): result for label, result in measured.items()}
    rows: dict[str, MeasuredVariant] = {}
    for name in VARIANTS:
        if name not in variants:
            rows[name] = MeasuredVariant(name, None, None, None, None, "refused", applied.why_not)
            continue
        result = by_donation[_key(variants[name])]
        rows[name] = MeasuredVariant(
            name, result.peak, result.spread, result.predicted, result.seconds, result.status, result.error
        )
    results = [by_donation[_key(donated)] for donated in variants.values()]
    hashes = [result.output_hashes for result in results if result.output_hashes is not None]
    equal = all(one == hashes[0] for one in hashes) if len(hashes) > 1 else None
    answer = Measurement(subject.origin.platform, description, runs, rows, equal)
    subject.answers["measurement", _key(donation), _pass_key(applied)] = answer
    return answer


def kept_measurement(subject: Subject, donation: Donation, applied: Applied) -> Measurement | None:
    """The latest measurement of this donation, None where there is none."""
    return subject.answers.get(("measurement", _key(donation), _pass_key(applied)))


# ---- variants and their keys

_Key = tuple[frozenset[tuple[int, int]], frozenset[int]]


def _key(donation: Donation) -> _Key:
    return frozenset(donation.aliases.items()), donation.donors


def _pass_key(applied: Applied) -> _Key | None:
    return _key(applied.donation) if applied.compilable else None


def _variants(donation: Donation, applied: Applied) -> dict[str, Donation]:
    variants = {"none": NOTHING, "jax": donation}
    if applied.compilable:
        variants["pass"] = applied.donation
    return variants


def _distinct(variants: Mapping[str, Donation]) -> dict[str, Donation]:
    """Each program once, under the names of all the variants that it is."""
    names: dict[_Key, list[str]] = {}
    for name, donation in variants.items():
        names.setdefault(_key(donation), []).append(name)
    return {" = ".join(group): variants[group[0]] for group in names.values()}


def _programs(subject: Subject, donations: Mapping[str, Donation]) -> dict[str, Program]:
    with subject.lock:
        return {
            label: subject.origin.program(with_donation(subject.origin.module, wanted))
            for label, wanted in donations.items()
        }


def _kept(subject: Subject) -> dict[_Key, Compiled]:
    return subject.answers.setdefault("compiled", {})


def _comparison(
    subject: Subject, applied: Applied, variants: Mapping[str, Donation], compiled: Mapping[_Key, Compiled]
) -> Comparison:
    rows: dict[str, Variant] = {}
    for name in VARIANTS:
        if name not in variants:
            rows[name] = Variant(name, None, {}, None, "refused", applied.why_not)
            continue
        wanted = variants[name]
        result = compiled[_key(wanted)]
        missing = (
            tuple(
                (subject.leaf_of_argument.get(argument, argument), subject.leaf_of_result.get(target, target))
                for argument, target in wanted.aliases.items()
                if result.input_output_alias.get(argument) != target
            )
            if result.memory is not None
            else ()
        )
        aliases = {
            subject.leaf_of_argument[argument]: subject.leaf_of_result[target]
            for argument, target in result.input_output_alias.items()
            if argument in subject.leaf_of_argument and target in subject.leaf_of_result
        }
        rows[name] = Variant(
            name, result.memory, aliases, result.seconds, result.status, result.error, missing, result.hlo
        )
    return Comparison(subject.origin.platform, applied.pipeline, rows)


def _values(subject: Subject, inputs: str) -> tuple[Sequence[Any] | None, str]:
    """One entry for each argument of the entry function, None where it is to be generated; and what to say of it."""
    if inputs == "generated":
        return None, "generated"
    values = subject.origin.values()
    real = sum(value is not None for value in values)
    if real == len(values):
        return values, "real"
    return values, f"{real} of {len(values)} real, the others generated" if real else "generated"
