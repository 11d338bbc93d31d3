"""What a CI run asks with `--fail-on`: does a donation not hold, does a program not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from donation_inspector.analysis.donation import Argument, Verdict
from donation_inspector.common.units import format_bytes
from donation_inspector.errors import DonationInspectorError
from donation_inspector.inspection import Inspection
from donation_inspector.questions.compare.answer import fits_words


class GateError(DonationInspectorError):
    """What --fail-on asks cannot be told."""


def findings(inspection: Inspection, conditions: Iterable[str]) -> list[str]:
    """What is so of the conditions, a line each; none where all is well.

    Raises GateError where it cannot be told.
    """
    return [f"{name}: {line}" for name in dict.fromkeys(conditions) for line in _CONDITIONS[name](inspection)]


def needs_xla(inspection: Inspection, conditions: Iterable[str]) -> bool:
    """Whether only a compiled module can tell: an argument is left to XLA, and XLA was not asked."""
    left = any(argument.verdict is Verdict.DONOR for argument in inspection.arguments)
    return left and "not-donated" in conditions and not inspection.comparisons


def _not_donated(inspection: Inspection) -> Iterator[str]:
    """What `assert_donated` raises on, on every target that was asked for."""
    asked = {argument.index for argument in inspection.arguments if argument.donated and argument.nbytes != 0}
    asked |= inspection.donation_ignored
    if not asked:
        yield f"{inspection.name} donates nothing"
    lost = {one.path: one for one in _lost(inspection) if one.index in asked}
    for argument in sorted(lost.values(), key=lambda one: -(one.nbytes or 0)):
        yield f"{argument.path} ({format_bytes(argument.nbytes)}), {argument.verdict}: {argument.reason}"


def _lost(inspection: Inspection) -> Iterator[Argument]:
    """Arguments whose buffers no result takes over, by JAX's decision or on some target by XLA's."""
    for argument in inspection.arguments:
        if argument.verdict not in (Verdict.ALIASED, Verdict.DONOR):
            yield argument
    for comparison in inspection.comparisons.values():
        compiled = comparison.variants["jax"]
        if compiled.memory is None:
            continue
        for argument in comparison.arguments:
            if argument.verdict is Verdict.DONOR and argument.index not in compiled.input_output_alias:
                yield argument


def _does_not_fit(inspection: Inspection) -> Iterator[str]:
    if not inspection.comparisons:
        raise GateError("--fail-on does-not-fit needs --target, or --fits with the memory of a device.")
    for comparison in inspection.comparisons.values():
        variant = comparison.variants["jax"]
        if variant.fits is None:
            why = variant.error or "the memory of a device is not known, give it with --fits"
            raise GateError(f"--fail-on does-not-fit: {inspection.name} on {comparison.target} is unknown: {why}.")
        if not variant.fits:
            of = f" of {format_bytes(variant.capacity)}" if variant.capacity else ""
            yield f"{inspection.name} on {comparison.target}: {fits_words(variant)}{of}"


_CONDITIONS: dict[str, Callable[[Inspection], Iterator[str]]] = {
    "not-donated": _not_donated,
    "does-not-fit": _does_not_fit,
}
