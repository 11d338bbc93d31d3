"""Pretty StableHLO with the line of each operation, and what donation and the pass change, without printing all."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from jaxlib.mlir import ir
from numpy.typing import NDArray

from donation_inspector.common.signature import Donation
from donation_inspector.ir import native
from donation_inspector.ir.bridge import reading
from donation_inspector.ir.difference import Change, difference
from donation_inspector.ir.exporter import MATERIALIZE, Materializations, donation_attributes

__all__ = ["Change", "Text", "diff", "donated", "materialized", "pretty"]

LARGEST_SHOWN = 16
"""Dense constants of more elements are elided."""

_TAG = re.compile(r'loc\("(entry|other|op)(\d+)"\)$')
_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|%(\d+)')
_NUMBERED_RESULT = re.compile(r"\s*%(\d+)(?::\d+)? = ")
_OPERANDS = re.compile(r"%[\w$.-]+(?:#\d+)?(?:, %[\w$.-]+(?:#\d+)?)*(?= : )")


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """The pretty text of a module.

    `line_of_op` (int32) gives the index in `lines` of each operation of the entry function's own blocks, in order;
    `line_of_entry` is that of the function's signature.
    """

    lines: tuple[str, ...]
    line_of_op: NDArray[np.int32]
    line_of_entry: int
    made_from: Text | None = field(default=None, repr=False)
    """The text that this one was derived from, by `changes`."""
    changes: tuple[Change, ...] = field(default=(), repr=False)


def pretty(module: ir.Module) -> Text:
    """The module's pretty text, constants of more than `LARGEST_SHOWN` elements elided.

    Raises:
      IRError: there is no entry function.
    """
    operation = cast(Any, module.operation)
    lines: list[str] = operation.get_asm(large_elements_limit=LARGEST_SHOWN, assume_verified=True).splitlines()
    line_of_entry, line_of_op = _read_off(module, lines) or _places(module, lines)
    return Text(tuple(lines), np.array(line_of_op, np.int32), line_of_entry)


def donated(text: Text, module: ir.Module, donation: Donation) -> Text:
    """`pretty(with_donation(module, donation))`, from the text of `module` under whatever donation.

    Raises:
      IRError: a position that the entry function doesn't have.
    """
    lines = list(text.lines)
    lines[text.line_of_entry] = _signature(module, donation)
    return Text(
        tuple(lines),
        text.line_of_op,
        text.line_of_entry,
        text,
        _changes_of_lines(text.lines, lines, text.line_of_entry),
    )


def materialized(text: Text, module: ir.Module, donation: Donation, materializations: Materializations) -> Text:
    """`pretty(with_materializations(module, donation, materializations))`, from the text of `module`.

    `text` may be that under another donation. New values shift the numbers of those in nested regions.

    Raises:
      IRError: a position that the entry function doesn't have, or a function of several blocks.
    """
    if not materializations.ops:
        return donated(text, module, donation)
    native.entry_block(native.entry_operation(module))
    lines = list(text.lines)
    lines[text.line_of_entry] = _signature(module, donation)
    end = int(text.line_of_op[-1])
    first = _next_number(text)
    made, returned = _materializations(module, text, materializations, first)
    lines[end] = returned
    _shift_nested(lines, text, first, len(made))
    lines[end:end] = made
    line_of_op = np.concatenate(
        [text.line_of_op[:-1], np.arange(end, end + len(made) + 1, dtype=np.int32)], dtype=np.int32
    )
    changes = (
        *_changes_of_lines(text.lines, lines, text.line_of_entry),
        *(Change("added", None, end + index, None, line) for index, line in enumerate(made)),
    )
    if returned != text.lines[end]:
        changes += (Change("changed", end, end + len(made), text.lines[end], returned),)
    return Text(tuple(lines), line_of_op, text.line_of_entry, text, changes)


def diff(before: Text, after: Text) -> tuple[Change, ...]:
    """What to do to `before` to get `after`, by operation, in order; the numbering of values is no difference."""
    return after.changes if after.made_from is before else difference(before.lines, after.lines)


def _read_off(module: ir.Module, lines: Sequence[str]) -> tuple[int, list[int]] | None:
    """Lines of the entry function and of its operations, by how far they are indented.

    The first line of an operation always is as far as it is nested. Where as many lines are as there are operations,
    those are the first ones; None where there are more, as of a syntax that goes on there.
    """
    operations = [operation.operation for operation in module.body.operations]
    function = native.entry_operation(module)
    number, blocks = operations.index(function), function.regions[0].blocks
    starts = _indented(lines, range(len(lines)), 2)
    if len(starts) != len(operations) or len(blocks) != 1:
        return None
    entry, end = [*starts, len(lines)][number : number + 2]
    body = _indented(lines, range(entry + 1, end), 4)
    return (entry, body) if len(body) == len(blocks[0].operations) else None


def _indented(lines: Sequence[str], among: range, width: int) -> list[int]:
    """The lines that begin after exactly `width` spaces, but for what no operation begins with: the end of a region
    and the label of a block."""
    begins = re.compile(rf" {{{width}}}(?!cond {{$)[^ }}^]").match
    return [line for line in among if begins(lines[line])]


def _places(module: ir.Module, lines: Sequence[str]) -> tuple[int, list[int]]:
    """Lines of the entry function and of its operations, in the text of a clone that tells the number of each.

    Any operation's own syntax will do: the number stands where its text ends. What is folded into a line, as the body
    in `reduce … applies`, belongs to that line.
    """
    clone = native.clone(module)
    function = native.entry_operation(clone)
    with clone.context:
        blocks = _number(clone, function)
        printed: str = cast(Any, clone.operation).get_asm(
            large_elements_limit=LARGEST_SHOWN, assume_verified=True, enable_debug_info=True, use_local_scope=True
        )
    line_of_entry, after_operation, ends = 0, 1, list[int]()
    for index, line in enumerate(printed.splitlines()):
        found = _TAG.search(line) if line.endswith('")') else None
        if found is None:
            continue
        if found.group(1) == "op":
            ends.append(index)
        else:
            if found.group(1) == "entry":
                line_of_entry = after_operation
            after_operation = index + 1
    starts: list[int] = []
    start = line_of_entry + 1
    for position, size in enumerate(blocks):
        # every block but the first has a line of its own, with its label
        start += position > 0
        for _ in range(size):
            starts.append(start)
            start = ends[len(starts) - 1] + 1
    # aliases of attributes stand before the module; this print, of one scope, has none
    offset = next(index for index, line in enumerate(lines) if not line.startswith(("#", "!")))
    return line_of_entry + offset, [line + offset for line in starts]


def _number(module: ir.Module, function: ir.Operation) -> list[int]:
    """Gives the module's own operations and the function's numbers for locations; the operations of each block."""
    unknown = ir.Location.unknown()

    def forget(operation: Any) -> ir.WalkResult:
        operation.location = unknown
        return ir.WalkResult.ADVANCE

    module.operation.walk(forget)
    for index, operation in enumerate(module.body.operations):
        kind = "entry" if operation.operation == function else "other"
        cast(Any, operation.operation).location = ir.Location.name(f"{kind}{index}")
    sizes: list[int] = []
    for block in function.regions[0].blocks:
        sizes.append(len(block.operations))
        for index, operation in enumerate(block.operations):
            cast(Any, operation.operation).location = ir.Location.name(f"op{index}")
    return sizes


def _signature(module: ir.Module, donation: Donation) -> str:
    """The line of the entry function's signature, printed without its body."""
    entry = native.entry_operation(module)
    with module.context, ir.Location.unknown() as unknown:
        attributes = dict(reading.attributes(entry))
        attributes["arg_attrs"] = donation_attributes(entry, donation)
        alone = ir.Operation.create("func.func", attributes=attributes, regions=1)
        types: Any = cast(Any, attributes["function_type"]).value.inputs
        alone.regions[0].blocks.append(*types, arg_locs=[unknown] * len(types))
        printed: str = cast(Any, alone).get_asm(
            large_elements_limit=LARGEST_SHOWN, assume_verified=True, skip_regions=True
        )
    return "  " + printed.splitlines()[-1].removesuffix("{...}") + "{"


def _materializations(
    module: ir.Module, text: Text, materializations: Materializations, first: int
) -> tuple[list[str], str]:
    """The lines of the materializations, numbered from `first`, and that of the return."""
    line = text.lines[int(text.line_of_op[-1])]
    found = _OPERANDS.search(line)
    values = found.group().split(", ") if found else []
    signature: Any = cast(Any, native.entry_operation(module).attributes["function_type"]).value
    inputs, results = [str(type) for type in signature.inputs], [str(type) for type in signature.results]
    made = [
        f'    %{first + index} = "{MATERIALIZE}"({values[value]}, %arg{destination}) : '
        f"({results[value]}, {inputs[destination]}) -> {results[value]}"
        for index, (value, destination) in enumerate(materializations.ops)
    ]
    named = ", ".join(
        value if index is None else f"%{first + index}"
        for value, index in zip(values, materializations.returned, strict=True)
    )
    return made, line[: found.start()] + named + line[found.end() :] if found else line


def _next_number(text: Text) -> int:
    """The number that the next value of the entry function's own block would get."""
    for line in reversed(text.line_of_op.tolist()):
        found = _NUMBERED_RESULT.match(text.lines[line])
        if found is not None:
            return int(found.group(1)) + 1
    return 0


def _shift_nested(lines: list[str], text: Text, first: int, count: int) -> None:
    """Values in nested regions are numbered after all of the block around them."""

    def shift(found: re.Match[str]) -> str:
        number = found.group(1)
        return f"%{int(number) + count}" if number is not None and int(number) >= first else found.group()

    starts = text.line_of_op
    for index in np.flatnonzero(np.diff(starts) > 1).tolist():
        for line in range(int(starts[index]), int(starts[index + 1])):
            lines[line] = _NUMBER.sub(shift, lines[line])


def _changes_of_lines(before: tuple[str, ...], after: list[str], line: int) -> tuple[Change, ...]:
    if before[line] == after[line]:
        return ()
    return (Change("changed", line, line, before[line], after[line]),)
