"""In the child: one program through the client's compiler, and what the compiled module says. Imports JAX."""

from __future__ import annotations

import re
import time
from typing import Any

import jax

# A public context with every dialect that JAX emits does not exist.
from jax._src.interpreters.mlir import make_ir_context
from jax.extend.backend import get_backend

# JAX's public compile takes only what it lowered itself; a module that was edited needs the client's types.
from jaxlib import _hlo as hlo_library  # pyright: ignore[reportAttributeAccessIssue]
from jaxlib import _jax as client_library  # pyright: ignore[reportAttributeAccessIssue]
from jaxlib.mlir import ir

from .program import Program
from .results import Compiled, Memory

_ALIAS_FIELD = re.compile(r"input_output_alias=\{ (.*?) \}(?:,|$)")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}, (?:may|must)-alias\)")


def prepare(platform: str) -> None:
    """Start what compiled code calls: without it a Cholesky jumps to a null pointer."""
    if platform == "cpu":
        # JAX initialises LAPACK while it lowers such a call, which this process never does.
        from jaxlib.cpu import _lapack  # pyright: ignore

        _lapack.initialize()


def compile_program(program: Program) -> tuple[Compiled, Any]:
    """XLA's answer to one program, and its `LoadedExecutable` (None where XLA refused)."""
    options = client_library.CompileOptions.ParseFromString(program.compile_options)
    devices = {device.id: device for device in jax.devices()}
    try:
        chosen = tuple(devices[number] for number in program.device_ids)
    except KeyError as error:
        return Compiled("refused", error=f"The program needs device {error}; this process has {sorted(devices)}."), None
    started = time.perf_counter()
    try:
        with make_ir_context():
            module = ir.Module.parse(program.bytecode)
            executable = get_backend().compile_and_load(
                module,
                executable_devices=client_library.DeviceList(chosen),
                compile_options=options,
                host_callbacks=[_stand_in] * len(program.callbacks),
            )
    except (jax.errors.JaxRuntimeError, ir.MLIRError) as error:
        return Compiled("refused", seconds=time.perf_counter() - started, error=_refusal(program, str(error))), None
    seconds = time.perf_counter() - started
    stats = executable.get_compiled_memory_stats()
    memory = Memory(
        argument=stats.argument_size_in_bytes,
        output=stats.output_size_in_bytes,
        alias=stats.alias_size_in_bytes,
        temp=stats.temp_size_in_bytes,
    )
    return Compiled("ok", memory, input_output_alias(executable), seconds), executable


def _stand_in(*_: Any) -> Any:
    raise RuntimeError("a host callback lives in the process that traced the function")


def _refusal(program: Program, message: str) -> str:
    """XLA's message for people; a custom call that is missing here is named."""
    missing = [name for name in program.custom_calls if re.search(rf"\b{re.escape(name)}\b", message)]
    if "NOT_FOUND" in message and missing:
        return (
            f"The program calls {missing[0]!r}, which only the process that traced it has registered: "
            "a fresh process cannot compile it."
        )
    return f"XLA refused the module: {message.strip()}"


def input_output_alias(executable: Any) -> dict[int, int]:
    """Argument position → result position, as the header of the compiled module says."""
    options = hlo_library.HloPrintOptions.short_parsable()
    options.print_large_constants = False
    header = executable.hlo_modules()[0].to_string(options).split("\n", 1)[0]
    field = _ALIAS_FIELD.search(header)
    if field is None:
        return {}
    return {int(argument): int(result or 0) for result, argument in _ALIAS.findall(field[1])}
