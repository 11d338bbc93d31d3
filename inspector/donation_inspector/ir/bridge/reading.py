# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# jaxlib's stubs leave its generic classes open and its dialects out.

"""Reading attributes past a fault of jaxlib's bindings: they have no Python class for complex dense constants.

Returning one raises TypeError with the constant's text; `NamedAttribute.attr` even aborts the process.
"""

from __future__ import annotations

import re
from typing import Any, cast

from jaxlib.mlir import ir

from donation_inspector.errors import IRError
from donation_inspector.ir.bridge import constants

_PROPERTIES = re.compile(r'(?:[^"=]*= )?"(?:[^"\\]|\\.)*"\([^)]*\)(?:\[[^\]]*\])? <\{')
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')
_UNCAST = re.compile(r"Can't cast unknown element type \w+ \(Attribute\((.*)\)\)", re.DOTALL)


def attributes(operation: ir.Operation) -> list[tuple[str, ir.Attribute]]:
    """All attributes of an operation by name, inherent ones included."""
    try:
        return list(operation.attributes.items())
    except TypeError:
        return [(name, _attribute(operation, name)) for name in operation.attributes]


def properties(operation: ir.Operation) -> list[tuple[str, ir.Attribute]]:
    """The properties of an operation that is not registered, by name, which the bindings do not list: MLIR's text does.

    Raises IRError where they cannot be told apart from the rest of it.
    """
    alone: Any = operation.clone()  # printing in place would number all the values of the function
    text: str = alone.get_asm(print_generic_op_form=True, skip_regions=True, use_local_scope=True, assume_verified=True)
    begin = _PROPERTIES.match(text)
    if begin is None:
        return []
    depth = 0
    for token in _TOKENS.finditer(text, begin.end() - 1):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if not depth:
            return entries(cast(ir.DictAttr, ir.Attribute.parse(text[begin.end() - 1 : token.end()])))
    raise IRError(f"The properties of '{operation.name}' cannot be read from jaxlib: {text[:200]}")


def entries(dictionary: ir.DictAttr) -> list[tuple[str, ir.Attribute]]:
    """The entries of a dictionary, which is never asked for a `NamedAttribute.attr`."""
    names = [dictionary[index].name for index in range(len(dictionary))]
    return [(name, _entry(dictionary, name)) for name in names]


def elements(array: ir.ArrayAttr) -> list[ir.Attribute]:
    """The elements of an array."""
    try:
        return list(array)
    except TypeError:
        return [_element(array, index) for index in range(len(array))]


def _attribute(operation: ir.Operation, name: str) -> ir.Attribute:
    try:
        return operation.attributes[name]
    except TypeError as error:
        return _uncast(error)


def _entry(dictionary: ir.DictAttr, name: str) -> ir.Attribute:
    try:
        return dictionary[name]
    except TypeError as error:
        return _uncast(error)


def _element(array: ir.ArrayAttr, index: int) -> ir.Attribute:
    try:
        return array[index]
    except TypeError as error:
        return _uncast(error)


def _uncast(error: TypeError) -> ir.Attribute:
    """The constant that the error is about, in the current MLIR context."""
    found = _UNCAST.search(str(error))
    if found is None:
        raise error
    made = constants.complex_from_text(found.group(1))
    if made is None:
        raise IRError(f"This attribute cannot be read from jaxlib: {found.group(1)[:200]}") from error
    return made
