"""Flax NNX: names for what `nnx.jit` packs, and a guard that keeps the caller's live objects as they were.

NNX objects are mutable. Tracing a function that changes them from outside `nnx.jit`, or that calls a function jitted by
`nnx.jit`, raises half-way and leaves them broken: Modules without attributes, Variables that hold tracers. So the NNX
objects that the call reaches are remembered before tracing and put back where tracing changed them; others may be
another thread's. NNX is touched only where the user has imported it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from donation_inspector.errors import TraceError
from donation_inspector.frameworks import naming
from donation_inspector.frameworks.nnx_changes import refuse_lost_changes
from donation_inspector.frameworks.nnx_names import (
    arrays_of_all,
    loaded,
    results_in_graph_mode,
    results_in_tree_mode,
)
from donation_inspector.frameworks.versions import require
from donation_inspector.xla import lowering
from donation_inspector.xla.leaves import Name
from donation_inspector.xla.lowering import Lowered
from donation_inspector.xla.reach import attributes_of, reachable
from donation_inspector.xla.stage import flat_inputs, trace

OLDEST = "0.12"
"""The first flax whose `nnx.jit` is known here."""


def is_wrapped(fn: Any) -> bool:
    """Whether this is what `nnx.jit` or `nnx.jit_partial` makes."""
    return loaded() is not None and type(fn).__module__.startswith("flax.nnx") and hasattr(fn, "jitted_fn")


def lower(wrapper: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Lowered:
    """Trace and lower an `nnx.jit` function, with names as in the user's own call: `model.linear.kernel`.

    Raises:
        TraceError: as `lowering.lower`.
    """
    require("flax", OLDEST)
    inputs = _flat_inputs(wrapper, args, kwargs)
    name = str(getattr(wrapper, "__name__", type(wrapper).__name__))
    staged = trace(wrapper, args, kwargs, name=name, inputs=inputs)
    found = naming.by_identity(inputs, arrays_of_all(_given(wrapper, args, kwargs)))
    # what is kept for naming must not hold the inputs
    traced = staged.traced

    def rename(arguments: Sequence[Name], results: Sequence[Name]) -> lowering.Names:
        named = naming.rename(found, arguments)
        return named, _result_names(wrapper, traced, named, results)

    return lowering.from_stage(staged, rename)


def _result_names(wrapper: Any, traced: Any, arguments: Sequence[Name], results: Sequence[Name]) -> Sequence[Name]:
    """By the structure that `nnx.jit` returns, JAX's own names where this flax packs in another way."""
    in_graph_mode = hasattr(wrapper, "_get_pure_args_kwargs")
    try:
        named = results_in_graph_mode if in_graph_mode else results_in_tree_mode
        return named(traced, arguments, results)
    except Exception:
        return results


def _given(wrapper: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The arguments by name. `nnx.jit_partial` keeps no more of those it holds than a flat list."""
    held: Any = getattr(wrapper, "partial_args", ())
    if isinstance(held, list):
        return [("partial_args", held), *((f"args[{i}]", value) for i, value in enumerate(args)), *kwargs.items()]
    return naming.bound_arguments(inspect.unwrap(wrapper), (*held, *args), kwargs)


def _flat_inputs(wrapper: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The arrays that `nnx.jit` hands to `jax.jit`; None where this flax packs in another way.

    Only names and real inputs hang on it. NNX has no public way to the packed arguments.
    """
    try:
        if hasattr(wrapper, "_get_pure_args_kwargs"):
            graphlib: Any = sys.modules["flax.nnx.graphlib"]
            with graphlib.update_context(wrapper):
                args, kwargs = wrapper._get_pure_args_kwargs(args, kwargs)
        elif hasattr(wrapper, "_maybe_to_tree"):
            args, kwargs = wrapper._maybe_to_tree((*wrapper.partial_args, *args), kwargs)
        else:
            args = (wrapper.partial_args, *args)
        return flat_inputs(wrapper.jitted_fn, tuple(args), kwargs)
    except Exception:
        return None


@contextmanager
def untouched(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Generator[None]:
    """Trace inside; what that changes of the NNX objects that the call reaches is put back afterwards.

    Raises:
        TraceError: a function outside `nnx.jit` loses what it changes in its NNX objects, or changed others.
    """
    if loaded() is None:
        yield
        return
    outside = not is_wrapped(fn)
    before = _remember(fn, args, kwargs)
    try:
        if outside:
            refuse_lost_changes(fn, args, kwargs)
        yield
    except TraceError as error:
        if (_restore(before) or _refused_by_nnx(error)) and outside:
            raise TraceError(_advice(fn, str(error))) from error
        raise
    except BaseException:
        _restore(before)
        raise
    if _restore(before) and outside:
        raise TraceError(_advice(fn, "It reaches them from outside, as globals or attributes."))


def _refused_by_nnx(error: TraceError) -> bool:
    cause = error.__cause__
    return type(cause).__name__ == "TraceContextError" or "from different trace level" in str(cause)


def _name(fn: Any) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


def _is_cached_partial(fn: Any) -> bool:
    """Whether this is what `nnx.cached_partial` makes: a plain function of flax's that holds copies of what it got."""
    module = getattr(fn, "__globals__", {}).get("__name__", "")
    return module.startswith("flax.nnx") and "cached_args" in fn.__code__.co_freevars


def _advice(fn: Any, problem: str) -> str:
    if _is_cached_partial(fn):
        name = _name(fn)
        return (
            f"{name} with some of its arguments held by nnx.cached_partial is not looked into. {problem}\n"
            f"Your objects are as they were before. Inspect {name} itself, with all its arguments: "
            f"inspect({name}, model, optimizer, batch)."
        )
    inner = sorted(_reachable_steps(fn))
    step = inner[0] if inner else "the step"
    return (
        f"{_name(fn)} changes NNX objects, but is not jitted by nnx.jit. {problem}\n"
        f"Your objects are as they were before. Inspect {step} itself, jitted by nnx.jit, with the model and optimizer "
        f"as arguments: inspect({step}, model, optimizer, batch)."
    )


def _reachable_steps(fn: Any) -> Iterator[str]:
    """Names of functions jitted by `nnx.jit` that a function uses."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if code is None:
        return
    scope = inspect.getclosurevars(inspect.unwrap(fn))
    for name, value in {**scope.globals, **scope.nonlocals}.items():
        if is_wrapped(value):
            yield name


Memory = list[tuple[Any, dict[str, Any]]]


def _remember(fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Memory:
    """Every NNX object that the call reaches, with a shallow copy of its attributes."""
    nnx = loaded()
    objects = nnx.Variable | nnx.Pytree
    return [(thing, attributes_of(thing)) for thing in reachable(fn, args, kwargs) if isinstance(thing, objects)]


def _restore(memory: Memory) -> bool:
    """Put back what changed; whether anything had."""
    changed = False
    for thing, before in memory:
        now = attributes_of(thing)
        if now.keys() == before.keys() and all(now[name] is value for name, value in before.items()):
            continue
        changed = True
        for name in now.keys() - before.keys():
            object.__delattr__(thing, name)
        for name, value in before.items():
            object.__setattr__(thing, name, value)
    return changed
