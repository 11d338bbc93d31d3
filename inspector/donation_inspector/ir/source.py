"""StableHLO or any MLIR that JAX knows, from text or bytecode; every failure is told with its line and what to do."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

import io
import re
from typing import Any, cast

from jaxlib.mlir import ir

from donation_inspector.errors import IRError
from donation_inspector.ir import context, printed

_LONGEST_LINE = 160
_NOISE = ("see current operation", "Available dialects")
_PLACE = re.compile(r'^loc\("[^"]*":(\d+):(\d+)')


def parse(data: bytes | str) -> ir.Module:
    """The module in a context of our own; jax is not imported, dialects that it doesn't know are kept as they are.

    `data` is MLIR text, MLIR bytecode or a portable StableHLO artifact, of this process's own making: what others
    made goes through `foreign.parse`, since jaxlib's parser ends the process on some of it.

    Raises:
      IRError: empty input, neither text nor bytecode, or text that does not parse or verify, with its line.
    """
    return read(readable(data))


def readable(data: bytes | str) -> bytes | str:
    """What jaxlib's MLIR is to read of it: bytecode as it is, text in jaxlib's words. Raises IRError."""
    raw = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    if not raw.strip():
        raise IRError("The input is empty. Give MLIR text or bytecode, such as jax.jit(f).lower(...).as_text() gives.")
    if raw.startswith(context.BYTECODE):
        return raw
    try:
        return printed.for_jaxlib(raw.decode())
    except UnicodeDecodeError as error:
        raise IRError(
            f"This is not MLIR text or bytecode: byte {error.start} is no UTF-8, and bytecode starts with 'MLïR'. Give "
            "MLIR text or bytecode, such as jax.jit(f).lower(...).as_text() gives."
        ) from None


def read(given: bytes | str) -> ir.Module:
    """The module in what `readable` gave. Raises IRError as `parse`."""
    made = context.make_context()
    if isinstance(given, bytes):
        return _read_bytecode(given, made)
    try:
        return context.read(given, made)
    except ir.MLIRError as error:
        raise IRError(_explain(error, given)) from None


def _read_bytecode(data: bytes, made: ir.Context) -> ir.Module:
    said: list[str] = []

    def keep(diagnostic: ir.Diagnostic) -> bool:
        said.append(diagnostic.message)
        return True

    # what reads portable artifacts would write to stderr otherwise
    handler: Any = made.attach_diagnostic_handler(keep)
    try:
        return context.read(data, made)
    except (ir.MLIRError, ValueError, RuntimeError) as error:
        raise IRError(
            f"This MLIR bytecode cannot be read: {'; '.join(said) or error}. It may be cut short, or newer than the "
            "installed jaxlib: give the text instead."
        ) from None
    finally:
        handler.detach()


def _explain(error: ir.MLIRError, text: str) -> str:
    first = cast(Any, error).error_diagnostics[0]
    # what follows a semicolon is a list of all dialects
    message = str(first.message).split(";")[0].strip()
    found = _PLACE.match(str(first.location))
    if found is None:
        return f"This is no valid MLIR: {message}."
    line, column = int(found.group(1)), int(found.group(2))
    lines = text.splitlines()
    written = lines[line - 1].strip() if line <= len(lines) else ""
    shown = written if len(written) <= _LONGEST_LINE else written[:_LONGEST_LINE] + "…"
    return (
        f"This is no valid MLIR: line {line}, column {column}: {message}{_notes(first.notes)}.\n  {shown}\n"
        f"{_advice(message, written, line, is_last=not any(map(str.strip, lines[line:])))}"
    )


def _notes(notes: list[Any]) -> str:
    told = [
        f"line {place.group(1)}: {note.message}"
        for note in notes
        if (place := _PLACE.match(str(note.location))) and not str(note.message).startswith(_NOISE)
    ]
    return f" ({'; '.join(told)})" if told else ""


def _advice(message: str, written: str, line: int, is_last: bool) -> str:
    if "!quant.uniform" in message + written:
        return (
            "!quant.uniform is a type of the dialect quant, which jaxlib does not register: convert such values to a "
            "plain integer or float type first."
        )
    unknown_dialect = re.search(r"Dialect `(\w+)' not found", message)
    if unknown_dialect is not None:
        return (
            f"jaxlib does not know the dialect {unknown_dialect.group(1)}. Print the module in generic form (mlir-opt "
            "--mlir-print-op-generic): its operations are then taken as opaque."
        )
    if is_last and line > 1:
        return "It is the last line: the text may be cut short."
    return "Correct that line, or give the text that jax.jit(f).lower(...).as_text() gives."


def bytecode(module: ir.Module) -> bytes:
    """The module as MLIR bytecode of this jaxlib, locations included; `parse` reads it back."""
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    return written.getvalue()
