"""From a bare module, without a lowering behind it, to the `Program` that a child process compiles."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

import jax
import numpy as np
from jaxlib.mlir import ir

from donation_inspector.common.signature import ENTRY, Leaf
from donation_inspector.errors import CompileError
from donation_inspector.xla import attributes, custom_calls, internals
from donation_inspector.xla.program import Input, Program
from donation_inspector.xla.targets import Target

_jax, _jnp = cast(Any, jax), cast(Any, jax.numpy)


def default_platform() -> str:
    """The platform of JAX's default backend on this machine."""
    return jax.default_backend()


PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""The platforms for which JAX itself has a client."""
MOST_DEVICES = 1 << 17
"""More than the largest pods have: a number that is no mistake costs memory for each."""
_TUPLED = 2000
"""Arguments above which JAX passes them to a TPU as one tuple."""


def pack_module(module: Any, name: str, arguments: Sequence[Leaf], target: Target | None = None) -> Program:
    """What a child needs to compile `module` for a target, as many partitions as it says.

    What the program is made of is read off the module; flags and options are this process's. `arguments` are the leaves
    of the entry function; `target` None is this machine's default backend.

    Raises:
      CompileError: an argument whose size is unknown, or more partitions than there are devices.
    """
    target = target or Target(default_platform(), default_platform())
    module = _with_main(module)
    partitions = _number(module, "mhlo.num_partitions")
    replicas = _number(module, "mhlo.num_replicas")
    devices = partitions * replicas
    if not (partitions > 0 and replicas > 0 and devices <= MOST_DEVICES):
        raise CompileError(f"{name} is a program for {partitions} × {replicas} devices: XLA has no target of so many")
    # to ask for this machine's devices takes them, so that no other process could run on them
    if target.platform != "cpu" and devices > 1:
        there = len(_jax.devices()) if target.here else target.devices
        if devices > there:
            where = (
                f"this machine has {there} of platform {target.platform}"
                if target.here
                else f"{target.name} has {there}"
            )
            raise CompileError(f"{name} is a program for {devices} devices; {where}")
    inputs = _inputs(module, arguments, devices)
    targets = custom_calls.targets(module)
    tupled = target.platform == "tpu" and len(inputs) > _TUPLED
    return Program(
        name=name,
        bytecode=internals.mlir.module_to_bytecode(module),
        compile_options=_options(module, replicas, partitions, tupled=tupled),
        platform=target.platform,
        target=target,
        device_ids=tuple(range(devices)),
        mesh_shape=attributes.mesh_shape(module, devices),
        # A CPU child makes as many devices as the program wants.
        device_count=devices,
        xla_flags=os.environ.get("XLA_FLAGS", ""),
        enable_x64=bool(_jax.config.jax_enable_x64),
        inputs=inputs,
        custom_calls=(),
        callbacks=tuple(name for name in targets if custom_calls.is_callback(name)),
    )


def argument_count(module: Any) -> int:
    """How many arguments the entry function has."""
    return len(_entry(module).type.inputs)


def _with_main(module: Any) -> Any:
    """The module itself; a clone whose @main is the function that somebody chose, where that is another one."""
    chosen = _entry(module)
    if ENTRY not in module.operation.attributes or chosen.attributes["sym_name"].value == "main":
        return module
    made: Any = cast(Any, ir.Module).parse(internals.mlir.module_to_bytecode(module), context=module.context)
    with made.context:
        functions: list[Any] = [op for op in made.body.operations if op.operation.name == "func.func"]
        taken = {op.attributes["sym_name"].value for op in functions}
        for op in functions:
            if op.attributes["sym_name"].value == "main":
                free = next(name for number in itertools.count() if (name := f"main_{number}") not in taken)
                _rename(made, op, free)
        chosen = _entry(made)
        _rename(made, chosen, "main")
        chosen.attributes["sym_visibility"] = cast(Any, ir.StringAttr).get("public")
        del made.operation.attributes[ENTRY]
    return made


def _rename(module: Any, function: Any, name: str) -> None:
    was = function.attributes["sym_name"].value
    cast(Any, ir.SymbolTable).replace_all_symbol_uses(was, name, module.operation)
    function.attributes["sym_name"] = cast(Any, ir.StringAttr).get(name)


def _entry(module: Any) -> Any:
    """The chosen one, else @main, else the first that is not private: XLA compiles @main alone, and says so."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    asked = module.operation.attributes[ENTRY].value if ENTRY in module.operation.attributes else "main"
    named = [op for op in functions if op.attributes["sym_name"].value == asked]
    public = [op for op in functions if "sym_visibility" not in op.attributes]
    return (named or public)[0]


def _options(module: Any, replicas: int, partitions: int, *, tupled: bool) -> bytes:
    """As JAX makes them from this process's flags, for what its lowering left to XLA: what has no sharding there."""
    assignment = np.arange(replicas * partitions).reshape(replicas, partitions)
    options: Any = internals.compiler.get_compile_options(replicas, partitions, device_assignment=assignment)
    options.parameter_is_tupled_arguments = tupled
    if partitions > 1:
        function = _entry(module)
        build = options.executable_build_options
        build.allow_spmd_sharding_propagation_to_parameters = _left_to_xla(function, "arg_attrs", "inputs")
        build.allow_spmd_sharding_propagation_to_output = _left_to_xla(function, "res_attrs", "results")
    return options.SerializeAsString()


def _left_to_xla(function: Any, key: str, types: str) -> list[bool]:
    """Whether each argument or result has no sharding, or one that Shardy may go on sharding."""
    count = len(getattr(function.type, types))
    dictionaries = attributes.dictionaries(function, key, count)
    return [
        "jax.token" not in entry
        and "mhlo.sharding" not in entry
        and ("sdy.sharding" not in entry or "?" in str(entry["sdy.sharding"]))
        for entry in dictionaries
    ]


def _number(module: Any, name: str) -> int:
    present = module.operation.attributes
    value = getattr(present[name], "value", None) if name in present else 1
    return value if isinstance(value, int) else 0


def _inputs(module: Any, arguments: Sequence[Leaf], devices: int) -> tuple[Input, ...]:
    function = _entry(module)
    leaves = {leaf.position: leaf for leaf in arguments}
    types = function.type.inputs
    entries = attributes.dictionaries(function, "arg_attrs", len(types))
    return tuple(
        _input(position, type_, entry, leaves.get(position), devices)
        for position, (type_, entry) in enumerate(zip(types, entries, strict=True))
    )


_KINDS = {"jax.token": "token", "jax.global_constant": "dimension", "jax.const": "constant"}


def _input(position: int, type_: Any, entry: Mapping[str, Any], leaf: Leaf | None, devices: int) -> Input:
    kind = "leaf" if leaf is not None else next((_KINDS[name] for name in _KINDS if name in entry), "ref")
    if kind == "token" or "token" in str(type_).partition("<")[0]:
        return Input(position, "token", None, (), "token", "token", None, None)
    path = f"argument {position}" if leaf is None else leaf.path
    try:
        tensor: Any = ir.RankedTensorType(type_)
    except (TypeError, ValueError):
        raise CompileError(f"{path} is {type_}: XLA takes arrays of a known rank alone") from None
    if not tensor.has_static_shape:
        raise CompileError(f"{path} has a dynamic shape: XLA compiles for sizes that are known")
    dtype = _dtypes().get(str(tensor.element_type))
    if dtype is None:
        raise CompileError(f"{path} is {type_}, of which numpy has no array")
    shape = tuple(int(size) for size in tensor.shape)
    shards = (tuple((0, size) for size in shape),) if devices == 1 else None
    logical = leaf.dtype if leaf is not None and leaf.dtype.startswith("key<") else dtype
    return Input(position, kind, None if leaf is None else leaf.index, shape, dtype, logical, shards, None)


@cache
def _dtypes() -> Mapping[str, str]:
    """numpy's name of each element type of MLIR's that JAX has."""
    with internals.mlir.make_ir_context():
        # bool last: a number of one bit has its type
        known = sorted(_known_dtypes(), key=lambda dtype: dtype == np.bool_)
        return {str(internals.mlir.dtype_to_ir_type(dtype)): str(dtype) for dtype in known}


def _known_dtypes() -> Iterator[Any]:
    for name in dir(_jnp):
        scalar = getattr(_jnp, name)
        dtype = getattr(scalar, "dtype", None)
        if isinstance(dtype, np.dtype) and isinstance(scalar, type(_jnp.float32)):
            yield dtype
