"""What JAX kept about a lowering, read once from its private fields into plain names.

`jax.stages.Lowered` offers no public way to the shardings, layouts, kept arguments, device assignment and compile
options that its module was built from, and all of them are needed to predict JAX's pairing and to compile elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from donation_inspector.errors import TraceError
from donation_inspector.xla import exported_calls, internals


@dataclass(frozen=True, eq=False)
class Order:
    """An order in which somebody hands JAX a user's flat arguments, and takes the flat results from it."""

    arguments: tuple[int, ...]
    """The index of the user's leaf at each of the flat arguments that JAX was given."""
    results: tuple[int, ...]
    """The index of the user's result at each of the flat results that JAX gives."""
    returned: Any
    """The `PyTreeDef` of what the user gets."""


@dataclass(frozen=True, eq=False)
class Facts:
    """One lowering's inputs and outcome.

    The entry function's arguments are `dimensions` sizes, `tokens`, `constants`, the kept leaves, then `references`;
    its results are `tokens`, then `out_avals`. `in_*` start at the constants, `out_*` after the tokens.
    """

    module: Any
    """jaxlib `ir.Module`, shared with JAX: never mutate it. Calls of exported functions are laid open."""
    name: str
    dimensions: int
    tokens: int
    constants: tuple[Any, ...]
    references: tuple[Any, ...]
    """Closed-over `jax.Ref`s, appended to the arguments."""
    order: Order
    kept: tuple[int, ...]
    """User leaf indices, in the order of the entry function's arguments."""
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    in_shardings: tuple[Any, ...]
    """`jax.sharding.Sharding`, or None where left to XLA."""
    out_shardings: tuple[Any, ...]
    in_layouts: Any
    out_layouts: Any
    forced_aliases: tuple[int | None, ...] | None
    """For each of `in_avals`, the result that a mutable reference writes back to; None where there are none at all."""
    result_reference: tuple[int | None, ...]
    """For each of `out_avals`, the index among `in_avals` of the reference it updates, None for a user's result."""
    partitions: int
    platforms: tuple[str, ...]
    devices: tuple[Any, ...]
    """In the order of the assignment; none where the program was written for an abstract mesh alone."""
    backend: Any
    leaf_avals: tuple[Any, ...]
    """All user leaves, dropped ones included."""
    leaf_donated: tuple[bool, ...]
    debug_info: Any
    compile_args: dict[str, Any]
    compiler_options: tuple[tuple[str, Any], ...]

    @property
    def first_kept(self) -> int:
        """Position of the first kept leaf."""
        return self.dimensions + self.tokens + len(self.constants)


def _references(
    mutation: Any, arguments: int, results: int
) -> tuple[tuple[Any, ...], tuple[int | None, ...] | None, tuple[int | None, ...]]:
    if mutation is None:
        return (), None, (None,) * results
    result_reference = tuple(mutation.out_mut)
    aliases: list[int | None] = [None] * arguments
    for result, argument in enumerate(result_reference):
        if argument is not None:
            aliases[argument] = result
    return tuple(mutation.in_mut), tuple(aliases), result_reference


def argument_infos(lowered: jax.stages.Lowered, traced: jax.stages.Traced | None) -> list[Any]:
    """What JAX says of each flat argument: `_aval` and `donated`.

    Raises:
        TraceError: a structure among the arguments has other leaves when JAX's own words stand in their place, and
            there is only the lowering.
    """
    said: Any = lowered.args_info
    found: list[Any] = jax.tree.leaves(said)
    stage: Any = lowered
    args: dict[str, Any] = stage._lowering.compile_args
    count = len(args["all_args_info"].in_avals) - len(getattr(stage._lowering, "const_args", ()))
    if len(found) == count:
        return found
    if traced is None:
        raise TraceError(
            "A structure among the arguments looks at its leaves when it is flattened: a lowering alone does not tell "
            "them. Give the function and its arguments, or what .trace() returned."
        )
    held: Any = traced
    donated = held._params["donated_invars"][-count:]
    return [
        SimpleNamespace(_aval=aval, donated=given)
        for aval, given in zip(held.jaxpr.in_avals[-count:], donated, strict=True)
    ]


def read_facts(
    lowered: jax.stages.Lowered, order: Order | None = None, traced: jax.stages.Traced | None = None
) -> Facts:
    """Read a lowering made by `jax.jit` (directly or behind a wrapper); `order` None is the user's own."""
    stage: Any = lowered
    lowering: Any = stage._lowering
    args: dict[str, Any] = lowering.compile_args
    in_avals, out_avals = tuple(args["global_in_avals"]), tuple(args["global_out_avals"])
    constants = tuple(getattr(lowering, "const_args", ()))
    references, forced, result_reference = _references(args["mut"], len(in_avals), len(out_avals))
    shape_poly = args["shape_poly_state"]
    given = argument_infos(lowered, traced)
    kept: list[int] = sorted(args["kept_var_idx"])
    if order is None:
        order = Order(tuple(range(len(given))), tuple(range(stage.out_tree.num_leaves)), stage.out_tree)
    leaves = [leaf for _, leaf in sorted(zip(order.arguments, given, strict=True), key=lambda pair: pair[0])]
    return Facts(
        module=exported_calls.laid_open(
            lowering.stablehlo(), polymorphic=shape_poly is not None and shape_poly.uses_dim_vars
        ),
        name=args["all_args_info"].debug_info.func_name,
        dimensions=0 if shape_poly is None else len(shape_poly.dim_vars),
        tokens=len(args["ordered_effects"]),
        constants=constants,
        references=references,
        order=order,
        kept=tuple(order.arguments[i - len(constants)] for i in kept if i >= len(constants)),
        in_avals=in_avals,
        out_avals=out_avals,
        in_shardings=tuple(map(_logical_sharding, in_avals, args["in_shardings"])),
        out_shardings=tuple(map(_logical_sharding, out_avals, args["out_shardings"])),
        in_layouts=args["in_layouts"],
        out_layouts=args["out_layouts"],
        forced_aliases=forced,
        result_reference=result_reference,
        partitions=args["num_devices"],
        platforms=tuple(lowering._platforms),
        devices=() if lowering._device_list is None else tuple(lowering._device_list),
        backend=args["backend"],
        leaf_avals=tuple(leaf._aval for leaf in leaves),
        leaf_donated=tuple(leaf.donated for leaf in leaves),
        debug_info=args["all_args_info"].debug_info,
        compile_args=args,
        compiler_options=tuple(lowering._compiler_options_kvs),
    )


def _logical_sharding(aval: Any, sharding: Any) -> Any:
    return internals._to_logical_sharding(aval, sharding)


def is_token(aval: Any) -> bool:
    """Whether an aval is JAX's token, which carries no data."""
    return aval is internals.abstract_token


def physical(aval: Any) -> Any:
    """The aval of the buffer behind a logical one: typed PRNG keys become their integers."""
    return internals.physical_aval(aval)


def sharded(aval: Any, sharding: Any) -> Any:
    """The aval of one device's part."""
    return internals.mlir.sharded_aval(aval, sharding)


def refined_module(facts: Facts, module: Any) -> Any:
    """The module that is compiled: dimension variables of called exported modules resolved, as JAX does before XLA."""
    state = facts.compile_args["shape_poly_state"]
    if state is None or not state.uses_dim_vars:
        return module
    return internals.mlir.refine_polymorphic_shapes(module)


def compile_options(facts: Facts) -> bytes:
    """The serialized compile options that `Lowered.compile()` would use, the user's compiler options included.

    Asks the function JAX itself asks, by parameter name, because its parameters differ between versions.
    """
    devices: Any = np.arange(facts.partitions)
    if facts.devices:
        devices = np.empty(len(facts.devices), dtype=object)
        devices[:] = facts.devices
    to_inputs, to_outputs = internals.get_prop_to_input_output(
        _concrete(facts.compile_args["in_shardings"], facts),
        _concrete(facts.compile_args["out_shardings"], facts),
        facts.tokens,
    )
    known: dict[str, Any] = {
        "mesh": None,
        "spmd_lowering": True,
        "auto_spmd_lowering": False,
        "pmap_nreps": 1,
        **facts.compile_args,
        "computation": facts.module,
        "allow_prop_to_inputs": to_inputs,
        "allow_prop_to_outputs": to_outputs,
        "np_dev": devices,
        "compiler_options": dict(facts.compiler_options),
    }
    parameters = inspect.signature(internals.create_compile_options).parameters
    options: Any = internals.create_compile_options(**{name: known[name] for name in parameters})
    return options.SerializeAsString()


def _concrete(shardings: Sequence[Any], facts: Facts) -> tuple[Any, ...]:
    if not facts.devices:
        return tuple(shardings)
    device_list: Any = internals._create_device_list(facts.devices)
    return tuple(internals.maybe_concretize_mesh(sharding, device_list) for sharding in shardings)
