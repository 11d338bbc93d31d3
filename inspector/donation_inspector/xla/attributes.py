"""What stands at a lowered module's entry function, read off jaxlib's MLIR: donation, memory kinds, custom calls."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from donation_inspector.common.signature import Donation
from donation_inspector.errors import TraceError

# `#sdy.mesh<["x"=4, "y"=2]>`: Shardy's attributes have no Python accessors in every jaxlib
_AXIS_SIZE = re.compile(r'"=(\d+)')


def entry_function(module: Any) -> Any:
    """The `func.func` named main of a module that JAX lowered."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.attributes["sym_name"].value == "main":
            return op
    raise TraceError("JAX's lowered module has no function named main: this JAX version is not understood.")


def dictionaries(function: Any, name: str, count: int) -> list[dict[str, Any]]:
    """The attributes of each of a function's `count` arguments ("arg_attrs") or results ("res_attrs")."""
    if name not in function.attributes:
        return [{} for _ in range(count)]
    return [{entry.name: entry.attr for entry in dictionary} for dictionary in function.attributes[name]]


def argument_attributes(module: Any) -> list[dict[str, Any]]:
    """Each entry argument's attributes, by position."""
    function = entry_function(module)
    return dictionaries(function, "arg_attrs", len(function.type.inputs))


def argument_types(module: Any) -> list[str]:
    """Each entry argument's type as MLIR prints it, by position."""
    return [str(type_) for type_ in entry_function(module).type.inputs]


def result_types(module: Any) -> list[str]:
    """Each entry result's type as MLIR prints it, by position."""
    return [str(type_) for type_ in entry_function(module).type.results]


def read_donation(module: Any) -> Donation:
    """The outcome JAX wrote down: `tf.aliasing_output` and `jax.buffer_donor`, by position."""
    aliases: dict[int, int] = {}
    donors: set[int] = set()
    for position, attributes in enumerate(argument_attributes(module)):
        if "tf.aliasing_output" in attributes:
            aliases[position] = attributes["tf.aliasing_output"].value
        elif "jax.buffer_donor" in attributes:
            donors.add(position)
    return Donation(MappingProxyType(aliases), frozenset(donors))


def has_memory_kinds(module: Any) -> bool:
    """Whether the lowering looked at memory kinds: it writes them only where one is not the default."""
    function = entry_function(module)
    entries = dictionaries(function, "arg_attrs", 0) + dictionaries(function, "res_attrs", 0)
    return any("mhlo.memory_kind" in attributes for attributes in entries)


def mesh_shape(module: Any, devices: int) -> tuple[int, ...]:
    """The axis sizes of the mesh of so many devices that the module is written for; () where it names none."""
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            sizes = tuple(int(size) for size in _AXIS_SIZE.findall(str(op.attributes["mesh"])))
            if math.prod(sizes) == devices:
                return sizes
    return ()


def custom_call_targets(module: Any) -> tuple[str, ...]:
    """The names of all custom calls in the module, sorted."""
    targets: set[str] = set()
    for op in operations(module.operation):
        if op.name == "stablehlo.custom_call":
            targets.add(op.attributes["call_target_name"].value)
    return tuple(sorted(targets))


def partitions(module: Any) -> int:
    """On how many devices the module runs."""
    held = module.operation.attributes
    return int(held["mhlo.num_partitions"].value) if "mhlo.num_partitions" in held else 1


def operations(root: Any) -> Iterator[Any]:
    """An operation and all that its regions hold."""
    stack = [root]
    while stack:
        operation = stack.pop()
        yield operation
        for region in operation.regions:
            for block in region.blocks:
                stack.extend(inner.operation for inner in block.operations)
