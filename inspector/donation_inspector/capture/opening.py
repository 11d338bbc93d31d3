"""Where an Inspection comes from: a function and its arguments, StableHLO, a saved file. What it can be asked for."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

from donation_inspector.capture import earlier_calls
from donation_inspector.errors import DeletedError, IRError
from donation_inspector.files import saved
from donation_inspector.frameworks import call_site
from donation_inspector.frameworks.call_site import CallSite
from donation_inspector.inspection import Inspection
from donation_inspector.program import reading
from donation_inspector.program.origins import FromFile, FromFunction
from donation_inspector.program.subject import Subject
from donation_inspector.questions.bufferize.ask import mlir_target
from donation_inspector.xla import modules
from donation_inspector.xla.targets import Targets, listed


def inspect(fn: Any, /, *args: Any, **kwargs: Any) -> Inspection:
    """Trace and lower `fn` as it would be called with these arguments; nothing is executed and nothing changed.

    `fn` is a callable on array pytrees, a `jax.jit` function (its own donation, static arguments, shardings and
    compiler options are honoured), a wrapper around one such as `nnx.jit` or `eqx.filter_jit`, a `jax.export.Exported`
    with or without arguments, or a `jax.stages.Traced` or `Lowered` alone. Arguments may be arrays or
    `jax.ShapeDtypeStruct`.

    Raises:
      TraceError: JAX cannot trace or lower it, or tracing it would harm the caller's objects.
    """
    return inspect_at(call_site.of_caller(), fn, args, kwargs)


def inspect_at(site: CallSite, fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Inspection:
    """As `inspect`; `site` is where the person's code names the function, which a proposed line is assigned to."""
    try:
        return Inspection(Subject(FromFunction(fn, args, kwargs, site)))
    except DeletedError as error:
        told = earlier_calls.find(error.arrays, earlier_calls.notebook()).told
        raise DeletedError(error.paths, error.arrays, told) from None


def inspect_ir(source: str | bytes | pathlib.Path, entry: str | None = None) -> Inspection:
    """Inspect StableHLO: MLIR text, MLIR bytecode, a portable artifact, or a file with either.

    `entry` names the function to look at, public or not; None is @main, or else the only public one.

    Raises:
      IRError: no such file, no MLIR, or no function to look at; the message has the line, and the functions there are.
    """
    return Inspection(Subject(FromFile(source, entry)))


def load(path: str | pathlib.Path) -> Inspection:
    """The Inspection in a file that `Inspection.save` wrote, with what was compiled and measured for it.

    Donated sets that JAX was not asked about before it was saved are paired first in, first out, and a note says so.

    Raises:
      IRError: no such file, another kind of file, or one of another format.
    """
    return Inspection(*saved.read(path))


def open_file(path: pathlib.Path, entry: str | None = None) -> Inspection:
    """What is in a file: an Inspection that `Inspection.save` wrote, or MLIR, of which `entry` is a function. Raises
    IRError."""
    with reading.opened(path, "Give MLIR, or a file that Inspection.save wrote.") as file:
        packed = file.read(2) == b"PK"
    # a saved file whose first bytes are damaged is one all the same
    if not packed and path.suffix != ".di":
        return inspect_ir(path, entry)
    if entry is not None:
        raise IRError(f"{path} is a saved Inspection, which has its function already: leave out --entry.")
    return load(path)


def targets() -> Targets:
    """What `compare` can be asked for on this machine; what is missing says which extra to install."""
    return Targets((*listed(modules.default_platform()), mlir_target()))
