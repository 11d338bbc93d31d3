"""In a child process: read a module in every way in which the parent will, so that what ends a process ends this one.

The parent (`foreign`) reads it again and tells what is wrong with it: here only dying counts, and a name that jaxlib
cannot give to Python. Imports jaxlib's MLIR alone.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir

from donation_inspector.ir.context import BYTECODE, make_context, read

UNREADABLE = 3
"""The exit code for a name that is no UTF-8."""
_STACK = 2 << 20
"""A quarter of what a thread usually has: what gets by here does so in the parent too, however deep that one is."""
_CONVERSION = "conversion error"
_LONGEST = 200


def main(*, aloud: bool) -> None:
    """Read the module on standard input; with `aloud`, say what is read next, since it may be the last thing."""
    data = sys.stdin.buffer.read()
    given = data if data.startswith(BYTECODE) else data.decode()
    codes: list[int] = []
    threading.stack_size(_STACK)
    thread = threading.Thread(target=lambda: codes.append(_try(given, _say if aloud else _silent)))
    thread.start()
    thread.join()
    # nothing is left to be destroyed in another order, or on a stack that is deeper
    os._exit(codes[0] if codes else 0)


def _handled(_: ir.Diagnostic) -> bool:
    return True


def _silent(what: object) -> None:
    pass


def _say(what: object) -> None:
    os.write(1, f"{str(what)[:_LONGEST]}\n".encode(errors="backslashreplace"))


def _try(given: bytes | str, say: Callable[[object], None]) -> int:
    context = make_context()
    context.attach_diagnostic_handler(_handled)
    try:
        module = read(given, context)
        with context, ir.Location.unknown():
            _Walk(say).operation(module.operation)
            for form in ({}, {"print_generic_op_form": True}, {"enable_debug_info": True}):
                module.operation.get_asm(large_elements_limit=16, **form)
            module.operation.write_bytecode(io.BytesIO())
    except RuntimeError as error:
        return UNREADABLE if _CONVERSION in str(error) else 0
    except Exception:
        return 0
    return 0


class _Walk:
    """Asks for what `importer` and `native` ask for."""

    def __init__(self, say: Callable[[object], None]) -> None:
        self._say = say
        self._known: set[object] = set()

    def operation(self, operation: Any) -> None:
        # a stack of our own: what is nested deeply is the importer's to refuse
        left = [operation]
        while left:
            one = left.pop()
            self._say("the name of an operation")
            _ = one.name
            self._say(f"a name at {one.location}")
            for name in one.attributes:
                self._attribute(one, name)
            self._location(one.location)
            for result in one.results:
                self._type(result.type)
            for region in one.regions:
                for block in region.blocks:
                    for argument in block.arguments:
                        self._type(argument.type)
                        self._location(argument.location)
                    left += [inner.operation for inner in block.operations]

    def _attribute(self, owner: Any, name: Any) -> None:
        try:
            value = owner[name] if isinstance(owner, ir.DictAttr | ir.ArrayAttr) else owner.attributes[name]
        except TypeError:
            # the bindings have no class for complex constants
            return
        if value in self._known:
            return
        self._known.add(value)
        self._say(value)
        if isinstance(value, ir.ArrayAttr):
            for index in range(len(value)):
                self._attribute(value, index)
        elif isinstance(value, ir.DictAttr):
            for index in range(len(value)):
                self._attribute(value, value[index].name)
        elif isinstance(value, ir.FlatSymbolRefAttr) or (
            isinstance(value, ir.StringAttr) and name in ("sym_name", "sym_visibility")
        ):
            _ = value.value
        elif isinstance(value, ir.TypeAttr):
            self._type(value.value)
        str(value)

    def _type(self, type_: Any) -> None:
        if type_ not in self._known:
            self._known.add(type_)
            self._say(type_)
            str(type_)

    def _location(self, location: Any) -> None:
        left = [location]
        while left:
            one = left.pop()
            key = one.attr
            if key in self._known:
                continue
            self._known.add(key)
            self._say(one)
            if _is(one, "file"):
                _ = one.filename
            elif _is(one, "name"):
                _ = one.name_str
                left.append(one.child_loc)
            elif _is(one, "callsite"):
                left += [one.callee, one.caller]
            elif _is(one, "fused"):
                left += one.locations


_CLASSES: dict[str, Any] = {
    kind: getattr(ir, name, None)
    for kind, name in {
        "file": "FileLineColLoc",
        "name": "NameLoc",
        "callsite": "CallSiteLoc",
        "fused": "FusedLoc",
    }.items()
}


def _is(location: Any, kind: str) -> bool:
    told: Any = getattr(location, f"is_a_{kind}", None)
    return isinstance(location, _CLASSES[kind]) if told is None else bool(told())
