"""From the step a user has to its lowering: the frameworks' own jit wrappers first, everything else as JAX takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from donation_inspector.donating.function import DonatingFunction
from donation_inspector.donating.staged import Staged
from donation_inspector.frameworks import equinox, exported, nnx, paired, plain
from donation_inspector.frameworks.iterators import refuse_iterators
from donation_inspector.xla.lowering import Lowered
from donation_inspector.xla.stage import bind, refuse_data, unwrap


def lower(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Lowered:
    """Trace and lower what `di.inspect` takes; nothing is executed, and the caller's objects stay as they were.

    Raises:
        TraceError: with what is wrong and what to do.
    """
    if unwrap(fn) is not None:
        return paired.of_stage(fn, args, kwargs) if isinstance(fn, Staged) else plain.lower(fn, args, kwargs)
    if not callable(fn) and exported.behind(fn) is None:
        refuse_data(fn)
    refuse_iterators(fn, args, kwargs)
    program = exported.behind(fn)
    if program is not None:
        return exported.lower(fn, program, args, kwargs)
    call = equinox.wrapped_call(fn, args, kwargs)
    if call is not None:
        return equinox.lower(*call)
    fn, args, kwargs = bind(fn, args, kwargs)
    with nnx.untouched(fn, args, kwargs):
        if nnx.is_wrapped(fn):
            return nnx.lower(fn, args, kwargs)
        if isinstance(fn, DonatingFunction):
            return paired.lower(fn, args, kwargs)
        return plain.lower(fn, args, kwargs)
