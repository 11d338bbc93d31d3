"""From a lowering to the `Program` that a child process compiles."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from donation_inspector.common.signature import Arrangement
from donation_inspector.errors import CompileError
from donation_inspector.xla import attributes, internals
from donation_inspector.xla.callbacks import callback_name
from donation_inspector.xla.facts import Facts, compile_options, is_token, physical, refined_module
from donation_inspector.xla.program import Input, Program, Shards
from donation_inspector.xla.targets import Target

_REGISTRY_NAMES = {"cpu": "Host", "cuda": "CUDA", "gpu": "CUDA", "rocm": "ROCM", "tpu": "TPU"}


def pack(facts: Facts, module: Any, name: str, target: Target | None = None) -> Program:
    """What a child needs to compile `module` as JAX would compile this lowering's own.

    `module` has the lowering's entry signature: the lowered module itself or a clone with other donation attributes.
    `target` None is what the program was lowered for, on this machine.

    Raises:
      CompileError: the program runs on more devices than there are.
    """
    target = target or Target(str(facts.backend.platform), str(facts.backend.platform))
    targets = attributes.custom_call_targets(module)
    registry = _REGISTRY_NAMES.get(target.platform, target.platform)
    registered: set[str] = set(internals.xla_client.custom_call_targets(registry))
    callbacks = tuple(target for target in targets if "python" in target and "callback" in target)
    behind = facts.compile_args["host_callbacks"]
    return Program(
        name=name,
        bytecode=internals.mlir.module_to_bytecode(refined_module(facts, module)),
        compile_options=compile_options(facts),
        platform=target.platform,
        target=target,
        device_ids=_device_ids(facts, target),
        mesh_shape=attributes.mesh_shape(module, facts.partitions),
        device_count=max(int(facts.backend.device_count()), facts.partitions),
        xla_flags=os.environ.get("XLA_FLAGS", ""),
        enable_x64=bool(internals.config.jax_enable_x64),
        inputs=_inputs(facts),
        custom_calls=tuple(target for target in targets if target in registered and target not in callbacks),
        callbacks=tuple(callback_name(callback, "a host callback") for callback in behind) or callbacks,
    )


def arranged(program: Program, arrangement: Arrangement) -> Program:
    """A program whose module takes and returns in another order, with what is told of each in that order too."""
    options = internals.client.CompileOptions.ParseFromString(program.compile_options)
    build, order = options.executable_build_options, arrangement
    for name, places in (("parameters", order.arguments), ("output", order.results)):
        field = f"allow_spmd_sharding_propagation_to_{name}"
        allowed = getattr(build, field)
        # one stands for all
        if len(allowed) == len(places):
            setattr(build, field, [allowed[position] for position in places])
    known = {one.position: one for one in program.inputs}
    inputs = tuple(
        dataclasses.replace(known[position], position=place)
        for place, position in enumerate(order.arguments)
        if position in known
    )
    return dataclasses.replace(program, compile_options=options.SerializeAsString(), inputs=inputs)


def _device_ids(facts: Facts, target: Target) -> tuple[int, ...]:
    if target.here and facts.devices:
        return tuple(device.id for device in facts.devices)
    here = int(facts.backend.device_count())
    # a CPU child makes as many devices as the program wants
    if target.here and target.platform != "cpu" and facts.partitions > here:
        raise CompileError(
            f"The program is written for {facts.partitions} devices; this machine has {here} of platform "
            f"{target.platform}."
        )
    return tuple(range(facts.partitions))


def _inputs(facts: Facts) -> tuple[Input, ...]:
    implicit = [("dimension", "int32")] * facts.dimensions + [("token", "token")] * facts.tokens
    ahead = [Input(i, kind, None, (), dtype, dtype, None, None) for i, (kind, dtype) in enumerate(implicit)]
    kinds: list[tuple[str, int | None]] = [
        *[("constant", None) for _ in facts.constants],
        *[("leaf", leaf) for leaf in facts.kept],
        *[("ref", None) for _ in facts.references],
    ]
    arrays = [
        _input(facts, len(ahead) + i, kind, leaf, aval, sharding)
        for i, ((kind, leaf), aval, sharding) in enumerate(zip(kinds, facts.in_avals, facts.in_shardings, strict=True))
    ]
    return (*ahead, *arrays)


def _input(facts: Facts, position: int, kind: str, leaf: int | None, aval: Any, sharding: Any) -> Input:
    if is_token(aval):
        return Input(position, "token", leaf, (), "token", "token", None, None)
    buffer = physical(aval)
    shape = tuple(int(size) for size in buffer.shape)
    return Input(
        position=position,
        kind=kind,
        leaf=leaf,
        shape=shape,
        dtype=str(buffer.dtype),
        logical_dtype=str(aval.dtype),
        shards=_shards(facts, tuple(aval.shape), shape, sharding),
        memory_kind=None if sharding is None else sharding.memory_kind,
    )


def _shards(facts: Facts, shape: tuple[int, ...], physical_shape: tuple[int, ...], sharding: Any) -> Shards | None:
    trailing = tuple((0, size) for size in physical_shape[len(shape) :])
    if facts.partitions == 1:
        return (tuple((0, size) for size in physical_shape),)
    if not facts.devices or sharding is None or not hasattr(sharding, "device_set"):
        return None
    indices = sharding.devices_indices_map(shape)
    return tuple(
        tuple(part.indices(size)[:2] for part, size in zip(indices[device], shape, strict=True)) + trailing
        for device in facts.devices
    )
