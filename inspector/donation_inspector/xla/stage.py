"""From what the user has in hand to a `jax.stages.Traced` or `Lowered`, with the flat arrays that go into it.

Traces under the caller's configuration, runs nothing.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from donation_inspector.common.visible import one_line
from donation_inspector.errors import DonationInspectorError, TraceError
from donation_inspector.xla import explain, internals, leaks
from donation_inspector.xla.facts import Order

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]

_DATA: tuple[type[Any], ...] = (str, bytes, np.ndarray, np.generic, jax.Array)
"""What has a `.lower` or a `.trace` of another meaning."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A function that JAX has traced, or lowered where it offers no trace.

    `name` is empty where a lowering alone was given.
    `inputs` are the caller's flat arrays (shapes where only shapes are known); `said` are the warnings of tracing,
    without those about donation; `asked` has the arguments that the jitted function itself asks to donate, by name,
    and by number as `args[0]`, None where unknown; `is_call` tells whether the function was traced here, as its own
    call does; `leaked` tells whether traced values were
    stored outside, and `put_back` whether what was there is again.
    `order` is the one in which JAX was given the user's flat arrays, None where that is the user's own.
    """

    name: str
    traced: jax.stages.Traced | None
    lowered: jax.stages.Lowered | None
    inputs: tuple[Any, ...] | None
    said: tuple[str, ...] = ()
    asked: tuple[str, ...] | None = None
    is_call: bool = False
    leaked: bool = False
    put_back: bool = False
    order: Order | None = None


def stage(fn: Any, args: Args, kwargs: Kwargs) -> Stage:
    """Trace what `di.inspect` takes; see there for what that is.

    Raises:
        TraceError: it is nothing that JAX can trace with these arguments.
    """
    ready = unwrap(fn)
    if ready is not None:
        if args or kwargs:
            raise TraceError(
                f"{type(fn).__name__} already holds its arguments: give it alone, without further arguments."
            )
        return _of_ready(ready)
    fn, args, kwargs = bind(fn, args, kwargs)
    refuse_data(fn)
    jitted: Any = fn if _has_stages(fn) else attempt(_name(fn), internals.jit, (fn,), {})
    return trace(jitted, args, kwargs, name=_name(fn), inputs=flat_inputs(jitted, args, kwargs))


def refuse_data(fn: Any) -> None:
    """Raise TraceError where nothing can be called or traced."""
    if isinstance(fn, _DATA) or not (callable(fn) or _has_stages(fn)):
        raise TraceError(f"{_short(fn)} ({type(fn).__name__}) is no function. Give the function, then its arguments.")


def unwrap(candidate: Any) -> jax.stages.Traced | jax.stages.Lowered | None:
    """The JAX stage that an object is, or holds as `.traced` or `.lowered`.

    Raises:
        TraceError: it is already compiled.
    """
    for stage_ in (candidate, _held(candidate, "traced"), _held(candidate, "lowered")):
        if isinstance(stage_, jax.stages.Traced | jax.stages.Lowered):
            return stage_
    if isinstance(candidate, jax.stages.Compiled) or isinstance(_held(candidate, "compiled"), jax.stages.Compiled):
        raise TraceError(
            "A compiled function no longer holds its program. Give the function, or what .lower() returned."
        )
    return None


def _held(candidate: Any, name: str) -> Any:
    """An attribute, None where there is none; an object of the user's may raise anything instead of saying so."""
    try:
        return getattr(candidate, name, None)
    except Exception:
        return None


def bind(fn: Any, args: Args, kwargs: Kwargs) -> tuple[Any, Args, Kwargs]:
    """Move what `functools.partial` or a bound method holds back into the arguments, where a jitted function is behind.

    `jax.jit` methods and `nnx.jit` methods keep `.lower` and `.trace` on the unbound function only.
    """
    while True:
        held: Any = fn
        if isinstance(fn, functools.partial) and _has_stages(_innermost(held)):
            fn, args, kwargs = held.func, (*held.args, *args), {**held.keywords, **kwargs}
        elif isinstance(fn, types.MethodType) and _has_stages(fn.__func__):
            fn, args = held.__func__, (held.__self__, *args)
        else:
            return held, args, kwargs


def _innermost(fn: Any) -> Any:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn.__func__ if isinstance(fn, types.MethodType) else fn


def _has_stages(fn: Any) -> bool:
    return not isinstance(fn, types.MethodType) and (callable(_held(fn, "trace")) or callable(_held(fn, "lower")))


def flat_inputs(jitted: Any, args: Args, kwargs: Kwargs) -> tuple[Any, ...] | None:
    """The flat dynamic arguments of a `jax.jit` call, in JAX's order; None where it is no `jax.jit` function.

    Asks the parser that JAX itself asks, because static arguments shift the order.
    """
    info: Any = getattr(jitted, "_jit_info", None)
    if info is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = internals.jax_jit.parse_arguments(
                args,
                tuple(kwargs.values()),
                tuple(kwargs),
                info.static_argnums,
                info.static_argnames,
                _registry(),
            )
    except (TypeError, ValueError):
        return None
    return tuple(parsed[1])


def _registry() -> Any:
    return getattr(internals, "tracing_registry", None) or internals.default_registry


def asked_for(jitted: Any) -> tuple[str, ...] | None:
    """What a `jax.jit` function was made to donate, as `Stage.asked` has it; None where that is not known."""
    info: Any = getattr(jitted, "_jit_info", None)
    if info is None:
        return None
    return (*(info.donate_argnames or ()), *(f"args[{number}]" for number in info.donate_argnums or ()))


def static_arguments(fn: Any) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
    """The static arguments of a `jax.jit` function, by number and by name; None for any other."""
    info: Any = getattr(fn, "_jit_info", None)
    return None if info is None else (tuple(info.static_argnums or ()), tuple(info.static_argnames or ()))


def keeps_unused(fn: Any) -> bool:
    """Whether a `jax.jit` function keeps arguments that nothing reads; False for any other."""
    return bool(getattr(getattr(fn, "_jit_info", None), "keep_unused", False))


def wraps_options(fn: Any) -> bool:
    """Whether a `jax.jit` function has shardings, a device or compiler options of its own."""
    info: Any = getattr(fn, "_jit_info", None)
    if info is None:
        return False
    shardings = (*info.in_shardings_leaves, *info.out_shardings_leaves)
    given = any(isinstance(one, jax.sharding.Sharding | jax.sharding.PartitionSpec) for one in shardings)
    return given or bool(info.device or info.backend or info.compiler_options_kvs)


def trace(jitted: Any, args: Args, kwargs: Kwargs, *, name: str, inputs: Sequence[Any] | None) -> Stage:
    """Trace a function that has `.trace` or `.lower`.

    Raises:
        TraceError: JAX or the function itself raised.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with leaks.taken_out(jitted, args, kwargs) as stored:
            made = attempt(name, getattr(jitted, "trace", None) or jitted.lower, args, kwargs, jitted)
    ready = unwrap(made)
    if ready is None:
        raise TraceError(
            f"{name} has .trace() or .lower(), but what it returns ({type(made).__name__}) holds no jax.stages.Traced "
            "or Lowered. Give the plain function or a jax.jit of it."
        )
    return Stage(
        name=name,
        traced=ready if isinstance(ready, jax.stages.Traced) else None,
        lowered=ready if isinstance(ready, jax.stages.Lowered) else None,
        inputs=None if inputs is None else tuple(inputs),
        said=said(caught),
        asked=asked_for(jitted),
        is_call=True,
        leaked=stored.found or stored.left,
        put_back=stored.found and not stored.left,
    )


def lower_stage(staged: Stage, platform: str | None) -> jax.stages.Lowered:
    """Lower a traced function for a platform; None is that of its devices, and the default one where it has none.

    Raises:
        TraceError: JAX lowers it for the devices that are here, and not for that platform.
    """
    traced: Any = staged.traced
    if platform is not None:
        try:
            return traced.lower(lowering_platforms=(platform,))
        except Exception as error:
            raise TraceError(explain.platform_failure(staged.name, platform, error)) from error
    try:
        return traced.lower()
    except ValueError as error:
        # with abstract meshes alone there are no devices that could tell
        if "AbstractMesh" not in str(error):
            raise
    backend: Any = internals.backends.get_backend()
    return traced.lower(lowering_platforms=(getattr(backend, "_raw_platform", backend.platform),))


def attempt(name: str, step: Callable[..., Any], args: Args, kwargs: Kwargs, function: Any = None) -> Any:
    """Call a tracing step; whatever it raises becomes one clear `TraceError`."""
    try:
        return step(*args, **kwargs)
    except DonationInspectorError:
        raise
    except Exception as error:
        raise TraceError(explain.trace_failure(name, error, function)) from error


def said(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """What was warned about, without JAX's donation warning, which is told anew with the user's names."""
    texts = (explain.essence(str(warning.message)) for warning in caught)
    return tuple(dict.fromkeys(text for text in texts if not text.startswith("Some donated buffers were not usable")))


def _of_ready(ready: jax.stages.Traced | jax.stages.Lowered) -> Stage:
    if isinstance(ready, jax.stages.Traced):
        return Stage(str(ready.fun_name), ready, None, None)
    return Stage("", None, ready, None)


def _name(fn: Any) -> str:
    inner = _innermost(fn)
    return one_line(str(getattr(inner, "__name__", None) or type(inner).__name__))


def _short(value: Any) -> str:
    text = explain.shown(repr, value)
    return text if len(text) <= 60 else text[:59] + "…"
