"""An Inspection as one JSON value: what other programs read, a later version too, and what `differences` compares.

Names are kept and meanings too; what is added is a new key. Bytes are numbers, one device's where a key says so or XLA
is asked, and what is unknown is null. Keys of `summary`:

    format              1
    program, platform, devices, pipeline, notes
    versions            of jax, jaxlib, xdsl and donation-inspector, which answered
    arguments           flat, in JAX's order: path, shape, dtype, nbytes, nbytes_per_device, sharding, added_by (which
                        part of a framework), donated, verdict, reason (what JAX decided), result (the path of the one
                        that takes over the buffer)
    results             flat: the same up to added_by, argument (likewise), updates (the path of the argument that it is
                        the new value of)
    program_memory      in program order, nothing compiled: peak, peak_at, operations, unknown (values of unknown size),
                        peak_with_nothing_donated
    applied             the pass: pairs (argument, result: paths), compilable, why_not, diagnostics (severity, code,
                        message)
    comparisons         one a target: target, here, pipeline, variants, and arguments (path, verdict, reason), those of
                        which XLA says more than JAX
      variants          none, jax, pass: status, error, memory (argument, output, alias, temp, total), saved, capacity,
                        fits, over, seconds, input_output_alias and missing_pairs (argument, result: paths), peak
        peak            what fills the device then, null with peak_error where XLA's buffers cannot be read: nbytes, at,
                        length, instruction, op_name, phase, source, classes (bytes by role), fragmentation, padding,
                        constants, contributors (role, nbytes, path, op_name, source), most bytes first
    measurement         target, inputs, runs, devices, outputs_equal, limits, variants (peak, spread: smallest and
                        largest, predicted, seconds, status, error, executable), all devices together; null where
                        nothing ran
    verified            the user's own call: path, nbytes, outcome, result, reason of each donated argument; null where
                        none was made
    recommendation      target, here, name, pairs, donated (paths), total, handed_over, baselines (none, jax),
                        capacity, fits, tried, exhaustive, searched, unsafe (path, reason, certain), more, code; null
                        where none was asked for
    bufferization       target, pipeline, inputs, variants (status, error, allocations, frees, copies, copied, peak,
                        total, seconds, max_error, outputs_close, conflict); null where MLIR was not asked
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from donation_inspector.attribution import describe
from donation_inspector.errors import CompileError

if TYPE_CHECKING:
    from donation_inspector.advice.recommendation import Recommendation
    from donation_inspector.attribution.peak import Peak
    from donation_inspector.bufferized.values import Bufferization
    from donation_inspector.inspection import Inspection
    from donation_inspector.questions.compare.answer import Comparison, Variant
    from donation_inspector.questions.measure.answer import Measurement
    from donation_inspector.questions.verify.answer import DonatedArgument

FORMAT = 1
VERSIONS = ("jax", "jaxlib", "xdsl", "donation-inspector")
Json = dict[str, Any]
_T = TypeVar("_T")


def summary(inspection: Inspection) -> Json:
    """Everything known about an Inspection, with nothing computed that has to be asked for; see the module's page."""
    paths = _Paths(inspection)
    memory = inspection.program_memory
    return {
        "format": FORMAT,
        "program": inspection.name,
        "versions": {name: version(name) for name in VERSIONS},
        "platform": inspection.platform,
        "devices": inspection.devices,
        "pipeline": inspection.pipeline,
        "arguments": [
            {
                **_array(one),
                "donated": one.donated,
                "verdict": str(one.verdict),
                "reason": one.reason,
                "result": paths.result(one.result),
            }
            for one in inspection.arguments
        ],
        "results": [
            {**_array(one), "argument": paths.argument(one.argument), "updates": one.updates}
            for one in inspection.results
        ],
        "program_memory": {
            "peak": memory.peak,
            "peak_at": memory.peak_at,
            "operations": len(memory.bytes),
            "unknown": memory.unknown,
            "peak_with_nothing_donated": inspection.baseline_memory.peak,
        },
        "notes": list(inspection.notes),
        "applied": _applied(inspection, paths),
        "comparisons": [_comparison(one, paths) for one in inspection.comparisons.values()],
        "measurement": _known(inspection.measurement, _measurement),
        "verified": _known(inspection.verified, _verified),
        "recommendation": _known(inspection.recommendation, lambda answer: _recommendation(answer, paths)),
        "bufferization": _known(inspection.bufferization, _bufferization),
    }


def _known(answer: _T | None, written: Callable[[_T], Any]) -> Any:
    return None if answer is None else written(answer)


class _Paths:
    """The user's paths of flat arguments and results."""

    def __init__(self, inspection: Inspection) -> None:
        self._arguments = [one.path for one in inspection.arguments]
        self._results = [one.path for one in inspection.results]

    def argument(self, index: int | None) -> str | None:
        return None if index is None else self._arguments[index]

    def result(self, index: int | None) -> str | None:
        return None if index is None else self._results[index]

    def pairs(self, pairs: Iterable[tuple[int, int]]) -> list[Json]:
        return [{"argument": self.argument(argument), "result": self.result(result)} for argument, result in pairs]


def _array(one: Any) -> Json:
    return {
        "path": one.path,
        "shape": list(one.shape),
        "dtype": one.dtype,
        "nbytes": one.nbytes,
        "nbytes_per_device": one.nbytes_per_device,
        "sharding": one.sharding,
        "added_by": one.added_by,
    }


def _applied(inspection: Inspection, paths: _Paths) -> Json:
    applied = inspection.apply()
    return {
        "pairs": paths.pairs(applied.pairs.items()),
        "compilable": applied.compilable,
        "why_not": applied.why_not,
        "diagnostics": [
            {"severity": one.severity, "code": one.code, "message": one.message} for one in applied.diagnostics
        ],
    }


def _comparison(answer: Comparison, paths: _Paths) -> Json:
    decided = zip(answer.decided[0], answer.arguments, strict=True)
    return {
        "target": answer.target,
        "here": answer.here,
        "pipeline": answer.pipeline,
        "arguments": [
            {"path": said.path, "verdict": str(said.verdict), "reason": said.reason}
            for before, said in decided
            if said != before
        ],
        "variants": {name: _variant(answer, variant, paths) for name, variant in answer.variants.items()},
    }


def _variant(answer: Comparison, variant: Variant, paths: _Paths) -> Json:
    memory = variant.memory
    try:
        peak, why_not = variant.peak, None
    except CompileError as error:
        peak, why_not = None, str(error)
    return {
        "status": variant.status,
        "error": variant.error,
        "memory": None if memory is None else {**dataclasses.asdict(memory), "total": memory.total},
        "saved": answer.saved(variant.name),
        "capacity": variant.capacity,
        "fits": variant.fits,
        "over": variant.over,
        "seconds": variant.seconds,
        "input_output_alias": paths.pairs(variant.input_output_alias.items()),
        "missing_pairs": paths.pairs(variant.missing_pairs),
        "peak": None if peak is None else _peak(peak),
        "peak_error": why_not,
    }


def _peak(peak: Peak) -> Json:
    return {
        "nbytes": peak.nbytes,
        "at": peak.at,
        "length": peak.length,
        "instruction": peak.instruction,
        "op_name": peak.op_name,
        "phase": str(peak.phase) or None,
        "source": describe.at(peak.source) or None,
        "classes": {str(role): nbytes for role, nbytes in peak.classes},
        "fragmentation": peak.fragmentation,
        "padding": peak.padding,
        "constants": peak.constants,
        "contributors": [
            {
                "role": str(one.role),
                "nbytes": one.nbytes,
                "path": one.path,
                "op_name": one.op_name or None,
                "source": describe.at(one.source) or None,
            }
            for one in peak.contributors
        ],
    }


def _measurement(answer: Measurement) -> Json:
    return {
        "target": answer.target,
        "inputs": answer.inputs,
        "runs": answer.runs,
        "devices": answer.devices,
        "outputs_equal": answer.outputs_equal,
        "limits": answer.limits,
        "variants": {
            name: {
                "peak": one.peak,
                "spread": None if one.spread is None else list(one.spread),
                "predicted": one.predicted,
                "seconds": one.seconds,
                "status": one.status,
                "error": one.error,
                "executable": one.executable,
            }
            for name, one in answer.variants.items()
        },
    }


def _verified(arguments: Sequence[DonatedArgument]) -> list[Json]:
    return [
        {
            "path": one.path,
            "nbytes": one.nbytes,
            "outcome": one.outcome,
            "result": one.result,
            "reason": one.reason or None,
        }
        for one in arguments
    ]


def _recommendation(answer: Recommendation, paths: _Paths) -> Json:
    return {
        "target": answer.target,
        "here": answer.here,
        "name": answer.name,
        "pairs": paths.pairs(answer.pairs.items()),
        "donated": [paths.argument(index) for index in sorted(answer.donated)],
        "total": answer.total,
        "handed_over": answer.total,
        "baselines": dict(answer.baselines),
        "capacity": answer.capacity,
        "fits": answer.fits,
        "tried": answer.tried,
        "exhaustive": answer.exhaustive,
        "searched": answer.searched,
        "unsafe": [{"path": one.path, "reason": one.reason, "certain": one.certain} for one in answer.unsafe],
        "more": answer.more,
        "code": answer.code,
    }


def _bufferization(answer: Bufferization) -> Json:
    left_out = {"name", "ir", "reused"}
    return {
        "target": answer.target,
        "pipeline": answer.pipeline,
        "inputs": answer.inputs,
        "variants": {
            name: {
                field.name: getattr(one, field.name) for field in dataclasses.fields(one) if field.name not in left_out
            }
            for name, one in answer.variants.items()
        },
    }
