"""What the other files need of a jaxlib module: the entry function, a clone."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

from typing import Any, cast

from jaxlib.mlir import ir

from donation_inspector.common.signature import ENTRY
from donation_inspector.errors import IRError
from donation_inspector.ir.bridge import reading
from donation_inspector.ir.entry import choose_entry


def clone(module: ir.Module) -> ir.Module:
    """A module in the same context, which may be changed."""
    with module.context:
        made = ir.Module.create(module.operation.location)
        for name, value in reading.attributes(module.operation):
            made.operation.attributes[name] = value
        end = ir.InsertionPoint(made.body)
        for operation in module.body.operations:
            operation.operation.clone(end)
    return made


def entry_operation(module: ir.Module) -> ir.Operation:
    """The rule of `entry.entry_function`; IRError when there is none."""
    functions = [operation.operation for operation in module.body.operations]
    functions = [operation for operation in functions if operation.name == "func.func"]
    chosen = choose_entry(
        [
            (_string(function, "sym_name"), _string(function, "sym_visibility") or "public", bool(_blocks(function)))
            for function in functions
        ],
        _string(module.operation, ENTRY) or None,
    )
    return functions[chosen]


def choose(module: ir.Module, entry: str) -> None:
    """Makes the function of this name the entry function for all who ask. Raises IRError where there is none."""
    with module.context:
        cast(Any, module.operation.attributes)[ENTRY] = ir.StringAttr.get(entry)
    entry_operation(module)


def entry_block(function: ir.Operation) -> ir.Block:
    """The only block of a function; IRError where there are several, which no pass of donation changes."""
    blocks = _blocks(function)
    if len(blocks) != 1:
        raise IRError(
            f"@{_string(function, 'sym_name')} has {len(blocks)} blocks. Materializations can be shown only where one "
            "block ends in the one return."
        )
    return blocks[0]


def first_message(error: ir.MLIRError) -> str:
    """What MLIR says first, in one line, without the operation that it prints with it."""
    told = cast(Any, error).error_diagnostics
    return str(told[0].message if told else error).split("\n", 1)[0]


def _blocks(function: ir.Operation) -> list[ir.Block]:
    return list(function.regions[0].blocks)


def _string(operation: ir.Operation, name: str) -> str:
    return cast(Any, operation.attributes[name]).value if name in operation.attributes else ""
