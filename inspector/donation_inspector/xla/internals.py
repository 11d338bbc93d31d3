"""Every private name of JAX that is used here, each with what it is for and why the public way falls short.

A name is looked for when it is used, never when this package is imported: what a newer JAX has no more turns off what
needs it, with one error that says so, and nothing else. They are `Any` on purpose: JAX's stubs leave most of them
partly unknown.
"""

from __future__ import annotations

import importlib
from typing import Any

import jax

from donation_inspector.errors import TraceError

TESTED = "0.9.0 to 0.10.2"
"""The versions of JAX that the tests run with."""


class MissingNameError(TraceError, AttributeError):
    """This JAX has a private name no more."""


class Private:
    """A private module of JAX's; a name that it lacks raises `MissingNameError` with what it is needed `to` do."""

    def __init__(self, module: str, to: str) -> None:
        vars(self).update(_module=module, _to=to)

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(importlib.import_module(self._module), name)
        except (ImportError, AttributeError):
            raise _missing(f"{self._module}.{name}", self._to) from None

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(importlib.import_module(self._module), name, value)


def _missing(name: str, to: str) -> MissingNameError:
    return MissingNameError(
        f"jax {jax.__version__} has no {name}, which donation_inspector needs to {to}. It is tested with jax {TESTED}. "
        "What does not need it works."
    )


config: Any = jax.config
"""Public, but its options are made at run time."""
jit: Any = importlib.import_module("jax").jit
"""Public, partly untyped."""
public_trees: Any = importlib.import_module("jax.tree_util")
"""Public, partly untyped."""
backends: Any = importlib.import_module("jax.extend.backend")
"""Public, partly untyped."""

core: Any = Private("jax._src.core", "tell whether traced values are left")
"""Where a trace is made known when it begins."""
mlir: Any = Private("jax._src.interpreters.mlir", "pair donated arguments as JAX does, and to compile an edited module")
"""JAX's pairing of donated arguments and what it looks at; bytecode of an edited module; refinement of shapes: all run
between lowering and XLA, and nothing public calls them apart."""
compiler: Any = Private("jax._src.compiler", "compile a module that no function was lowered to")
"""The compile options that JAX derives from its flags have no public way."""
pjit: Any = Private("jax._src.pjit", "hear a call before it runs, as di.watch does")
"""Where a `jax.jit` call goes that is not dispatched yet; nothing public tells of a call before it runs."""
pmap: Any = Private("jax._src.pmap", "inspect a call of jax.pmap that is under way")
"""What it remembers of calls; nothing public lets it forget one alone."""
xla_bridge: Any = Private("jax._src.xla_bridge", "measure beside this process")
"""Whether this process holds a device at all: asking the public API for devices would take them."""
client: Any = Private("jaxlib._jax", "compile an edited module")
"""JAX's public compile takes only what it lowered itself; an edited module needs the client's own types."""

_TRACE, _COMPILE = "trace and lower", "compile a module as JAX would"
_NAMES = {
    # public, but absent from JAX's stubs
    "Tracer": ("jax._src.core", _TRACE),
    # tokens have no public name
    "abstract_token": ("jax._src.core", _TRACE),
    # the buffer behind a typed PRNG key has no public type
    "physical_aval": ("jax._src.core", _TRACE),
    # whether nothing is being traced; public in newer versions only
    "trace_state_clean": ("jax._src.core", "hear a call before it runs, as di.watch does"),
    # the shardings as the pairing sees them
    "_to_logical_sharding": ("jax._src.interpreters.pxla", _TRACE),
    # `Lowered.compile` makes the options and keeps them
    "create_compile_options": ("jax._src.interpreters.pxla", _COMPILE),
    # which shardings XLA may choose: part of the compile options
    "get_prop_to_input_output": ("jax._src.interpreters.pxla", _COMPILE),
    # what `maybe_concretize_mesh` takes
    "_create_device_list": ("jax._src.interpreters.pxla", _COMPILE),
    # JAX puts devices into abstract meshes just before it compiles
    "maybe_concretize_mesh": ("jax._src.interpreters.pxla", _COMPILE),
    # how XLA's own shardings are read
    "GSPMDSharding": ("jax._src.sharding_impls", "measure on several devices"),
    # keeps our frame out of the traceback of the user's own call, as JAX keeps its own out
    "register_exclusion": ("jax._src.traceback_util", "hear a call before it runs, as di.watch does"),
    # JAX's own flattening of a jit call: static arguments shift the order, and no public function tells how
    "jax_jit": ("jax._src.lib", _TRACE),
    # the registry of custom-call targets; public API can only add to it
    "xla_client": ("jax._src.lib", _COMPILE),
    # the pytree registry that tracing flattens with; the public one may differ
    "tracing_registry": ("jax._src.tree_util", _TRACE),
    "default_registry": ("jax._src.tree_util", _TRACE),
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, to = _NAMES[name]
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise _missing(f"{module}.{name}", to) from None
    globals()[name] = found
    return found
