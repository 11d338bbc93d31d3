"""The programs of tests/xla/hlo, compiled for an H100 that is not here, with what XLA says of them."""

from __future__ import annotations

import importlib
import os
import tempfile
import warnings
from functools import cache
from typing import Any

from donation_inspector.xla import dump, executable, lowering
from donation_inspector.xla.hlo.buffers import Buffers, read_buffers
from donation_inspector.xla.targets import cuda, resolve
from xla.hlo import compiled

jaxlib: Any = importlib.import_module("jaxlib._jax")

# JAX lowers a host callback and an exported function for the platform they were made for, no other.
HERE_ALONE = {"callback", "26_pure_callback_host_step", "29_exported_call"}

PROGRAMS = [
    program
    for program in compiled.PROGRAMS
    if program.endswith(" jax") and program.removesuffix(" jax") not in HERE_ALONE
]
"""Every program with its donation."""


@cache
def answer(program: str) -> compiled.Answer:
    """One of PROGRAMS, compiled once for all tests, in this process and with what its child would have had."""
    target = resolve("cuda:h100", platform="cpu", devices=8)
    os.environ |= cuda.environment(target)
    jitted, args, kwargs = compiled.stage(program)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # donated buffers that are not usable
        warnings.simplefilter("ignore")
        lowered = lowering.lower(jitted, args, kwargs).for_platform("cuda")
        packed = lowered.program(target=target)
        options = jaxlib.CompileOptions.ParseFromString(packed.compile_options)
        dump.ask(options, folder)
        options.executable_build_options.debug_options.xla_dump_hlo_as_text = True
        devices = executable.devices_of(packed)
        with executable.internals.mlir.make_ir_context():
            made = devices[0].client.compile(
                executable.parse(packed), executable_devices=jaxlib.DeviceList(devices), compile_options=options
            )
        (module,) = made.hlo_modules()
        return compiled.read(folder, made.get_compiled_memory_stats(), module.to_string())


@cache
def buffers(program: str) -> Buffers:
    """Ours of one of PROGRAMS."""
    return read_buffers(answer(program).proto)
