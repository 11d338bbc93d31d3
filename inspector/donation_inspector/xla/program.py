"""What a child process needs to compile and run one program exactly as this process would: plain, picklable data.

Nothing here imports JAX, so a child can unpickle a `Program` before it decides how to start JAX.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from donation_inspector.xla.targets.target import Target

Shards = tuple[tuple[tuple[int, int], ...], ...]
"""For each device of `Program.device_ids`, the (start, stop) of its part in each dimension of the whole array."""


@dataclass(frozen=True, slots=True)
class Input:
    """One argument of the entry function, in the form the runtime takes it.

    `shape` and `dtype` are those of the buffer, global (all devices together): a typed PRNG key `key<fry>[4]` is
    uint32[4, 2] here and keeps its own name in `logical_dtype`.
    `leaf` is the index of the user's flat array, None where no user array stands behind it (`kind` says what does).
    `shards` is None where the lowering leaves the sharding to XLA.
    """

    position: int
    kind: str
    """One of "leaf", "token", "constant", "ref", "dimension"."""
    leaf: int | None
    shape: tuple[int, ...]
    dtype: str
    logical_dtype: str
    shards: Shards | None
    memory_kind: str | None


@dataclass(frozen=True, slots=True)
class Program:
    """A module with the compile options that `jax.stages.Lowered.compile` would use for it.

    `bytecode` is StableHLO as MLIR bytecode of this jaxlib, its shapes already refined; `compile_options` is a
    serialized `xla.CompileOptionsProto` (device assignment and the user's compiler options included).
    `custom_calls` are the custom-call targets in the module that are registered in this process: a child that does
    not register the same names cannot compile it. `callbacks` are the host callbacks in the module: each points into
    this process, no child can call it.
    """

    name: str
    bytecode: bytes
    compile_options: bytes
    platform: str
    """The PJRT client's platform, "cpu", "cuda", "rocm" or "tpu"."""
    target: Target
    device_ids: tuple[int, ...]
    """The devices of the assignment, in its order; for a target that is not here 0, 1, … in the order of the mesh."""
    mesh_shape: tuple[int, ...]
    """The axis sizes of the mesh that the program is written for, () where there is none."""
    device_count: int
    """Devices of that platform in this process; a CPU child must make as many before it starts its client."""
    xla_flags: str
    """The environment's XLA_FLAGS."""
    enable_x64: bool
    inputs: tuple[Input, ...]
    """All arguments of the entry function, by position."""
    custom_calls: tuple[str, ...]
    callbacks: tuple[str, ...]


def fingerprint(program: Program) -> str:
    """The same for programs that XLA makes the same of: by content, whatever made them and however they are called."""
    target = program.target
    parts = (
        (program.platform, target.platform, target.here, target.topology, target.config, target.devices),
        (program.device_ids, program.mesh_shape, program.device_count, program.xla_flags, program.enable_x64),
        (program.custom_calls, program.callbacks),
    )
    digest = hashlib.sha256(repr(parts).encode())
    for data in (program.compile_options, program.bytecode):
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()
