"""From one donation and what the pass made of it to three variants, compiled by XLA.

Nothing is compiled twice: equal variants are one program (where the pass pairs as JAX does, "jax" and "pass" are), and
what XLA made is kept by the content of the program (`program.answer_cache`), whoever asked for it.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from donation_inspector.attribution.compiled_module import CompiledModule
from donation_inspector.common.parallel_jobs import run_together
from donation_inspector.common.signature import Arrangement, Donation
from donation_inspector.errors import MachineError
from donation_inspector.ir.exporter import with_donation
from donation_inspector.program.answer_cache import COMPILED, EXECUTABLES, CompiledContent, ExecutableOf, Question
from donation_inspector.program.as_generated import HandedOver, arrangement, jax_makes, module_of
from donation_inspector.program.subject import DonationKey, PassKey, donation_key
from donation_inspector.questions.compare.answer import VARIANTS, Comparison, Variant
from donation_inspector.xla import compile_memory
from donation_inspector.xla.compile import compile_variants
from donation_inspector.xla.kept_executable import KeptExecutable
from donation_inspector.xla.packing import arranged
from donation_inspector.xla.program import fingerprint
from donation_inspector.xla.results import Compiled
from donation_inspector.xla.targets import Target

if TYPE_CHECKING:
    from donation_inspector.analysis.donation import Argument, Result
    from donation_inspector.common.progress import Progress
    from donation_inspector.program.subject import Subject
    from donation_inspector.questions.apply.answer import Applied
    from donation_inspector.xla.program import Program

NOTHING = Donation()


@dataclass(frozen=True)
class CompiledFor(Question[Compiled]):
    """What XLA made of a donation for a target, whatever that one's capacity is said to be."""

    target: Target
    donation: DonationKey


@dataclass(frozen=True)
class CompiledAsGenerated(Question[Compiled]):
    """What XLA made of the program in another order of its arguments and results."""

    target: Target
    donation: DonationKey
    order: Arrangement


@dataclass(frozen=True)
class ComparisonOf(Question[Comparison]):
    """The comparison for a target, unfinished ones too; `made` is None where the pass made nothing to compile."""

    target: Target
    donation: DonationKey
    made: PassKey


@dataclass(frozen=True)
class _ModuleOf(Question[CompiledModule]):
    """A HloProto as it is read, the same object for all who ask; by its identity, which it keeps while it is kept."""

    hlo: int


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
        variants = {"none": self.subject.undonated, "jax": self.donation}
        if self.applied.compilable:
            variants["pass"] = self.applied.donation
        return variants

    @property
    def key(self) -> tuple[DonationKey, PassKey]:
        """What answers about it are kept under."""
        made = donation_key(self.applied.donation) if self.applied.compilable else None
        return donation_key(self.donation), made


@dataclass(frozen=True)
class Job:
    """One comparison to make: a case for one target."""

    case: Case
    target: Target


def compare(jobs: Sequence[Job], progress: Progress, cancel: threading.Event | None) -> list[Comparison]:
    """Every comparison, all that is not compiled yet at once; see `Inspection.compare`.

    What is finished is kept, however the rest ends. Ctrl-C ends one comparison early; of several it is raised.
    """
    pieces = [piece for job in jobs for piece in _missing(job.case.subject, job.case.variants, job.target, hlo=True)]
    compiling = _Compiling(pieces, hlo=True)
    try:
        compiling.run(progress, cancel)
    except KeyboardInterrupt:
        if len(jobs) > 1:
            raise
    return [_answer(job, compiling) for job in jobs]


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
    """Compile these donations of one program, as many at once as there are cores and memory for.

    What is finished is kept on the subject, `known` finds it; the rest is not there after `timeout` seconds for all
    together, or once `cancel` is set. On Ctrl-C it is raised when all have ended. With `hlo` a comparison can use it;
    else what the user's compilation cache has is enough.
    """
    _Compiling(_missing(subject, donations, target, hlo=hlo), hlo=hlo, timeout=timeout).run(progress, cancel)


def compile_programs(
    programs: Sequence[tuple[str, Subject, Mapping[str, Donation]]],
    target: Target,
    *,
    progress: Progress,
    cancel: threading.Event | None = None,
) -> list[dict[str, Compiled]]:
    """Compile the donations of several programs for their totals, as many at once as there are cores and memory for.

    The progress is told under the name that comes with each.
    What is finished is kept on its subject, as by `compile_donations`; what was cancelled says so.
    """
    compiling = _Compiling(
        [
            dataclasses.replace(piece, label=f"{name}: {piece.label}")
            for name, subject, wanted in programs
            for piece in _missing(subject, wanted, target, hlo=False)
        ],
        hlo=False,
    )
    compiling.run(progress, cancel)
    return [
        {name: compiling.answer(subject, _asked(target, donation)) for name, donation in wanted.items()}
        for _, subject, wanted in programs
    ]


def compile_to_run(
    subject: Subject,
    donations: Mapping[str, Donation],
    target: Target,
    *,
    each: float,
    progress: Progress,
    cancel: threading.Event | None = None,
) -> dict[str, Compiled]:
    """Compile donations whose executables are to be run, `each` in so many seconds. Ctrl-C as `compile_donations`."""
    compiling = _Compiling(_missing(subject, donations, target, hlo=False), hlo=False, each=each)
    compiling.run(progress, cancel)
    return {label: compiling.answer(subject, _asked(target, wanted)) for label, wanted in donations.items()}


def compile_handed_over(
    subject: Subject,
    given: HandedOver,
    target: Target,
    *,
    progress: Progress,
    cancel: threading.Event | None = None,
) -> Compiled | None:
    """Compile the program as a line of code gives it to JAX, with JAX's own pairing of it, for its total.

    In another order of its results XLA schedules the same program anew, and takes another total.
    None where JAX's pairing is not known, and where it was cancelled before it was compiled.
    """
    there = known_handed_over(subject, given, target)
    with subject.lock:
        donation, order = jax_makes(subject, given), arrangement(subject, given)
    if there is not None or donation is None:
        return there
    if order.changes_nothing:
        compile_donations(subject, {"as handed over": donation}, target, progress=progress, cancel=cancel)
        return known(subject, donation, target)
    question = CompiledAsGenerated(_plain(target), donation_key(donation), order)
    with subject.lock:
        program = arranged(subject.origin.program(module_of(subject, order, donation), target), order)
    compiling = _Compiling(_not_kept([_Piece("as handed over", subject, question, program)], hlo=False), hlo=False)
    compiling.run(progress, cancel)
    result = compiling.answer(subject, question)
    return None if result.status == "cancelled" else result


def known_handed_over(subject: Subject, given: HandedOver, target: Target) -> Compiled | None:
    """What XLA made of that program, None where it was not asked yet, or JAX's pairing is not known."""
    with subject.lock:
        donation, order = jax_makes(subject, given), arrangement(subject, given)
    if donation is None:
        return None
    if order.changes_nothing:
        return known(subject, donation, target)
    return subject.answers.get(CompiledAsGenerated(_plain(target), donation_key(donation), order))


def known(subject: Subject, donation: Donation, target: Target, *, hlo: bool = False) -> Compiled | None:
    """What XLA made of a donation, None where it was not asked yet; with `hlo` only as a comparison can use it."""
    found = subject.answers.get(_asked(target, donation))
    return None if found is None or (hlo and found.cached) else found


def kept_comparison(case: Case, target: Target) -> Comparison | None:
    """The comparison of this donation as far as it is compiled; None where it never was."""
    found = case.subject.answers.get(ComparisonOf(target, *case.key))
    compiled = (known(case.subject, wanted, target, hlo=True) for wanted in case.variants.values())
    if found is None and all(one is not None for one in compiled):
        return _answer(Job(case, target), _Compiling([], hlo=True))
    return found


# ---- what is compiled


@dataclass(frozen=True)
class _Piece:
    """One program to compile, and the question that it answers about a subject."""

    label: str
    subject: Subject
    question: Question[Compiled]
    program: Program

    @property
    def content(self) -> str:
        return fingerprint(self.program)


def _missing(subject: Subject, donations: Mapping[str, Donation], target: Target, *, hlo: bool) -> list[_Piece]:
    """What is not compiled yet, each program once, under the names of all the variants that it is."""
    unknown = {
        label: wanted
        for label, wanted in distinct(donations).items()
        if known(subject, wanted, target, hlo=hlo) is None
    }
    made = programs(subject, unknown, target)
    pieces = [_Piece(label, subject, _asked(target, unknown[label]), program) for label, program in made.items()]
    return _not_kept(pieces, hlo=hlo)


def _not_kept(pieces: Sequence[_Piece], *, hlo: bool) -> list[_Piece]:
    """Those whose content is compiled for nobody yet; the others are answered."""
    left: list[_Piece] = []
    for piece in pieces:
        found = COMPILED.get(CompiledContent(piece.content))
        if found is None or (hlo and found.cached):
            left.append(piece)
        else:
            piece.subject.answers.put(piece.question, found, found.hlo or b"")
    return left


_FINAL = ("ok", "refused", "does not fit")


class _Compiling:
    """Pieces compiled in as many children as there are cores and memory for; a crash loses one of them.

    With `hlo` every piece is compiled here, and not read from the user's compilation cache. `timeout` is in seconds for
    all together, `each` for each piece.
    """

    def __init__(
        self, pieces: Sequence[_Piece], *, hlo: bool, timeout: float | None = None, each: float | None = None
    ) -> None:
        # a target may be asked for twice
        self._pieces = list({(id(piece.subject), piece.question): piece for piece in pieces}.values())
        self._hlo, self._timeout, self._each = hlo, timeout, each
        self._made: dict[tuple[int, Question[Compiled]], Compiled] = {}
        self.children, self.why_not_more = compile_memory.at_once([piece.program for piece in self._pieces])

    def run(self, progress: Progress, cancel: threading.Event | None) -> None:
        """Compile them. On Ctrl-C it is raised when all have ended; what was finished is kept."""
        if not self._pieces:
            return
        if self.why_not_more is not None:
            progress(0, len(self._pieces), self.why_not_more)
        try:
            self._run(self._parts(), progress, cancel)
        except KeyboardInterrupt:
            for key, result in self._made.items():
                if result.status == "cancelled":
                    self._made[key] = dataclasses.replace(result, error="Interrupted.")
            raise
        lost = [piece for piece in self._pieces if self._status(piece) == "out of memory"]
        if lost and self.children > 1 and not (cancel is not None and cancel.is_set()):
            # They were two at a time, or more; each has the memory to itself now.
            self.children, self.why_not_more = 1, "one after the other: memory ran out"
            progress(len(self._pieces) - len(lost), len(self._pieces), self.why_not_more)
            self._run([lost], progress, cancel)

    def how(self, subject: Subject) -> str:
        """How it was compiled, for one subject."""
        if not any(piece.subject is subject for piece in self._pieces):
            return "kept: compiled before"
        if self.children > 1:
            return f"compiled in {self.children} processes at once"
        return "compiled in one process, " + (self.why_not_more or "one after the other")

    def answer(self, subject: Subject, question: Question[Compiled]) -> Compiled:
        """What came of it, now or before."""
        made = self._made.get((id(subject), question)) or subject.answers.get(question)
        return made or Compiled("cancelled", error="Interrupted.")

    def _status(self, piece: _Piece) -> str:
        return self.answer(piece.subject, piece.question).status

    def _parts(self) -> list[list[_Piece]]:
        """What one child after the other compiles: for one target the first ones first, else few targets each."""
        pieces, children = self._pieces, self.children
        if len({piece.program.target for piece in pieces}) == 1:
            return [pieces[part::children] for part in range(children)]
        ends = [len(pieces) * part // children for part in range(children + 1)]
        return [pieces[start:end] for start, end in itertools.pairwise(ends)]

    def _run(self, parts: Sequence[Sequence[_Piece]], progress: Progress, cancel: threading.Event | None) -> None:
        def job(part: Sequence[_Piece]) -> Callable[[Progress, threading.Event], None]:
            return lambda told, stop: self._compile(part, told, stop)

        run_together([job(part) for part in parts], sum(map(len, parts)), progress, cancel)

    def _compile(self, part: Sequence[_Piece], progress: Progress, cancel: threading.Event) -> None:
        names = {piece.label: piece for piece in part}
        if len(names) < len(part):
            names = {f"{piece.label} for {piece.program.target.name}": piece for piece in part}
        rooms = {name: room for name, piece in names.items() if (room := _room(piece.program)) is not None}
        wanted = {name: piece.program for name, piece in names.items()}
        with compile_memory.taken(list(wanted.values())):
            compiled = compile_variants(
                wanted,
                progress=progress,
                cancel=cancel,
                timeout=self._timeout if self._each is None else self._each * len(part),
                hlo=True,
                executables=rooms,
                read=not self._hlo,
            )
        for name, piece in names.items():
            self._keep(piece, compiled[name], rooms.get(name))

    def _keep(self, piece: _Piece, result: Compiled, room: KeptExecutable | None) -> None:
        self._made[id(piece.subject), piece.question] = result
        if result.status not in _FINAL:
            # What ended for another reason than the program may go better the next time.
            return
        hlo, content = result.hlo or b"", piece.content
        piece.subject.answers.put(piece.question, result, hlo)
        COMPILED.put(CompiledContent(content), result, hlo)
        if room:
            EXECUTABLES.put(ExecutableOf(content), room, room)


def _room(program: Program) -> KeptExecutable | None:
    """A place for its executable, where one can be run here."""
    if not program.target.here or program.callbacks:
        return None
    try:
        return KeptExecutable()
    except MachineError:
        return None


def _asked(target: Target, donation: Donation) -> CompiledFor:
    return CompiledFor(_plain(target), donation_key(donation))


def _plain(target: Target) -> Target:
    return dataclasses.replace(target, capacity=None)


def distinct(variants: Mapping[str, Donation]) -> dict[str, Donation]:
    """Each program once, under the names of all the variants that it is."""
    names: dict[DonationKey, list[str]] = {}
    for name, donation in variants.items():
        names.setdefault(donation_key(donation), []).append(name)
    return {" = ".join(group): variants[group[0]] for group in names.values()}


def programs(subject: Subject, donations: Mapping[str, Donation], target: Target | None) -> dict[str, Program]:
    """The module with each donation, as a child takes it."""
    with subject.lock:
        return {
            label: subject.origin.program(with_donation(subject.origin.module, wanted), target)
            for label, wanted in donations.items()
        }


# ---- the answer


def _answer(job: Job, compiling: _Compiling) -> Comparison:
    case, subject = job.case, job.case.subject
    compiled = {name: compiling.answer(subject, _asked(job.target, wanted)) for name, wanted in case.variants.items()}
    answer = dataclasses.replace(_comparison(case, compiled, job.target), how=compiling.how(subject))
    hlos = [result.hlo for result in compiled.values() if result.hlo is not None]
    subject.answers.put(ComparisonOf(job.target, *case.key), answer, *hlos)
    return answer


def _module(subject: Subject, result: Compiled) -> CompiledModule | None:
    """The module of one answer, the same object for all who ask."""
    if result.hlo is None:
        return None
    found = COMPILED.get(_ModuleOf(id(result.hlo)))
    if found is None or found.hlo is not result.hlo or found.signature != subject.signature:
        found = CompiledModule(result.hlo, subject.signature, result.memory)
        COMPILED.put(_ModuleOf(id(result.hlo)), found, result.hlo)
    return found


def _comparison(case: Case, compiled: Mapping[str, Compiled], target: Target) -> Comparison:
    subject, applied = case.subject, case.applied
    rows: dict[str, Variant] = {}
    for name in VARIANTS:
        if name not in compiled:
            rows[name] = Variant(name, None, {}, None, "refused", applied.why_not)
            continue
        result, wanted = compiled[name], case.variants[name]
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
            _module(subject, result),
        )
    return Comparison(target.name, applied.pipeline, rows, target.here, (case.arguments, case.results))
