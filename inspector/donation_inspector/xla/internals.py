"""Every private name of JAX that lowering needs, each with why the public way falls short, and JAX's untyped functions.

They are `Any` on purpose: JAX's stubs leave most of them partly unknown.
"""

from __future__ import annotations

import importlib
from typing import Any

import jax


def _module(name: str) -> Any:
    return importlib.import_module(name)


_core, _tree_util = _module("jax._src.core"), _module("jax._src.tree_util")
_pxla, _lib = _module("jax._src.interpreters.pxla"), _module("jax._src.lib")

config: Any = jax.config
"""Public, but its options are made at run time."""
jit: Any = _module("jax").jit
"""Public, partly untyped."""
public_trees: Any = _module("jax.tree_util")
"""Public, partly untyped."""

backends: Any = _module("jax.extend.backend")
"""Public, partly untyped."""

core: Any = _core
"""Where a trace is made known when it begins."""
Tracer: Any = _core.Tracer
"""`jax.core.Tracer` is public, but absent from JAX's stubs."""
abstract_token: Any = _core.abstract_token
"""Tokens have no public name."""
physical_aval: Any = _core.physical_aval
"""The buffer behind a typed PRNG key has no public type."""

mlir: Any = _module("jax._src.interpreters.mlir")
"""JAX's pairing of donated arguments and what it looks at; bytecode of an edited module; refinement of shapes: all run
between lowering and XLA, and nothing public calls them apart."""

to_logical_sharding: Any = _pxla._to_logical_sharding
"""The shardings as the pairing sees them."""
create_compile_options: Any = _pxla.create_compile_options
"""`Lowered.compile` makes the options and keeps them."""
get_prop_to_input_output: Any = _pxla.get_prop_to_input_output
"""Which shardings XLA may choose: part of the compile options."""
create_device_list: Any = _pxla._create_device_list
"""What `maybe_concretize_mesh` takes."""
maybe_concretize_mesh: Any = _pxla.maybe_concretize_mesh
"""JAX puts devices into abstract meshes just before it compiles."""

pjit: Any = _module("jax._src.pjit")
"""Where a `jax.jit` call goes that is not dispatched yet; nothing public tells of a call before it runs."""
trace_state_clean: Any = _core.trace_state_clean
"""Whether nothing is being traced; public in newer versions only."""
register_exclusion: Any = _module("jax._src.traceback_util").register_exclusion
"""Keeps our frame out of the traceback of the user's own call, as JAX keeps its own out."""

parse_arguments: Any = _lib.jax_jit.parse_arguments
"""JAX's own flattening of a jit call: static arguments shift the order, and no public function tells how."""
tracing_registry: Any = getattr(_tree_util, "tracing_registry", _tree_util.default_registry)
"""The pytree registry that tracing flattens with; the public one may differ."""
custom_call_targets: Any = _lib.xla_client.custom_call_targets
"""The registry of custom-call targets; public API can only add to it."""
