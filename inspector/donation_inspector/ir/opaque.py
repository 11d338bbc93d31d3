"""The dialects that JAX writes, opaque, for `xdsl-opt`: it reads and prints their operations in generic form.

xDSL has none of these dialects. With `--allow-unregistered-dialect` it reads them too, but takes each of their
operations for a symbol table: a `func.call` in a loop then looks for its function in the loop, and fails to verify.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module

from xdsl.dialects.builtin import UnregisteredAttr, UnregisteredOp
from xdsl.ir import Attribute, Dialect, Operation

from donation_inspector.ir.dialect import Verbatim, never_a_symbol_table

# The operations are read off jaxlib; it does not tell its attributes and types.
_ATTRIBUTES = {
    "stablehlo": (
        "axis_ref bounds channel_handle comparison_direction comparison_type conv dot dot_algorithm fft_type gather "
        "mesh mesh_axis output_operand_alias precision replica_group_mesh_axes result_accuracy result_accuracy_mode "
        "rng_algorithm rng_distribution scatter sub_axis_info transpose type_extensions"
    ),
    "chlo": "comparison_direction comparison_type precision ragged_dot",
    "mhlo": (
        "axis_ref channel_handle comparison_direction comparison_type conv cross_program_prefetch "
        "custom_call_schedule dequantize_mode dot dot_algorithm fft_type fusion_kind gather kind original_array "
        "original_value original_value_element output_operand_alias precision ragged_dot replica_group_mesh_axes "
        "result_accuracy result_accuracy_mode result_alias rng_algorithm rng_distribution scatter sub_axis_info "
        "transpose type_extensions"
    ),
    "sdy": (
        "all_to_all_param all_to_all_param_list axis_ref axis_ref_list axis_to_propagation_details dim_mapping "
        "dimension_sharding edge_value_ref list_of_axis_ref_lists manual_axes mesh mesh_axis op_sharding_rule "
        "propagation_edges propagation_one_step sharding sharding_per_value sub_axis_info tensor_mapping"
    ),
    "mpmd": "mesh_with_origins meshes_with_origins named_mesh origin reduction topology user_origin",
}
_TYPES = {"stablehlo": "future token", "mhlo": "async_bundle token", "mpmd": "mesh_tensor"}


def dialects() -> dict[str, Callable[[], Dialect]]:
    """By name, each made when it is first met: JAX's, and `verbatim`, which holds what xDSL cannot represent."""
    return {name: partial(_make, name) for name in _ATTRIBUTES} | {Verbatim.name: lambda: Verbatim}


@cache
def _make(name: str) -> Dialect:
    attributes = [_attribute(f"{name}.{mnemonic}", is_type=False) for mnemonic in _ATTRIBUTES[name].split()]
    types = [_attribute(f"{name}.{mnemonic}", is_type=True) for mnemonic in _TYPES.get(name, "").split()]
    return Dialect(name, [_operation(known) for known in _operations(name)], attributes + types)


def _operations(dialect: str) -> Sequence[str]:
    """The names of the operations that the installed jaxlib has a class for."""
    members = vars(import_module(f"jaxlib.mlir.dialects.{dialect}")).values()
    names = {getattr(member, "OPERATION_NAME", None) for member in members}
    return sorted(known for known in names if isinstance(known, str) and known.startswith(f"{dialect}."))


def _operation(name: str) -> type[Operation]:
    made = UnregisteredOp.with_name(name)
    made.name = name
    never_a_symbol_table(made)
    return made


def _attribute(name: str, is_type: bool) -> type[Attribute]:
    made = UnregisteredAttr.with_name_and_type(name, is_type)
    made.name = name
    return made
