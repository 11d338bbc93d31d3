"""`assert_donated`: for a test or a CI run, that what a function donates is handed over to its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from donation_inspector.advice.donation_code import code_for
from donation_inspector.analysis.donation import Argument, Verdict
from donation_inspector.analysis.donors import donor_outcome
from donation_inspector.common.progress import reported
from donation_inspector.common.units import format_bytes
from donation_inspector.errors import CompileError, DonationError
from donation_inspector.frameworks import call_site
from donation_inspector.inspection import Inspection
from donation_inspector.program.origins import FromFunction
from donation_inspector.program.subject import Subject
from donation_inspector.questions.compare import ask as compiling
from donation_inspector.xla.targets import resolve

_SHOWN = 20


def assert_donated(fn: Any, /, *args: Any, **kwargs: Any) -> Inspection:
    """Assert that every argument that `fn` donates hands its buffer to a result; the Inspection is returned.

    `fn` and the arguments are what `inspect` takes, shapes alone among them. The program is traced and lowered,
    and nothing is run. What JAX leaves to XLA is only known once it is compiled: then, and only then, it is, in a child
    process. An array without bytes has nothing to hand over. That a buffer is handed over does not say that it makes
    the program smaller, since XLA may copy elsewhere: `Inspection.compare` tells that.

    Raises:
      DonationError: an `AssertionError`. Each argument whose donation does not hold, with the reason: no result takes
        it, it is dropped, an inner jit, `jax_debug_nans` or `jax_disable_jit` makes JAX ignore it, or XLA did not use
        it. Or nothing is donated at all: then with what could be.
      TraceError: as `inspect`. CompileError: XLA did not compile what it alone can tell.
    """
    # pytest leaves this frame out of what it shows.
    __tracebackhide__ = True
    subject = Subject(FromFunction(fn, args, kwargs, call_site.of_caller()))
    inspection = Inspection(subject)
    ignored = {leaf.index for leaf in subject.signature.arguments if leaf.ignored is not None}
    asked = [one for one in inspection.arguments if (one.donated or one.index in ignored) and one.nbytes != 0]
    if not asked:
        raise DonationError(_nothing(inspection, subject))
    lost = list(_lost(inspection, subject, asked))
    if lost:
        raise DonationError(_message(inspection, len(asked), lost))
    return inspection


def _lost(inspection: Inspection, subject: Subject, asked: Sequence[Argument]) -> Iterator[tuple[Argument, str]]:
    """Each of the arguments that no result takes over, with the reason."""
    left = any(argument.verdict is Verdict.DONOR for argument in asked)
    alias = _compiled_alias(inspection, subject) if left else {}
    for argument in asked:
        if argument.verdict is Verdict.DONOR:
            if argument.index not in alias:
                told = donor_outcome(argument, inspection.arguments, inspection.results, alias)
                yield argument, f"{argument.reason}; {told}"
        elif argument.verdict is not Verdict.ALIASED:
            yield argument, argument.reason


def _compiled_alias(inspection: Inspection, subject: Subject) -> dict[int, int]:
    """The compiled module's `input_output_alias`, from argument indices to result indices."""
    donation = inspection.donation
    target = resolve(None, platform=inspection.platform, devices=inspection.devices)
    with reported(None, f"XLA compiles for {target.name}, to tell what it does with donors") as progress:
        compiling.compile_donations(subject, {"jax": donation}, target, progress=progress)
    made = compiling.known(subject, donation, target)
    if made is None or made.memory is None:
        why = "no answer came" if made is None else made.error
        raise CompileError(f"{inspection.name} donates what is left to XLA, and XLA did not compile it: {why}")
    arguments, results = subject.leaf_of_argument, subject.leaf_of_result
    return {
        arguments[argument]: results[result]
        for argument, result in made.input_output_alias.items()
        if argument in arguments and result in results
    }


def _message(inspection: Inspection, asked: int, lost: Sequence[tuple[Argument, str]]) -> str:
    largest = sorted(lost, key=lambda one: -(one[0].nbytes or 0))
    lines = [f"  {argument.path} ({format_bytes(argument.nbytes)}): {why}" for argument, why in largest[:_SHOWN]]
    if len(lost) > _SHOWN:
        lines.append(f"  and {len(lost) - _SHOWN} more, none of them larger")
    them, are = ("it", "is") if len(lost) == 1 else ("them", "are")
    return "\n".join(
        [
            f"{inspection.name}: {len(lost)} of {asked} donated arguments {are} not handed over to a result:",
            *lines,
            f"Do what the reason says, or leave {them} out of what is donated; donation_inspector.inspect shows more.",
        ]
    )


def _nothing(inspection: Inspection, subject: Subject) -> str:
    possible = inspection.proposed
    unsafe = list(map(str, inspection.unsafe))
    if not possible:
        why = "what could be is not safe to donate" if unsafe else "no result could take over an argument's buffer"
        return "\n".join([f"{inspection.name} donates nothing, and {why}.", *unsafe])
    lines = [f"  {one.path} ({format_bytes(one.nbytes)}): {one.reason}" for one in possible[:_SHOWN]]
    if len(possible) > _SHOWN:
        lines.append(f"  and {len(possible) - _SHOWN} more, none of them larger")
    donating = inspection.donate(*(one.path for one in possible))
    pairs = {one.index: one.result for one in donating.arguments if one.result is not None}
    code = code_for(subject, frozenset(one.index for one in possible), pairs)
    return "\n".join([f"{inspection.name} donates nothing. What could be donated:", *lines, code, *unsafe])
