"""An Inspection in one file: written here; read on, compiled and measured in another process.

A zip of JSON and MLIR bytecode, never a pickle: to open a file from somebody else runs nothing of it. It holds the
program, what JAX decided, and what was compiled and measured; it holds no arrays.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from donation_inspector.analysis.fifo import pair_in_order
from donation_inspector.common.signature import Donation, Implicit, Leaf, Signature
from donation_inspector.errors import IRError
from donation_inspector.frameworks.resizing import FIXED
from donation_inspector.frameworks.ways import Way
from donation_inspector.ir import source
from donation_inspector.program.subject import DonationKey, Subject, donation_key
from donation_inspector.questions.measure.answer import MeasuredVariant, Measurement
from donation_inspector.questions.verify.answer import DonatedArgument
from donation_inspector.xla import modules
from donation_inspector.xla.program import Input, Program
from donation_inspector.xla.results import Compiled, Memory
from donation_inspector.xla.targets import Target

if TYPE_CHECKING:
    from donation_inspector.program.subject import Origin

FORMAT = 1
_MODULE, _OPTIONS, _STATE = "module.mlirbc", "compile_options.pb", "inspection.json"
Json = dict[str, Any]
_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Decision:
    """What JAX answered about one donated set."""

    leaves: frozenset[int]
    donation: Donation
    warned: frozenset[int]
    notes: tuple[str, ...]


class FromSaved:
    """A program that `Inspection.save` wrote down."""

    def __init__(self, state: Json, module: Any, options: bytes) -> None:
        self.name: str = state["name"]
        self.module = module
        self.signature: Signature = _signature(state["signature"])
        self.platform: str = state["platform"]
        way: Json | None = state.get("way")
        self.way = (
            None if way is None else _rebuilt(Way, way, positional=tuple(way["positional"]), named=tuple(way["named"]))
        )
        self._jaxpr: str | None = state["jaxpr"]
        packed: Json = state["program"]
        self._program = _rebuilt(
            Program,
            packed,
            bytecode=b"",
            compile_options=options,
            device_ids=tuple(packed["device_ids"]),
            mesh_shape=tuple(packed["mesh_shape"]),
            target=Target(**packed["target"]),
            inputs=tuple(_input(one) for one in packed["inputs"]),
            custom_calls=tuple(packed["custom_calls"]),
            callbacks=tuple(packed["callbacks"]),
        )
        self._decisions = {decision.leaves: decision for decision in (_decision(one) for one in state["decisions"])}

    def decide(self, leaves: frozenset[int]) -> Donation:
        """What JAX decided when it was saved; for a set that it was not asked about, first in, first out."""
        known = self._decisions.get(leaves)
        return pair_in_order(self.signature, Donation(), leaves) if known is None else known.donation

    def warned(self, leaves: frozenset[int], donation: Donation) -> frozenset[int]:  # noqa: ARG002
        """The leaves in JAX's warning."""
        known = self._decisions.get(leaves)
        return frozenset() if known is None else known.warned

    def notes(self, leaves: frozenset[int], donation: Donation) -> tuple[str, ...]:  # noqa: ARG002
        """What was to be told when it was saved."""
        known = self._decisions.get(leaves)
        if known is None:
            return ("JAX was not asked about this donated set before it was saved: pairs are first in, first out.",)
        return known.notes

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
        """As it was packed when it was saved; for another target as a file."""
        if target is None or target == self._program.target:
            return dataclasses.replace(self._program, bytecode=source.bytecode(module))
        return modules.pack_module(module, self.name, self.signature.arguments, target)

    def values(self) -> tuple[Any, ...]:
        """Arrays are not saved."""
        return (None,) * len(self._program.inputs)

    def inputs(self) -> tuple[Any, ...]:
        """None of them by leaf either."""
        return (None,) * len(self.signature.arguments)

    def gone(self) -> int:
        """It holds none that could go."""
        return 0


def write(path: str | pathlib.Path, subject: Subject, donated: Sequence[frozenset[int]], pipeline: str) -> None:
    """Write a subject down; `donated` are the sets whose decision is kept, the present one first.

    Raises IRError where the file cannot be written.
    """
    origin = subject.origin
    packed = origin.program(origin.module, None)
    hlos = [result.hlo for result in subject.compiled.values() if result.hlo is not None]
    state: Json = {
        "format": FORMAT,
        "versions": {name: version(name) for name in ("jax", "donation-inspector")},
        "name": origin.name,
        "platform": origin.platform,
        "way": None if origin.way is None else dataclasses.asdict(origin.way),
        "signature": dataclasses.asdict(origin.signature),
        "jaxpr": subject.jaxpr,
        "program": {
            field.name: _plain(getattr(packed, field.name))
            for field in dataclasses.fields(packed)
            if field.name not in ("bytecode", "compile_options")
        },
        "donated": sorted(donated[0]),
        "pipeline": pipeline,
        "decisions": [_decision_of(origin, leaves) for leaves in dict.fromkeys(donated)],
        "asked": [dataclasses.asdict(target) for target in subject.asked.values()],
        "compiled": [_compiled_of(key, result, hlos) for key, result in subject.compiled.items()],
        "measurements": [_measurement_of(key, answer) for key, answer in subject.measurements.items()],
        "verified": [
            {"donated": sorted(leaves), "arguments": [dataclasses.asdict(row) for row in rows]}
            for leaves, rows in subject.verified.items()
        ],
    }
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_STATE, json.dumps(state))
            archive.writestr(_MODULE, source.bytecode(origin.module))
            archive.writestr(_OPTIONS, packed.compile_options)
            for number, hlo in enumerate(hlos):
                archive.writestr(_hlo_name(number), hlo)
    except OSError as error:
        raise IRError(f"{path} cannot be written: {error.strerror or error}.") from None


def read(path: str | pathlib.Path) -> tuple[Subject, frozenset[int], str]:
    """The subject in a file that `write` wrote, what is donated, and the pipeline.

    Raises IRError: no such file, another kind of file, or one of another format.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            state: Json = json.loads(archive.read(_STATE))
            if state["format"] != FORMAT:
                raise IRError(
                    f"{path} has format {state['format']} of donation_inspector {state['versions']}; this one reads "
                    f"format {FORMAT}. Save it again with this version."
                )
            origin = FromSaved(state, source.parse(archive.read(_MODULE)), archive.read(_OPTIONS))
            subject = Subject(origin)
            for one in state["compiled"]:
                hlo = None if one["hlo"] is None else archive.read(_hlo_name(one["hlo"]))
                subject.compiled[Target(**one["target"]), _key(one["donation"])] = _compiled(one, hlo)
            for one in state["measurements"]:
                made = None if one["pass"] is None else _key(one["pass"])
                subject.measurements[_key(one["donation"]), made] = _measurement(one["answer"])
            for one in state.get("verified", ()):
                rows = tuple(DonatedArgument(**row) for row in one["arguments"])
                subject.verified[frozenset(one["donated"])] = rows
            for one in state["asked"]:
                target = Target(**one)
                subject.asked[target.name] = target
            donated, pipeline = frozenset[int](state["donated"]), str(state["pipeline"])
    except OSError as error:
        raise IRError(f"{path} cannot be read: {error.strerror or error}. {_WANTED}") from None
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, AttributeError) as error:
        raise IRError(f"{path} is no saved Inspection ({type(error).__name__}: {error}). {_WANTED}") from None
    return subject, donated, pipeline


_WANTED = "Give a file that Inspection.save wrote."


# ---- to JSON and back


def _rebuilt(kind: type[_T], data: Json, **parts: Any) -> _T:
    """A dataclass from its JSON, the fields that JSON has no form for given apart."""
    fields: Json = {**data, **parts}
    return kind(**fields)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, tuple):
        return [_plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _hlo_name(number: int) -> str:
    return f"hlo/{number}.pb"


def _signature(data: Json) -> Signature:
    return Signature(
        tuple(_leaf(one) for one in data["arguments"]),
        tuple(_leaf(one) for one in data["results"]),
        tuple(Implicit(**one) for one in data["implicit_arguments"]),
        tuple(Implicit(**one) for one in data["implicit_results"]),
        data["devices"],
        data["returned"],
    )


def _leaf(data: Json) -> Leaf:
    return _rebuilt(Leaf, data, shape=tuple(data["shape"]), shard_shape=tuple(data["shard_shape"]))


def _input(data: Json) -> Input:
    shards = data["shards"]
    if shards is not None:
        shards = tuple(tuple(tuple(part) for part in device) for device in shards)
    return _rebuilt(Input, data, shape=tuple(data["shape"]), shards=shards)


def _decision_of(origin: Origin, leaves: frozenset[int]) -> Json:
    donation = origin.decide(leaves)
    return {
        "leaves": sorted(leaves),
        "donation": _pairs_of(donation_key(donation)),
        "warned": sorted(origin.warned(leaves, donation)),
        "notes": list(origin.notes(leaves, donation)),
    }


def _decision(data: Json) -> Decision:
    aliases, donors = _key(data["donation"])
    return Decision(
        frozenset(data["leaves"]),
        Donation(MappingProxyType(dict(sorted(aliases))), donors),
        frozenset(data["warned"]),
        tuple(data["notes"]),
    )


def _pairs_of(key: DonationKey) -> list[Any]:
    return [sorted(key[0]), sorted(key[1])]


def _key(data: Sequence[Iterable[Any]]) -> DonationKey:
    aliases, donors = data
    return frozenset((argument, result) for argument, result in aliases), frozenset(donors)


def _compiled_of(key: tuple[Target, DonationKey], result: Compiled, hlos: Sequence[bytes]) -> Json:
    target, donation = key
    fields = dataclasses.asdict(dataclasses.replace(result, hlo=None))
    return {
        "target": dataclasses.asdict(target),
        "donation": _pairs_of(donation),
        "fields": {**fields, "input_output_alias": sorted(result.input_output_alias.items())},
        "hlo": None if result.hlo is None else next(i for i, hlo in enumerate(hlos) if hlo is result.hlo),
    }


def _compiled(data: Json, hlo: bytes | None) -> Compiled:
    fields: Json = data["fields"]
    memory: Mapping[str, int] | None = fields["memory"]
    return _rebuilt(
        Compiled,
        fields,
        memory=None if memory is None else Memory(**memory),
        input_output_alias=dict(fields["input_output_alias"]),
        hlo=hlo,
    )


def _measurement_of(key: tuple[DonationKey, DonationKey | None], answer: Measurement) -> Json:
    donation, made = key
    return {
        "donation": _pairs_of(donation),
        "pass": None if made is None else _pairs_of(made),
        "answer": dataclasses.asdict(answer),
    }


def _measurement(data: Json) -> Measurement:
    rows = {
        name: _rebuilt(MeasuredVariant, row, spread=None if row["spread"] is None else tuple(row["spread"]))
        for name, row in data["variants"].items()
    }
    return _rebuilt(Measurement, data, variants=rows)
