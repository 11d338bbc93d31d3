"""Programs compiled for a v5e that is not here, with what XLA says of them: all in one child, libtpu loads there alone.

Run as a script it is the child, and writes its answers to the file that it is given.
"""

from __future__ import annotations

import importlib
import os
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

from donation_inspector.xla import dump, executable, lowering
from donation_inspector.xla.hlo.buffers import Buffers, read_buffers
from donation_inspector.xla.results import Memory
from donation_inspector.xla.targets import resolve, tpu
from xla.hlo import compiled
from xla.targets.tpu.programs import sources

jaxlib: Any = importlib.import_module("jaxlib._jax")

# A TPU has no such instruction; JAX lowers a host callback and an exported function for the platform of their own.
NOT_ON_A_TPU = {"pooling_gradient", "callback", "26_pure_callback_host_step", "29_exported_call"}
# They take a TPU's compiler seconds, and show nothing that the others do not.
SLOW = {
    *("convolution", "decompositions", "fft", "sort_and_rank", "gradient_of_cholesky", "solve", "solve_in_loop"),
    *(
        "24_complex_fft",
        "31_unrolled_200_layers",
        "32_linalg_custom_calls",
        "33_bcoo_sparse",
        "36_equinox_static_fields",
    ),
    "41_replay_ring_buffer",
}

_SPACE = re.compile(r"^Memory Space: .*\(color=(\d+)\)\nTotal bytes: (\d+) ", re.M)

PROGRAMS = [
    *(f"{name} {variant}" for name in sources() for variant in ("jax", "none")),
    *(
        program
        for program in compiled.PROGRAMS
        if program.endswith(" jax") and program.removesuffix(" jax") not in NOT_ON_A_TPU | SLOW
    ),
]
"""A TPU's own programs with and without their donation, those of tests/xla/hlo with it."""


def stage(program: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """One of PROGRAMS as a jitted function with its arguments."""
    name, variant = program.split()
    source = sources().get(name)
    if source is None:
        return compiled.stage(program)
    return jax.jit(source.fn, donate_argnums=source.donate if variant == "jax" else ()), source.args, {}


@dataclass(frozen=True)
class Answer(compiled.Answer):
    """`spaces` is what XLA says that it has laid out in each memory space, in bytes by color."""

    spaces: dict[int, int]


def compile_for(target: Any, program: str) -> Answer:
    """In the child: what XLA makes of it, and what it writes down."""
    jitted, args, kwargs = stage(program)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        # donated buffers that are not usable
        warnings.simplefilter("ignore")
        # not by way of this machine's platform: a Pallas kernel is not for a CPU
        lowered = lowering.lower(jitted.trace(*args, **kwargs).lower(lowering_platforms=("tpu",)), (), {})
        packed = lowered.program(target=target)
        options = jaxlib.CompileOptions.ParseFromString(packed.compile_options)
        dump.ask(options, folder)
        options.executable_build_options.debug_options.xla_dump_hlo_as_text = True
        devices = executable.devices_of(packed)
        ids = executable.np.asarray([[device.id for device in devices]], executable.np.int32)
        options.device_assignment = jaxlib.DeviceAssignment.create(ids)
        with executable.internals.mlir.make_ir_context():
            made = devices[0].client.compile(
                executable.parse(packed), executable_devices=jaxlib.DeviceList(devices), compile_options=options
            )
        stats = made.get_compiled_memory_stats()
        memory = Memory(
            stats.argument_size_in_bytes,
            stats.output_size_in_bytes,
            stats.alias_size_in_bytes,
            stats.temp_size_in_bytes,
        )
        (module,) = made.hlo_modules()
        (report,) = Path(folder).glob("*after_optimizations-memory-usage-report.txt")
        spaces = {int(color): int(nbytes) for color, nbytes in _SPACE.findall(report.read_text())}
        read = compiled.read(folder, memory, module.to_string())
        return Answer(**vars(read), spaces=spaces)


def child(path: str) -> None:
    """Compile all PROGRAMS; what fails is there as its error's text."""
    target = resolve("tpu:v5e", platform="cpu", devices=8)
    answers: dict[str, Any] = {}
    for program in PROGRAMS:
        try:
            answers[program] = vars(compile_for(target, program))
        except Exception as error:
            answers[program] = f"{type(error).__name__}: {error}"
    Path(path).write_bytes(pickle.dumps(answers))


@cache
def answers() -> dict[str, Any]:
    """The child's, for all tests."""
    target = resolve("tpu:v5e", platform="cpu", devices=8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers"
        tests = Path(__file__).parents[3]
        environment = os.environ | tpu.environment(target) | {"PYTHONPATH": str(tests)}
        subprocess.run([sys.executable, "-m", "xla.targets.tpu.compiled", str(path)], check=True, env=environment)
        return pickle.loads(path.read_bytes())


def answer(program: str) -> Answer:
    """One of PROGRAMS as XLA compiled it."""
    found = answers()[program]
    assert not isinstance(found, str), found
    # as plain data, because the child's own module is called __main__
    return Answer(**found)


@cache
def buffers(program: str) -> Buffers:
    """Ours of one of PROGRAMS."""
    return read_buffers(answer(program).proto)


if __name__ == "__main__":
    child(sys.argv[1])
