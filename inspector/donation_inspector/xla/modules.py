"""From a bare module, without a lowering behind it, to the `Program` that a child process compiles."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, cast

import jax
import numpy as np
from jax._src import compiler as _compiler  # the compile options that JAX derives from its flags have no public way
from jax._src.interpreters import mlir  # JAX's own bytecode writer: no public function takes a module

from donation_inspector.common.signature import Leaf
from donation_inspector.errors import CompileError
from donation_inspector.xla import attributes
from donation_inspector.xla.program import Input, Program
from donation_inspector.xla.targets import Target

compiler, _jax = cast(Any, _compiler), cast(Any, jax)


def default_platform() -> str:
    """The platform of JAX's default backend on this machine."""
    return jax.default_backend()


def pack_module(module: Any, name: str, arguments: Sequence[Leaf], target: Target | None = None) -> Program:
    """What a child needs to compile `module` for a target, as many partitions as it says.

    `arguments` are the leaves of the entry function; `target` None is this machine's default backend.

    Raises:
      CompileError: an argument whose size is unknown, or more partitions than there are devices.
    """
    target = target or Target(default_platform(), default_platform())
    partitions = _number(module, "mhlo.num_partitions")
    replicas = _number(module, "mhlo.num_replicas")
    devices = partitions * replicas
    there = len(_jax.devices()) if target.here else target.devices
    if target.platform != "cpu" and devices > there:
        where = (
            f"this machine has {there} of platform {target.platform}" if target.here else f"{target.name} has {there}"
        )
        raise CompileError(f"{name} is a program for {devices} devices; {where}")
    assignment = np.arange(devices).reshape(replicas, partitions)
    options: Any = compiler.get_compile_options(replicas, partitions, device_assignment=assignment)
    targets = attributes.custom_call_targets(module)
    return Program(
        name=name,
        bytecode=mlir.module_to_bytecode(module),
        compile_options=options.SerializeAsString(),
        platform=target.platform,
        target=target,
        device_ids=tuple(range(devices)),
        mesh_shape=attributes.mesh_shape(module, devices),
        # A CPU child makes as many devices as the program wants.
        device_count=max(devices, len(_jax.devices())),
        xla_flags=os.environ.get("XLA_FLAGS", ""),
        enable_x64=bool(_jax.config.jax_enable_x64),
        inputs=tuple(_input(leaf, devices) for leaf in arguments if leaf.position is not None),
        custom_calls=(),
        callbacks=tuple(target for target in targets if "python" in target and "callback" in target),
    )


def _number(module: Any, name: str) -> int:
    present = module.operation.attributes
    return int(present[name].value) if name in present else 1


def _input(leaf: Leaf, devices: int) -> Input:
    shape = tuple(size for size in leaf.shape if size is not None)
    if len(shape) != len(leaf.shape):
        raise CompileError(f"{leaf.path} has a dynamic shape: XLA compiles for sizes that are known")
    shards = (tuple((0, size) for size in shape),) if devices == 1 else None
    return Input(leaf.position or 0, "leaf", leaf.index, shape, leaf.dtype, leaf.dtype, shards, None)
