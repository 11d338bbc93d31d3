"""From any of them to the others: line of Python, operation of the StableHLO, instruction of XLA's, argument.

XLA's side is that of the variant which is spoken of, and empty before anything is compiled.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from donation_inspector.common.user_code import place
from donation_inspector.common.visible import repr_of
from donation_inspector.errors import PathError
from donation_inspector.program.selection import is_below
from donation_inspector.questions.where.answer import Where

if TYPE_CHECKING:
    from donation_inspector.attribution.compiled_module import CompiledModule
    from donation_inspector.program.subject import Subject


_PLACE = re.compile(r"(?:(?P<file>.+):)?(?P<line>\d+)")


def find(subject: Subject, module: CompiledModule | None, asked: str | int) -> Where:
    """See `Inspection.where`."""
    places = subject.places
    links = None if module is None else places.links(module)
    paths = subject.argument_paths
    if not isinstance(cast(object, asked), str | int):
        raise PathError(f"where() needs a path, a line, a value or an instruction as text, got {repr_of(asked)}.")
    text = str(asked).strip()
    arguments: Iterable[int] = ()
    operations: Iterable[int] = ()
    instructions: Iterable[str] = ()
    positions = [position for position, path in paths.items() if is_below(path, text)] if text else []
    match = _PLACE.fullmatch(text)
    if positions:
        arguments = positions
        operations = sorted({index for position in positions for index in places.readers_of(position)})
        read = [name for position in positions for name in (links.hlo_of_argument(position) if links else ())]
        instructions = dict.fromkeys(read)
    elif match is not None:
        file, line = match["file"], int(match["line"])
        operations = places.on_line(file, line)
        instructions = links.hlo_of_line(line, None if file == "cell" else file) if links else ()
        arguments = [position for index in operations for position in places.arguments_of(index)]
    elif (index := places.of_value(text if text.startswith("%") else f"%{text}")) is not None:
        operations = [index]
        instructions = links.hlo_of_op(index) if links else ()
        arguments = places.arguments_of(index)
    elif links is not None and module is not None and text in module.buffers.schedule:
        operations, instructions = links.ops_of_hlo(text), [text]
        own = [position for position, buffer in module.roles.flow.arguments.items() if buffer.instruction == text]
        arguments = own or links.arguments_of_hlo(text)
    if not (arguments or operations or instructions):
        raise PathError(_unknown(subject, module, text))
    names = tuple(instructions)
    made = set(names)
    lines = [place(*one) for name in names for one in (links.lines_of_hlo(name) if links else ())]
    return Where(
        asked=text,
        arguments=tuple(dict.fromkeys(paths[position] for position in arguments if position in paths)),
        places=tuple(dict.fromkeys(filter(None, [*map(places.place, operations), *lines]))),
        operations=tuple(map(places.described, operations)),
        instructions=names,
        buffers=tuple(one for one in module.buffers.live_ranges if one.instruction in made) if module else (),
    )


def _unknown(subject: Subject, module: CompiledModule | None, text: str) -> str:
    """What there is instead, the near names first."""
    known = [*subject.argument_paths.values(), *subject.ranges.names, *(module.buffers.schedule if module else ())]
    near = difflib.get_close_matches(text, list(dict.fromkeys(known)), 3, cutoff=0.6)
    hint = f" Near it: {', '.join(near)}." if near else ""
    compiled = "" if module else " XLA's instructions are known after compare()."
    return (
        f"{text!r} is no argument, no line that makes an operation, no value of the program and no instruction."
        f"{hint}{compiled} Write a line as 'train.py:41', a value as '%12', an argument by its path."
    )
