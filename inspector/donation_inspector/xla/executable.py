"""In the child: one program through the client's compiler, and what the compiled module says. Imports JAX."""

from __future__ import annotations

import importlib
import re
import time
from typing import Any

from jaxlib.mlir import ir

from donation_inspector.xla import dump, internals
from donation_inspector.xla.program import Program
from donation_inspector.xla.results import Compiled, Memory

# public, but partly untyped
jax: Any = importlib.import_module("jax")
_backends: Any = importlib.import_module("jax.extend.backend")

# JAX's public compile takes only what it lowered itself; an edited module needs the client's own types.
_client: Any = importlib.import_module("jaxlib._jax")

_ALIAS_FIELD = re.compile(r"input_output_alias=\{ (.*?) \}(?:,|$)")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}, (?:may|must)-alias\)")


def prepare(platform: str) -> None:
    """Start what compiled code calls: without it a Cholesky jumps to a null pointer."""
    if platform == "cpu":
        # JAX initialises LAPACK while it lowers such a call, which this process never does.
        importlib.import_module("jaxlib.lapack")._lapack.initialize()


def devices_of(program: Program) -> tuple[Any, ...]:
    """This process's devices of the program's assignment, in its order."""
    by_id = {device.id: device for device in jax.devices()}
    return tuple(by_id[number] for number in program.device_ids)


def parse(program: Program) -> Any:
    """The program's module, in the context current here."""
    module: Any = ir.Module
    return module.parse(program.bytecode)


def compile_program(program: Program, folder: str | None = None) -> tuple[Compiled, Any]:
    """XLA's answer to one program, and its `LoadedExecutable` (None where XLA refused).

    `folder` must be empty, and is empty again afterwards; with it the answer has its `hlo`.
    """
    options = _client.CompileOptions.ParseFromString(program.compile_options)
    if folder is not None:
        dump.ask(options, folder)
    devices = _client.DeviceList(devices_of(program))
    executable: Any
    started = time.perf_counter()
    try:
        with internals.mlir.make_ir_context():
            executable = _backends.get_backend().compile_and_load(
                parse(program),
                executable_devices=devices,
                compile_options=options,
                host_callbacks=[_stand_in] * len(program.callbacks),
            )
    except (jax.errors.JaxRuntimeError, ir.MLIRError) as error:
        seconds, message = time.perf_counter() - started, _refusal(program, str(error))
        return Compiled("refused", seconds=seconds, error=message, hlo=dump.take(folder)), None
    seconds = time.perf_counter() - started
    stats: Any = executable.get_compiled_memory_stats()
    memory = Memory(
        argument=stats.argument_size_in_bytes,
        output=stats.output_size_in_bytes,
        alias=stats.alias_size_in_bytes,
        temp=stats.temp_size_in_bytes,
    )
    return Compiled("ok", memory, _input_output_alias(executable), seconds, hlo=dump.take(folder)), executable


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


def _input_output_alias(executable: Any) -> dict[int, int]:
    """Argument position → result position, as the header of the compiled module says."""
    module = executable.hlo_modules()[0]
    # the options' home differs between versions of jaxlib; it is the module's own
    options = importlib.import_module(type(module).__module__).HloPrintOptions.short_parsable()
    options.print_large_constants = False
    header = module.to_string(options).split("\n", 1)[0]
    field = _ALIAS_FIELD.search(header)
    if field is None:
        return {}
    return {int(argument): int(result or 0) for result, argument in _ALIAS.findall(field[1])}
