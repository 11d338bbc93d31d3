"""`verify`: the user's own call, run once as it stands, and what really became of each donated buffer."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from donation_inspector.advice.safety import audit_shared
from donation_inspector.analysis.donation import Argument, Verdict
from donation_inspector.common.signature import Ignored, updated
from donation_inspector.errors import TraceError
from donation_inspector.frameworks import call_site, equinox, naming, nnx_names
from donation_inspector.inspection import Inspection
from donation_inspector.program.origins import FromFunction
from donation_inspector.program.subject import Subject
from donation_inspector.questions.outside.variables import Walk
from donation_inspector.questions.verify.answer import DonatedArgument, Outcome, Verification
from donation_inspector.questions.verify.host_memory import HostMemory
from donation_inspector.xla import internals
from donation_inspector.xla.leaves import key_path, leaves_with_path
from donation_inspector.xla.pointers import Buffer, buffers, is_deleted
from donation_inspector.xla.stage import bind, unwrap

_jax: Any = jax
"""Public, partly untyped, its options made at run time."""


def verify(step: Any, /, *args: Any, **kwargs: Any) -> Verification:
    """Inspect a step, then run the user's own call of it once, and say what became of each donated buffer.

    `step` is what `inspect` takes, and is called as it stands: `step(*args, **kwargs)`, until its results are there.
    This is a real call: the donated arrays are gone after it, NNX objects are updated in place, and training is one
    step further, as after any other. Go on with `Verification.result`, which is what it returned.

    Whether a buffer was reused is told by addresses: a result of the call, or an object that the call changed, lies
    where the argument lay, on every device. The outcomes stay with the Inspection, the arrays do not.

    What the call raises passes through as it is. It gets what was noticed before it as notes (PEP 678), and the
    Inspection as an attribute, `error.inspection`. Where the call had returned, as on Ctrl-C while its results are
    looked at, `error.result` is what it returned: the donated arrays would be lost without it.

    Raises:
      TraceError: as `inspect`; inside of a transformation; or there is nothing to call: a `jax.stages` object, a
        `jax.ShapeDtypeStruct` among the arguments; or the call would end this process: on several devices, a donated
        array that is given twice.
    """
    if any(isinstance(leaf, internals.Tracer) for leaf in _jax.tree.leaves((args, kwargs))):
        raise TraceError(
            "verify() makes a real call and looks at its buffers; inside of a transformation there "
            "are none. Call it outside, or use inspect()."
        )
    origin = FromFunction(step, args, kwargs, call_site.of_caller())
    subject = Subject(origin)
    inspection = Inspection(subject)
    inputs = _inputs(inspection, origin, args, kwargs)
    _refuse_what_cannot_run(step, inspection, inputs, args, kwargs)
    _refuse_what_ends_the_process(inspection, subject)
    asked = [
        _Asked(argument, leaf.ignored, value, buffers(value), origin.moved(argument.index, value))
        for argument, leaf, value in zip(inspection.arguments, subject.signature.arguments, inputs, strict=True)
        if argument.donated or leaf.ignored is not None
    ]
    kept: dict[str, Any] = {"inspection": inspection}
    try:
        result = kept["result"] = step(*args, **kwargs)
        _jax.block_until_ready(result)
        landed = _landed(step, args, kwargs, result, {id(one.value) for one in asked})
        found = _Found(inspection, landed, HostMemory())
        rows = tuple(_row(one, found) for one in asked)
    except BaseException as error:
        _hand_over(error, kept)
        raise
    subject.verified[inspection.donated_by_function] = rows
    return Verification(inspection, result, rows)


def _inputs(
    inspection: Inspection, origin: FromFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """What is given for each flat argument; behind a wrapper that hides it, the call's leaves where they are alike."""
    inputs, leaves = origin.inputs(), jax.tree.leaves((args, kwargs))
    if any(value is not None for value in inputs) or len(leaves) != len(inputs):
        return inputs
    alike = all(
        (getattr(leaf, "shape", ()), str(getattr(leaf, "dtype", argument.dtype))) == (argument.shape, argument.dtype)
        for argument, leaf in zip(inspection.arguments, leaves, strict=True)
    )
    return tuple(None if isinstance(leaf, jax.ShapeDtypeStruct) else leaf for leaf in leaves) if alike else inputs


def _refuse_what_cannot_run(
    step: Any, inspection: Inspection, inputs: tuple[Any, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    if unwrap(step) is not None or not callable(step):
        raise TraceError(
            f"{type(step).__name__} holds a program and cannot be called: give verify the jitted function and its "
            "arguments, or look at the program with inspect."
        )
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
        shapes = [argument.path for argument, value in zip(inspection.arguments, inputs, strict=True) if value is None]
        more = f" and {len(shapes) - 4} more" if len(shapes) > 4 else ""
        raise TraceError(
            f"{inspection.name} cannot be called: {', '.join(shapes[:4])}{more}: jax.ShapeDtypeStruct, a shape without "
            "an array. verify makes the real call: pass arrays, or use inspect, which needs shapes alone."
        )


def _refuse_what_ends_the_process(inspection: Inspection, subject: Subject) -> None:
    """On one device JAX raises its own error for these; over several, jaxlib 0.10.2 dies on it where 0.9.0 raised."""
    if inspection.devices == 1:
        return
    shared = audit_shared(subject.signature, subject.origin.values(), inspection.donated_by_function)
    for first in shared[:1]:
        more = f" So it is with {len(shared) - 1} more." if len(shared) > 1 else ""
        raise TraceError(
            f"{inspection.name} is not called: {first.path} is donated over {inspection.devices} devices, and "
            f"{first.reason}. Some versions of jaxlib end the whole process on such a call.{more}"
        )


def _hand_over(error: BaseException, kept: Mapping[str, Any]) -> None:
    """Leave what there is with an error, which stays the user's own."""
    with contextlib.suppress(AttributeError):
        for name, value in kept.items():
            setattr(error, name, value)
    if "result" in kept:
        error.add_note("donation_inspector: the call had returned, and error.result is what it returned.")
    elif isinstance(error, Exception):
        for note in kept["inspection"].notes:
            error.add_note(f"donation_inspector, before the call: {note}")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A donated argument as it was before the call."""

    argument: Argument
    ignored: Ignored | None
    value: Any
    buffers: Mapping[Buffer, int] | None
    moved: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is after the call: the path of the result in each buffer, and numpy's arrays."""

    inspection: Inspection
    landed: Mapping[Buffer, str]
    numpy: HostMemory


def _landed(
    step: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any, donated: set[int]
) -> Mapping[Buffer, str]:
    """The buffers of what the call returned, then of what it left in its arguments, in its own object or closure."""
    found: dict[Buffer, str] = {}
    walk = Walk(lambda value: isinstance(value, jax.Array))

    def take(path: str, array: Any) -> None:
        for buffer in buffers(array) or ():
            found.setdefault(buffer, path)

    returned = [(key_path(keys) or "result", leaf) for keys, leaf in leaves_with_path(result)]
    for path, array in walk.through(returned):
        take(path, array)
    given = _given(step, args, kwargs)
    named = ((name.path, array) for array, name in nnx_names.arrays_of_all(given))
    for path, array in (*named, *walk.through([*given, (_name(step), step)])):
        if id(array) not in donated:
            take(updated(path), array)
    return found


def _given(step: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The arguments of the call by name, those that a method or a partial holds included."""
    step, args, kwargs = equinox.wrapped_call(step, args, kwargs) or bind(step, args, kwargs)
    held = [("self", step.__self__)] if inspect.ismethod(step) else []
    return [*held, *naming.bound_arguments(inspect.unwrap(step), args, kwargs)]


def _name(step: Any) -> str:
    return str(getattr(step, "__name__", type(step).__name__))


def _row(asked: _Asked, found: _Found) -> DonatedArgument:
    outcome, result, reason = _judge(asked, found)
    argument = asked.argument
    return DonatedArgument(argument.index, argument.path, argument.nbytes, outcome, result, reason)


def _judge(asked: _Asked, found: _Found) -> tuple[Outcome, str | None, str]:
    """(outcome, path of the result in its buffers, why not reused)."""
    if not isinstance(asked.value, jax.Array):
        return _not_an_array(asked.value)
    gone, held = is_deleted(asked.value), asked.buffers
    taken = [found.landed[buffer] for buffer in held or () if buffer in found.landed]
    if held is None:
        told = "the runtime does not tell where it lay"
        return ("unknown", None, told) if gone else ("alive", None, _alive(asked, found))
    if not held:
        return "freed" if gone else "alive", None, "it has no bytes"
    if gone and len(taken) == len(held):
        return "reused", taken[0], "" if asked.ignored is None else _CALLED_ALONE
    if gone:
        return "freed", None, _freed(asked, found, len(taken))
    if taken:
        return "alive", None, f"the call hands it back as it is: {taken[0]} is the same array"
    return "alive", None, _alive(asked, found)


_CALLED_ALONE = "nothing stands around the inner jit in this call, so that its donation counts"


def _not_an_array(value: Any) -> tuple[Outcome, str | None, str]:
    if isinstance(value, np.ndarray | np.generic):
        return "alive", None, "a numpy array was given: JAX donates a copy of its own, numpy's memory is never reused"
    if isinstance(value, bool | int | float | complex):
        return "alive", None, "a Python number was given: JAX donates an array of its own"
    return "unknown", None, f"which array was given is not known ({type(value).__name__})"


def _alive(asked: _Asked, found: _Found) -> str:
    argument = asked.argument
    if _jax.config.jax_disable_jit:
        return "jax.disable_jit is on: each operation runs by itself, and nothing is donated"
    if argument.verdict in (Verdict.UNUSED, Verdict.UNUSABLE, Verdict.NOT_DONATED):
        return argument.reason
    if asked.moved is not None:
        return f"{asked.moved}: JAX copies it first and donates the copy. jax.device_put it there once, before the loop"
    if argument.verdict is Verdict.DONOR:
        return argument.reason
    view = found.numpy.at(asked.buffers)
    if view is not None:
        return (
            f"a numpy array shares its memory, {view}: it is copied instead, because that one may still be read. "
            "Delete it, or make it with np.array(…), which copies"
        )
    return "it was copied instead, because something else holds its buffer: a numpy view, a DLPack capsule, a library"


def _freed(asked: _Asked, found: _Found, taken: int) -> str:
    argument, held = asked.argument, asked.buffers or {}
    if taken:
        return f"results lie in {taken} of its {len(held)} buffers"
    if argument.result is not None:
        result = found.inspection.results[argument.result]
        if {result.path, updated(result.path), result.title}.isdisjoint(found.landed.values()):
            return f"its buffer went to {result.path}, which the call does not hand on"
    if argument.verdict is Verdict.DONOR:
        return argument.reason
    owner = found.numpy.at(asked.buffers)
    if owner is not None:
        return f"its memory is that of a numpy array, {owner}, and not to be overwritten: make it with jnp.array(…)"
    return "it was copied: its memory may not be overwritten, as where jax.device_put shares that of a numpy array"
