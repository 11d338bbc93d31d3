"""Types and attributes between jaxlib's MLIR and xDSL.

Containers are walked, so that their elements share the caches; what is left goes through MLIR's text, and is kept
verbatim where xDSL does not read that text or reads something else.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

import itertools
import re
from typing import Any, TypeGuard, cast

from jaxlib.mlir import ir
from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    TupleType,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import Parser

from donation_inspector.errors import IRError
from donation_inspector.ir.bridge import constants, reading
from donation_inspector.ir.dialect import VerbatimAttr, VerbatimType, to_text

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_DENSE = (ir.DenseElementsAttr, ir.DenseIntElementsAttr, ir.DenseFPElementsAttr)
_RESOURCE = re.compile(r"dense_resource<([\w.$-]+)> : (.*)", re.DOTALL)
_CONSTANT = "jaxlib_constant_{}"


class Depth:
    """How deep the walk is in what is nested; more levels than xDSL's own recursion takes are refused."""

    DEEPEST = 100

    def __init__(self, what: str) -> None:
        self._what, self._levels = what, 0

    def __enter__(self) -> None:
        self._levels += 1
        if self._levels > self.DEEPEST:
            raise IRError(
                f"This module has {self._what} nested more than {self.DEEPEST} times: deeper than xDSL reads."
            )

    def __exit__(self, *_: object) -> None:
        self._levels -= 1


class AttributesToXdsl:
    """Types and attributes of one jaxlib module as xDSL's. The module's MLIR context must be the current one.

    `constants` holds the large dense constants by the handle that stands for them in the xDSL module.
    """

    def __init__(self, context: Context) -> None:
        self.types: dict[ir.Type, Attribute] = {}
        self.attributes: dict[ir.Attribute, Attribute] = {}
        self.constants: dict[str, ir.Attribute] = {}
        self.depth = Depth("types or attributes")
        self._context = context

    def type(self, type: ir.Type) -> Attribute:
        known = self.types.get(type)
        if known is None:
            with self.depth:
                known = self.types[type] = self._type(type)
        return known

    def attribute(self, attribute: ir.Attribute) -> Attribute:
        known = self.attributes.get(attribute)
        if known is None:
            with self.depth:
                known = self.attributes[attribute] = self._attribute(attribute)
        return known

    def _type(self, type: ir.Type) -> Attribute:
        if isinstance(type, ir.RankedTensorType) and type.encoding is None:
            shape = [DYNAMIC_INDEX if extent == _DYNAMIC else extent for extent in type.shape]
            element = self.type(type.element_type)
            if not isinstance(element, VerbatimType):
                return TensorType(element, shape)
        elif isinstance(type, ir.FunctionType):
            inputs, results = map(self.type, type.inputs), map(self.type, type.results)
            return FunctionType.from_lists(list(inputs), list(results))
        elif isinstance(type, ir.TupleType):
            parts = [cast(TypeAttribute, self.type(type.get_type(index))) for index in range(type.num_types)]
            return TupleType(ArrayAttr(parts))
        return self._read(str(type), is_type=True)

    def _attribute(self, attribute: ir.Attribute) -> Attribute:
        if isinstance(attribute, _DENSE):
            return self._dense(attribute)
        if isinstance(attribute, ir.ArrayAttr):
            return ArrayAttr([self.attribute(part) for part in reading.elements(attribute)])
        if isinstance(attribute, ir.DictAttr):
            return DictionaryAttr({name: self.attribute(value) for name, value in reading.entries(attribute)})
        if isinstance(attribute, ir.TypeAttr):
            return self.type(attribute.value)
        if isinstance(attribute, ir.FlatSymbolRefAttr):
            return SymbolRefAttr(attribute.value)
        if isinstance(attribute, ir.DenseI64ArrayAttr):
            return DenseArrayBase.from_list(i64, list(attribute))
        if isinstance(attribute, ir.StringAttr):
            try:
                return StringAttr(attribute.value_bytes.decode())
            except UnicodeDecodeError:
                return self._read(str(attribute), is_type=False)
        if isinstance(attribute, ir.IntegerAttr):
            type = self.type(attribute.type)
            if _is_plain_integer(type):
                return IntegerAttr(attribute.value, type)
        text = str(attribute)
        resource = _RESOURCE.fullmatch(text)
        # MLIR would give the blob another name when it reads this text again: the attribute itself is kept
        if resource is not None and self.constants.setdefault(resource.group(1), attribute) == attribute:
            type: Any = self.type(ir.Type.parse(resource.group(2)))
            return DenseResourceAttr(StringAttr(resource.group(1)), type)
        return self._read(text, is_type=False)

    def _dense(self, constant: Any) -> Attribute:
        if isinstance(constant.type, ir.VectorType) and len(constant) <= constants.LARGEST_INLINE:
            return self._read(str(constant), is_type=False)
        type = self.type(constant.type)
        if len(constant) <= constants.LARGEST_INLINE:
            made = constants.to_xdsl(constant, type)
            if made is not None:
                return made
        return self._aside(constant, type)

    def _aside(self, constant: ir.Attribute, type: Any) -> Attribute:
        handle = next(
            name
            for count in itertools.count(len(self.constants))
            if (name := _CONSTANT.format(count)) not in self.constants
        )
        self.constants[handle] = constant
        return DenseResourceAttr(StringAttr(handle), type)

    def _read(self, text: str, is_type: bool) -> Attribute:
        # what its printer would indent by where it stands is not for xDSL
        if "\n" not in text:
            # any failure of its parser means the same
            try:
                parser = Parser(self._context, text)
                read = parser.parse_type() if is_type else parser.parse_attribute()
                if _same(to_text(read), text, is_type):
                    return read
            except Exception:
                pass
        return VerbatimType(StringAttr(text)) if is_type else VerbatimAttr(StringAttr(text))


class AttributesToJaxlib:
    """xDSL's types and attributes in the current MLIR context: the very ones of `imported`, others built anew."""

    def __init__(self, imported: AttributesToXdsl) -> None:
        # by identity, which is exact: two attributes of MLIR may read the same in xDSL
        self._types = {id(mine): theirs for theirs, mine in imported.types.items()}
        self._attributes = {id(mine): theirs for theirs, mine in imported.attributes.items()}
        self._constants = imported.constants

    def type(self, type: Attribute) -> ir.Type:
        known = self._types.get(id(type))
        return self._build_type(type) if known is None else known

    def attribute(self, attribute: Attribute) -> ir.Attribute:
        known = self._attributes.get(id(attribute))
        return self._build(attribute) if known is None else known

    def _build_type(self, type: Attribute) -> ir.Type:
        if isinstance(type, FunctionType):
            inputs, results = map(self.type, type.inputs.data), map(self.type, type.outputs.data)
            return ir.FunctionType.get(list(inputs), list(results))
        if isinstance(type, TupleType):
            return ir.TupleType.get_tuple([self.type(part) for part in type.types.data])
        return ir.Type.parse(to_text(type))

    def _build(self, attribute: Attribute) -> ir.Attribute:
        if isinstance(attribute, ArrayAttr):
            return ir.ArrayAttr.get([self.attribute(part) for part in attribute.data])
        if isinstance(attribute, DictionaryAttr):
            return ir.DictAttr.get({name: self.attribute(part) for name, part in attribute.data.items()})
        if isinstance(attribute, DenseResourceAttr) and attribute.resource_handle.data in self._constants:
            return self._constants[attribute.resource_handle.data]
        if isinstance(attribute, DenseIntOrFPElementsAttr) and isinstance(attribute.type, TensorType):
            return constants.to_jaxlib(attribute, self.type(attribute.type.element_type))
        if isinstance(attribute, TypeAttribute):
            return ir.TypeAttr.get(self.type(attribute))
        try:
            return ir.Attribute.parse(to_text(attribute))
        except (TypeError, ir.MLIRError) as error:
            raise IRError(f"This attribute cannot be given back to MLIR: {to_text(attribute)} ({error})") from error


def _is_plain_integer(type: Attribute) -> TypeGuard[IntegerType | IndexType]:
    """Not a boolean, which is an i1 of -1 in xDSL; no sign of its own; beyond 64 bits the bindings give no value."""
    if not isinstance(type, IntegerType):
        return isinstance(type, IndexType)
    return type.signedness.data is Signedness.SIGNLESS and 1 < type.width.data <= 64


def _same(written: str, text: str, is_type: bool) -> bool:
    """Whether MLIR reads `written` as the attribute that it prints as `text`."""
    if written == text:
        return True
    # in a list, because the bindings cannot return a complex dense constant alone
    return str(ir.Type.parse(written) if is_type else ir.Attribute.parse(f"[{written}]")) == (
        text if is_type else f"[{text}]"
    )
