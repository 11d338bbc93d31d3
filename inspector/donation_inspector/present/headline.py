"""The sentences that come first: what donation saves here, and the line of code to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from donation_inspector.analysis.donation import Verdict
from donation_inspector.analysis.donors import usable_donors
from donation_inspector.analysis.paths import noun
from donation_inspector.analysis.saving import saving_sentence
from donation_inspector.attribution import describe, waiting
from donation_inspector.common.units import format_bytes, total_bytes
from donation_inspector.errors import CompileError

if TYPE_CHECKING:
    from donation_inspector.analysis.donation import Argument
    from donation_inspector.inspection import Inspection
    from donation_inspector.questions.compare.answer import Comparison, Variant
    from donation_inspector.questions.measure.answer import Measurement

REUSED = (Verdict.ALIASED, Verdict.DONOR)


@dataclass(frozen=True)
class Segment:
    """A piece of a sentence; the strong ones carry the numbers that matter."""

    text: str
    strong: bool = False


def headline(inspection: Inspection, *, measured: bool = True) -> tuple[Segment, ...]:
    """One sentence with the numbers that matter, as far as they are known; `measured` False leaves the runs out."""
    if not inspection.arguments:
        return (Segment(f"{inspection.name} has no array arguments: there is nothing to donate."),)
    comparison = inspection.comparison
    if not any(argument.donated for argument in inspection.arguments):
        return _nothing_donated(inspection, comparison)
    saved = None if comparison is None else comparison.saved("jax")
    none = None if comparison is None else comparison.variants["none"].memory
    if comparison is None or saved is None or none is None:
        return _not_compiled(inspection)
    devices = inspection.devices
    of_total = f"{format_bytes(abs(saved))} of {format_bytes(none.total)}"
    if saved > 0:
        sentence = [Segment("Donation saves "), Segment(f"{of_total} ({100 * saved / none.total:.0f} %)", strong=True)]
    elif saved == 0:
        sentence = [Segment("Donation saves "), Segment(f"nothing of {format_bytes(none.total)}", strong=True)]
    else:
        sentence = [Segment("Donation "), Segment(f"costs {format_bytes(-saved)}", strong=True), Segment(" more")]
    sentence.append(Segment(f"{_per_device(devices)}, {_compiled_for(comparison)}"))
    sentence += _fits(comparison)
    runs = inspection.measurement if measured else None
    peak_saved = None if runs is None else runs.saved("jax")
    if runs is not None and peak_saved is not None:
        more = f"costs {format_bytes(-peak_saved)} more"
        where = "" if runs.target == comparison.target else f" on {runs.target}"
        figure = (f"; measured{where} ", format_bytes(peak_saved))
        if peak_saved < 0:
            figure = (f"; measured{where}, it ", more)
        sentence += [Segment(figure[0]), Segment(figure[1], strong=True), Segment(_all_together(runs.devices))]
    return (*sentence, Segment("."))


def details(inspection: Inspection) -> str:
    """The sentence below the headline: where the saving comes from, or how to learn it."""
    comparison = inspection.comparison
    if comparison is None:
        peak = inspection.program_memory
        baseline = inspection.baseline_memory
        changed = f", {format_bytes(baseline.peak)} with nothing donated" if baseline.peak != peak.peak else ""
        bound = f"at least {format_bytes(peak.peak)} live at once, {peak.unknown} values of unknown size left out"
        if not peak.unknown:
            bound = f"at most {format_bytes(peak.peak)} live at once{changed}"
        return f"Predicted from the program's order: {bound}. Compare asks XLA, Measure runs it."
    none, jax = comparison.variants["none"], comparison.variants["jax"]
    if none.memory is None or jax.memory is None:
        return f"Not compiled: {none.error or jax.error}"
    sentence = f"By XLA's totals{_per_device(inspection.devices)}: {saving_sentence(none.memory, jax.memory)}"
    if inspection.worthwhile and inspection.recommendation is None:
        sentence += " recommend() compiles what could be donated besides, and gives the code."
    made = comparison.variants["pass"]
    if made.memory is not None and made.memory != jax.memory:
        saved = none.memory.total - made.memory.total
        sentence += f" With the pairs of the xDSL pass: {_saves(saved)}."
    return sentence + "".join(_lacking(inspection, variant) for variant in (jax, made))


def peak_sentence(inspection: Inspection) -> str | None:
    """What fills the device at the peak of XLA's schedule, or why that is not known; None before it is compiled."""
    comparison = inspection.comparison
    variant = None if comparison is None else comparison.shown
    if variant is None or variant.module is None:
        return None
    try:
        peak, waits = variant.peak, variant.module.waiting()
    except CompileError as error:
        return str(error)
    return None if peak is None else " ".join([describe.sentence(peak), *map(waiting.sentence, waits[:1])])


def _lacking(inspection: Inspection, variant: Variant) -> str:
    """Pairs that were asked for and that XLA did not carry over into the compiled module."""
    if not variant.missing_pairs:
        return ""
    argument, result = variant.missing_pairs[0]
    first = f"{inspection.arguments[argument].path} with {noun(inspection.results[result].title)}"
    more = "" if len(variant.missing_pairs) == 1 else f" and {len(variant.missing_pairs) - 1} more"
    return f" The compiled {variant.name!r} lacks pairs that were asked for: {first}{more}."


def measured_sentence(measurement: Measurement) -> str:
    """What the runs showed, the failed ones named."""
    failures = [f"{variant.name}: {variant.error or variant.status}" for variant in measurement.failures()]
    saved = measurement.saved("jax")
    parts: list[str] = []
    if saved is not None:
        parts.append(f"Measured: donation {_saves(saved)} at the peak{_all_together(measurement.devices)}")
    elif not failures:
        parts.append("The peak is unknown on this system: it needs Linux's /proc")
    if measurement.outputs_equal is not None:
        parts.append("all outputs are bit-equal" if measurement.outputs_equal else "the outputs differ")
    parts += [f"inputs: {measurement.inputs}", f"{measurement.runs} {'run' if measurement.runs == 1 else 'runs'} each"]
    limits = [one for one in (measurement.executables, measurement.limits) if one]
    return "; ".join([*parts, *limits, *failures]) + "."


def fix(inspection: Inspection, *, measured: bool = True) -> str | None:
    """The line that donates what is of use among what is chosen here; what is worth it besides, until XLA was asked.

    Once it is compiled nothing is proposed that was not, and nothing that does not save. None where the function
    already does. Where a donation was searched for this donated set it is that one's line, and None where that says
    nothing or more than a line; `measured` False leaves the search out.
    """
    found = inspection.recommendation if measured else None
    if found is not None and found.code:
        return None if found.code.startswith("#") or "\n" in found.code else found.code
    wholes = inspection.wholes
    worth = {whole.name for whole in inspection.worthwhile} if inspection.comparison is None else set[str]()
    asked = inspection.donated_by_function | inspection.donation_turned_off
    already = {whole.name for whole in wholes if not asked.isdisjoint(whole.leaves)}
    of_use = {argument.index for argument in inspection.arguments if _is_of_use(argument)}
    refused = {leaf for one in inspection.unsafe if one.certain for leaf in one.leaves}
    names = [
        whole.name
        for whole in wholes
        if (whole.name in worth or not of_use.isdisjoint(whole.leaves)) and refused.isdisjoint(whole.leaves)
    ]
    if not names or set(names) == already or not _is_worth_it(inspection.comparison):
        return None
    return inspection.line_that_donates(names)


def _is_worth_it(comparison: Comparison | None) -> bool:
    """Whether what is donated saves a hundredth of the total, by XLA's word; before that is asked nothing is known."""
    none = None if comparison is None else comparison.variants["none"].memory
    saved = None if comparison is None else comparison.saved("jax")
    return none is None or saved is None or 100 * saved >= none.total


def unsafe_sentences(inspection: Inspection, *, measured: bool = True) -> tuple[str, ...]:
    """What the line leaves out and why; () where a search says it below."""
    if measured and inspection.recommendation is not None:
        return ()
    nothing = not any(argument.donated for argument in inspection.arguments)
    told = nothing or fix(inspection, measured=measured) is not None
    return tuple(str(one) for one in inspection.unsafe if told or one.certain)


def _is_of_use(argument: Argument) -> bool:
    """Whether its donation is used, or would be once what its reason says is done."""
    return argument.donated and (argument.verdict in REUSED or argument.advised is not None)


def _nothing_donated(inspection: Inspection, comparison: Comparison | None) -> tuple[Segment, ...]:
    possible = sum(argument.nbytes or 0 for argument in inspection.proposed)
    sentence = [Segment("Nothing is donated")]
    if possible:
        sentence += [Segment("; "), Segment(f"{format_bytes(possible)} of arguments could be", strong=True)]
    elif any(argument.nbytes is None for argument in inspection.arguments):
        sentence.append(Segment("; sizes that are unknown here are not known to fit any result"))
    elif inspection.unsafe:
        sentence.append(Segment(", and what could be is not safe to donate"))
    else:
        sentence.append(Segment(", and no result could take over an argument's buffer"))
    total = None if comparison is None else comparison.variants["none"].memory
    if comparison is not None and total is not None:
        takes = f"{format_bytes(total.total)}{_per_device(inspection.devices)}"
        sentence += [Segment(f". It takes {takes}, {_compiled_for(comparison)}"), *_fits(comparison)]
    return (*sentence, Segment("."))


def _not_compiled(inspection: Inspection) -> tuple[Segment, ...]:
    arguments = inspection.arguments
    donated = total_bytes(argument.nbytes for argument in arguments if argument.donated)
    usable = usable_donors(arguments, inspection.results)
    reusable = [one for one in arguments if one.verdict is Verdict.ALIASED or one.index in usable]
    reused = total_bytes(argument.nbytes for argument in reusable)
    if donated is None or reused is None:
        count = len(reusable)
        asked = sum(argument.donated for argument in arguments)
        sizes = Segment(f"{count} of {asked} donated arrays", strong=True)
        return (sizes, Segment(" can be reused for results; their size is unknown."))
    numbers = Segment(f"{format_bytes(reused)} of {format_bytes(donated)} donated", strong=True)
    return (numbers, Segment(" can be reused for results."))


def _compiled_for(comparison: Comparison) -> str:
    return f"compiled for {comparison.target}" + ("" if comparison.here else ", not run")


def _fits(comparison: Comparison) -> list[Segment]:
    """Whether it fits as JAX donates it, and what donation has to do with that; nothing where it is not known."""
    none, jax = comparison.variants["none"], comparison.variants["jax"]
    if jax.fits is None:
        return []
    capacity = format_bytes(jax.capacity)
    if not jax.fits:
        over = f"{format_bytes(jax.over)} over" if jax.over else "too large for"
        return [Segment("; it does not fit: "), Segment(f"{over} the {capacity} of a device", strong=True)]
    only = ", and only with donation" if none.fits is False else ""
    return [Segment(f"; it fits the {capacity} of a device{only}")]


def _per_device(devices: int) -> str:
    return "" if devices == 1 else f" on each of {devices} devices"


def _all_together(devices: int) -> str:
    return "" if devices == 1 else f", all {devices} devices together"


def _saves(saved: int) -> str:
    if saved == 0:
        return "saves nothing"
    return f"saves {format_bytes(saved)}" if saved > 0 else f"costs {format_bytes(-saved)} more"
