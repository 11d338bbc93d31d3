"""In the child: one program through the client's compiler, and what the compiled module says. Imports JAX."""

from __future__ import annotations

import importlib
import os
import re
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from donation_inspector.errors import CompileError
from donation_inspector.xla import dump, internals, kept_executable, user_cache
from donation_inspector.xla.program import Program
from donation_inspector.xla.refusal import refused
from donation_inspector.xla.results import Compiled, Memory
from donation_inspector.xla.serving import undisturbed
from donation_inspector.xla.targets import PLATFORMS
from donation_inspector.xla.targets.layout import lay

# public, but partly untyped
jax: Any = importlib.import_module("jax")
_backends: Any = importlib.import_module("jax.extend.backend")

_ALIAS_FIELD = re.compile(r"input_output_alias=\{ (.*?) \}(?:,|$)")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}, (?:may|must)-alias\)")


def prepare(program: Program) -> None:
    """Start what compiled code calls: without it a Cholesky jumps to a null pointer."""
    if program.platform == "cpu":
        # JAX initialises LAPACK while it lowers such a call, which this process never does.
        importlib.import_module("jaxlib.lapack")._lapack.initialize()


def devices_of(program: Program) -> tuple[Any, ...]:
    """The devices of the program's assignment, in its order: this process's, or those of a topology without a runtime.

    Raises:
      CompileError: what PJRT says instead of making the topology.
    """
    target = program.target
    if target.topology:
        try:
            return lay(PLATFORMS[target.platform].devices(target), len(program.device_ids), program.mesh_shape)
        except (jax.errors.JaxRuntimeError, RuntimeError, OSError) as error:
            raise CompileError(f"{target.name} is not there: {str(error).strip()}") from None
    by_id = {device.id: device for device in jax.devices()}
    return tuple(by_id[number] for number in program.device_ids)


def parse(program: Program) -> Any:
    """The program's module, in the context current here, less the functions without a body that nothing calls.

    Raises CompileError for one that is called: XLA dies on all of them.
    """
    modules: Any = ir.Module
    module = modules.parse(program.bytecode)
    bodiless = [one for one in module.body.operations if _is_function(one) and not list(one.regions[0].blocks)]
    text = module.operation.get_asm(large_elements_limit=1) if bodiless else ""
    for function in bodiless:
        name = str(function.attributes["sym_name"]).strip('"')
        if len(re.findall(rf'@"?{re.escape(name)}(?![\w.$-])', text)) > 1:
            raise CompileError(f"@{name} is called and has no body: XLA compiles whole programs. Give it its body.")
        function.operation.erase()
    return module


def _is_function(operation: Any) -> bool:
    return operation.operation.name == "func.func"


def compile_program(
    program: Program, folder: str | None = None, cache: Mapping[str, Any] | None = None, *, read: bool = False
) -> tuple[Compiled, Any]:
    """XLA's answer to one program, and its executable: a `LoadedExecutable` where the device is here, None where XLA
    refused.

    `folder` must be empty, and is empty again afterwards; with it the answer has its `hlo`. `cache` and `read` as in
    `CompileJob`; None leaves JAX's settings as they are here.
    """
    options = _options(program)
    if folder is not None:
        dump.ask(options, folder)
    devices = devices_of(program)
    if not program.target.here:
        _assign(options, devices)
    given = {"executable_devices": internals.client.DeviceList(devices), "compile_options": options}
    executable: Any
    started = time.perf_counter()
    try:
        with internals.mlir.make_ir_context(), user_cache.opened(cache):
            module = parse(program)
            if program.target.topology:
                executable = devices[0].client.compile(module, **given)
            else:
                entry = user_cache.entry(module, program, devices, _options(program))
                executable = entry.read() if read and entry is not None else None
                if executable is not None:
                    return Compiled("ok", _memory(executable), _input_output_alias(executable), cached=True), executable
                started = time.perf_counter()
                executable = _backends.get_backend().compile_and_load(
                    module, host_callbacks=[_stand_in] * len(program.callbacks), **given
                )
                if entry is not None:
                    with nullcontext() if cache is None else undisturbed():
                        entry.write(executable, time.perf_counter() - started)
    except CompileError as error:
        return Compiled("refused", error=str(error)), None
    except (jax.errors.JaxRuntimeError, ir.MLIRError) as error:
        return refused(program, str(error), time.perf_counter() - started, dump.take(folder)), None
    seconds = time.perf_counter() - started
    alias = _input_output_alias(executable)
    return Compiled("ok", _memory(executable), alias, seconds, hlo=dump.take(folder)), executable


def keep(executable: Any, descriptor: int) -> None:
    """Write an executable for another process to load; nothing where its platform has no form for that."""
    try:
        data: bytes = executable.serialize()
    except (jax.errors.JaxRuntimeError, NotImplementedError):
        return
    kept_executable.write(descriptor, data)


def load(program: Program, descriptor: int) -> Any | None:
    """The executable that another process kept; None where this one cannot load it."""
    data = kept_executable.read(descriptor)
    devices = internals.client.DeviceList(devices_of(program))
    try:
        with _quietly():
            # The options are this process's: with those in the data XLA would write its HloProto once more.
            return _backends.get_backend().deserialize_executable(data, devices, _options(program))
    except (jax.errors.JaxRuntimeError, NotImplementedError, ValueError):
        return None


@contextmanager
def _quietly() -> Generator[None]:
    """XLA writes two lines of a CPU's features to the standard error whenever it loads what it compiled here itself."""
    with open(os.devnull, "wb") as nowhere:
        before = os.dup(2)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)


def _options(program: Program) -> Any:
    return internals.client.CompileOptions.ParseFromString(program.compile_options)


def _memory(executable: Any) -> Memory:
    stats: Any = executable.get_compiled_memory_stats()
    return Memory(
        argument=stats.argument_size_in_bytes,
        output=stats.output_size_in_bytes,
        alias=stats.alias_size_in_bytes,
        temp=stats.temp_size_in_bytes,
    )


def _stand_in(*_: Any) -> Any:
    raise RuntimeError("a host callback lives in the process that traced the function")


def _assign(options: Any, devices: tuple[Any, ...]) -> None:
    """Put other devices in the place of those that the options were made for, one for one."""
    replicas = options.device_assignment.replica_count()
    ids = np.asarray([device.id for device in devices], np.int32)
    options.device_assignment = internals.client.DeviceAssignment.create(ids.reshape(replicas, -1))


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
