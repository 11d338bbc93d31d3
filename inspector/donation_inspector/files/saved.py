"""An Inspection in one file: written here; read on, compiled and measured in another process.

A zip of JSON and MLIR bytecode, never a pickle. It holds the program, what JAX decided, and what was compiled and
measured; it holds no arrays. A file from somebody else is data: whatever it says is checked once, when it is read, and
nothing that it names is run. How its program is compiled and run is read off the module, or is this process's own.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from donation_inspector.analysis.fifo import pair_in_order
from donation_inspector.common.signature import Arrangement, Donation, Implicit, Leaf, Signature
from donation_inspector.common.visible import one_line
from donation_inspector.errors import CompileError, IRError
from donation_inspector.files import archive, consistent, saved_format
from donation_inspector.files.saved_format import FORMAT, FORMATS, Pairs, SavedCompiled, SavedDecision, State
from donation_inspector.frameworks.resizing import FIXED
from donation_inspector.frameworks.ways import Way
from donation_inspector.ir import foreign, source
from donation_inspector.passes.harmless import is_harmless
from donation_inspector.passes.hazards import UPSTREAM
from donation_inspector.program.subject import DonationKey, Subject, donation_key
from donation_inspector.questions.compare.ask import CompiledFor
from donation_inspector.questions.measure.answer import MeasuredVariant, Measurement
from donation_inspector.questions.verify.answer import DonatedArgument
from donation_inspector.xla import modules
from donation_inspector.xla.results import Compiled, Memory
from donation_inspector.xla.targets import Target

if TYPE_CHECKING:
    from donation_inspector.program.subject import Origin
    from donation_inspector.xla.program import Program

_MODULE, _STATE = "module.mlirbc", "inspection.json"
_WANTED = "Give a file that Inspection.save wrote."
Json = dict[str, Any]
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Decision:
    """What JAX answered about one donated set."""

    donation: Donation
    warned: frozenset[int]
    notes: tuple[str, ...]


class FromSaved:
    """A program that `Inspection.save` wrote down."""

    from_file = True

    def __init__(self, state: State, module: Any, told: tuple[str, ...]) -> None:
        """`told` are the notes on what the file asks for and does not get."""
        self.name = one_line(state.name)
        self.module = module
        self.signature = Signature(
            tuple(_made(Leaf, leaf) for leaf in state.signature.arguments),
            tuple(_made(Leaf, leaf) for leaf in state.signature.results),
            tuple(_made(Implicit, one) for one in state.signature.implicit_arguments),
            tuple(_made(Implicit, one) for one in state.signature.implicit_results),
            state.signature.devices,
            state.signature.returned,
        )
        self.platform = state.platform
        self.way = None if state.way is None else _made(Way, state.way)
        self.compiler_options: Mapping[str, str] = state.program.compiler_options
        self._jaxpr = state.jaxpr
        self._told = told
        self._decisions = {frozenset(one.leaves): _decision(one) for one in state.decisions}

    def decide(self, leaves: frozenset[int]) -> Donation:
        """What JAX decided when it was saved; for a set that it was not asked about, first in, first out."""
        known = self._decisions.get(leaves)
        return pair_in_order(self.signature, Donation(), leaves) if known is None else known.donation

    def decide_arranged(self, leaves: frozenset[int], arrangement: Arrangement) -> Donation | None:
        """First in, first out, in that order."""
        return pair_in_order(arrangement.signature(self.signature), Donation(), leaves)

    def warned(self, leaves: frozenset[int], donation: Donation) -> frozenset[int]:  # noqa: ARG002
        """The leaves in JAX's warning."""
        known = self._decisions.get(leaves)
        return frozenset() if known is None else known.warned

    def notes(self, leaves: frozenset[int], donation: Donation) -> tuple[str, ...]:  # noqa: ARG002
        """What was to be told when it was saved, and what the file asks for in vain."""
        known = self._decisions.get(leaves)
        if known is None:
            return (*self._told, _NOT_ASKED)
        return (*self._told, *known.notes)

    def jaxpr(self) -> str | None:
        """The jaxpr's text."""
        return self._jaxpr

    def on(self, platform: str) -> FromSaved:  # noqa: ARG002
        """It is what it was lowered to: XLA takes it for another platform, or refuses it."""
        return self

    def resized(self, shapes: Mapping[int, tuple[int, ...]]) -> FromSaved:  # noqa: ARG002
        """Raises IRError: the shapes are in the file."""
        raise IRError(FIXED)

    def program(self, module: Any, target: Target | None) -> Program:
        """As any module is packed: options, flags and devices are this process's, the rest is read off the module.

        Raises CompileError where it was saved for a platform that JAX has no name for here.
        """
        if target is None:
            target = Target(self.platform, self.platform)
        if target.here and target.platform not in modules.PLATFORMS:
            raise CompileError(
                f"{self.name} was saved for {self.platform!r}, which is no platform of JAX's. Compare it "
                "for one that is: donation_inspector.targets() lists them."
            )
        return modules.pack_module(module, self.name, self.signature.arguments, target)

    def values(self) -> tuple[Any, ...]:
        """Arrays are not saved."""
        return (None,) * modules.argument_count(self.module)

    def inputs(self) -> tuple[Any, ...]:
        """None of them by leaf either."""
        return (None,) * len(self.signature.arguments)

    def gone(self) -> int:
        """It holds none that could go."""
        return 0


_NOT_ASKED = "JAX was not asked about this donated set before it was saved: pairs are first in, first out."


# ---- written


def write(path: str | pathlib.Path, subject: Subject, donated: Sequence[frozenset[int]], pipeline: str) -> None:
    """Write a subject down; `donated` are the sets whose decision is kept, the present one first.

    Raises IRError where the file cannot be written.
    """
    origin = subject.origin
    compiled = list(subject.answers.of_kind(CompiledFor))
    # a module that cannot be read back would make the whole file one that cannot
    hlos = [one.hlo for _, one in compiled if one.hlo is not None and _why_unreadable(one.hlo) is None]
    state: Json = {
        "format": FORMAT,
        "versions": {name: version(name) for name in ("jax", "donation-inspector")},
        "name": origin.name,
        "platform": origin.platform,
        "way": _way_of(origin),
        "signature": dataclasses.asdict(origin.signature),
        "jaxpr": subject.jaxpr,
        "program": _program_of(origin),
        "donated": sorted(donated[0]),
        "pipeline": pipeline,
        "decisions": [_decision_of(origin, leaves) for leaves in dict.fromkeys(donated)],
        "asked": [dataclasses.asdict(target) for target in subject.asked.values()],
        "compiled": [_compiled_of(question, result, hlos) for question, result in compiled],
        "measurements": [_measurement_of(key, answer) for key, answer in subject.measurements.items()],
        "verified": [
            {"donated": sorted(leaves), "arguments": [dataclasses.asdict(row) for row in rows]}
            for leaves, rows in subject.verified.items()
        ],
    }
    try:
        parts = {_STATE: saved_format.encode(state), _MODULE: source.bytecode(origin.module)}
        archive.write(path, {**parts, **{_hlo_name(number): hlo for number, hlo in enumerate(hlos)}})
    except msgspec.ValidationError as error:
        raise IRError(f"{origin.name} cannot be written to {path}: {error}.") from None
    except OSError as error:
        raise IRError(f"{path} cannot be written: {error.strerror or error}.") from None


def _program_of(origin: Origin) -> Json:
    """The program as it would be compiled here, for whoever reads the JSON; nothing where XLA would not take it."""
    try:
        packed = origin.program(origin.module, None)
    except CompileError:
        return {}
    return {
        "device_ids": list(packed.device_ids),
        "xla_flags": packed.xla_flags,
        "compiler_options": {name: str(value) for name, value in origin.compiler_options.items()},
        "inputs": [dataclasses.asdict(dataclasses.replace(one, shards=None)) for one in packed.inputs],
        "custom_calls": list(packed.custom_calls),
        "callbacks": list(packed.callbacks),
    }


def _way_of(origin: Origin) -> Json | None:
    """How the function is jitted; nothing where one of its names could be no part of a line of code."""
    if origin.way is None:
        return None
    way = dataclasses.asdict(origin.way)
    try:
        msgspec.convert(way, saved_format.SavedWay)
    except msgspec.ValidationError:
        return None
    return way


def _decision_of(origin: Origin, leaves: frozenset[int]) -> Json:
    donation = origin.decide(leaves)
    return {
        "leaves": sorted(leaves),
        "donation": _pairs_of(donation_key(donation)),
        "warned": sorted(origin.warned(leaves, donation)),
        "notes": list(origin.notes(leaves, donation)),
    }


def _pairs_of(key: DonationKey) -> list[Any]:
    return [sorted(key[0]), sorted(key[1])]


def _compiled_of(question: CompiledFor, result: Compiled, hlos: Sequence[bytes]) -> Json:
    fields = dataclasses.asdict(dataclasses.replace(result, hlo=None))
    return {
        "target": dataclasses.asdict(question.target),
        "donation": _pairs_of(question.donation),
        "fields": {**fields, "input_output_alias": sorted(result.input_output_alias.items())},
        "hlo": next((number for number, hlo in enumerate(hlos) if hlo is result.hlo), None),
    }


def _measurement_of(key: tuple[DonationKey, DonationKey | None], answer: Measurement) -> Json:
    donation, made = key
    return {
        "donation": _pairs_of(donation),
        "pass": None if made is None else _pairs_of(made),
        "answer": dataclasses.asdict(answer),
    }


# ---- read


def read(path: str | pathlib.Path) -> tuple[Subject, frozenset[int], str]:
    """The subject in a file that `write` wrote, what is donated, and the pipeline that may be run.

    Raises IRError: no such file, another kind of file, one of another format, or a damaged one.
    """
    parts = archive.read(path, _WANTED)
    state = _state(path, parts)
    module, hlos = _held(path, parts)
    problem = next(consistent.problems(state, module, len(hlos)), None)
    if problem is not None:
        raise _damaged(path, problem)
    pipeline = state.pipeline if is_harmless(state.pipeline) else UPSTREAM
    subject = Subject(FromSaved(state, module, tuple(_in_vain(state, pipeline))))
    for one in state.compiled:
        result = _compiled(one, None if one.hlo is None else hlos[one.hlo])
        subject.answers.put(CompiledFor(_made(Target, one.target), _key(one.donation)), result, result.hlo or b"")
    for one in state.measurements:
        made = None if one.made is None else _key(one.made)
        subject.measurements[_key(one.donation), made] = _measurement(one.answer)
    for one in state.verified:
        rows = tuple(_made(DonatedArgument, row) for row in one.arguments)
        subject.verified[frozenset(one.donated)] = rows
    for one in state.asked:
        subject.asked[one.name] = _made(Target, one)
    return subject, frozenset(state.donated), pipeline


def _state(path: str | pathlib.Path, parts: Mapping[str, bytes]) -> State:
    try:
        data = parts[_STATE]
        number, versions = saved_format.format_of(data)
        if number not in FORMATS:
            raise IRError(
                f"{path} has format {number} of donation_inspector {versions}; this one reads formats up to {FORMAT}. "
                "Save it again with this version, or open it with that one."
            )
        return saved_format.decode(data)
    except KeyError:
        raise IRError(f"{path} is no saved Inspection: it has no {_STATE}. {_WANTED}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(path, f"{_STATE}: {error}") from None


def _why_unreadable(hlo: bytes) -> str | None:
    # reads it with protobuf, which what has no module of XLA's does without
    from donation_inspector.xla.hlo.readable import why_unreadable

    return why_unreadable(hlo)


def _held(path: str | pathlib.Path, parts: Mapping[str, bytes]) -> tuple[Any, list[bytes]]:
    """The module, and XLA's modules by their numbers."""
    if _MODULE not in parts:
        raise _damaged(path, f"it has no {_MODULE}")
    hlos: list[bytes] = []
    while (name := _hlo_name(len(hlos))) in parts:
        why = _why_unreadable(parts[name])
        if why is not None:
            raise _damaged(path, f"{name}: {why}")
        hlos.append(parts[name])
    try:
        return foreign.parse(parts[_MODULE]), hlos
    except IRError as error:
        raise _damaged(path, f"{_MODULE}: {error}") from None


def _damaged(path: str | pathlib.Path, why: str) -> IRError:
    return IRError(f"{path} is a damaged saved Inspection: {why}. {_WANTED}")


def _in_vain(state: State, pipeline: str) -> list[str]:
    """What the file asks for and does not get."""
    told: list[str] = []
    if pipeline != state.pipeline:
        told.append(
            f"The file names the pipeline {state.pipeline!r}. It was not run, because it is not made of passes that "
            f"only rewrite the program: {pipeline} stands in its place. with_pipeline(…) runs what you give it."
        )
    program = state.program
    if program.compiler_options:
        options = ", ".join(f"{name}={value}" for name, value in program.compiler_options.items())
        told.append(
            f"The function was jitted with compiler options ({options}). A file sets none: what is compiled now is "
            "compiled without them."
        )
    flags = os.environ.get("XLA_FLAGS", "")
    if state.compiled and set(program.xla_flags.split()) != set(flags.split()):
        told.append(
            f"What is compiled in the file had XLA_FLAGS={program.xla_flags!r}. A file sets none: what is "
            f"compiled now has this process's, {flags!r}."
        )
    return told


def _made(kind: type[_T], part: Any) -> _T:
    """A plain value of ours from the part of the file that mirrors it."""
    return kind(**msgspec.structs.asdict(part))


def _decision(part: SavedDecision) -> Decision:
    aliases, donors = _key(part.donation)
    return Decision(Donation(MappingProxyType(dict(sorted(aliases))), donors), frozenset(part.warned), part.notes)


def _key(pairs: Pairs) -> DonationKey:
    return frozenset(pairs[0]), frozenset(pairs[1])


def _compiled(part: SavedCompiled, hlo: bytes | None) -> Compiled:
    fields = part.fields
    memory = None if fields.memory is None else _made(Memory, fields.memory)
    return Compiled(
        fields.status,
        memory,
        dict(fields.input_output_alias),
        fields.seconds,
        fields.error,
        hlo,
        fields.capacity,
        fields.cached,
    )


def _measurement(part: saved_format.SavedAnswer) -> Measurement:
    runs = {"none": part.variants.none, "jax": part.variants.jax, "pass": part.variants.made}
    fields: Json = {
        **msgspec.structs.asdict(part),
        "variants": {name: _made(MeasuredVariant, run) for name, run in runs.items()},
    }
    return Measurement(**fields)


def _hlo_name(number: int) -> str:
    return f"hlo/{number}.pb"
