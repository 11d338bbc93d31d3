"""A module as text that xDSL and MLIR both read as that very module: generic form, constants exact to the bit.

xDSL prints it, since every attribute that the importer made was checked against MLIR's. Two things are written in
another way. xDSL misreads a constant of infinities, NaN or bf16: where the two do not agree about its text, and where
it is long, it is a resource, whose bytes xDSL passes on untouched. And xDSL reads no alias, range or metadata of a
location: it stands as what the inspector reads from it, a name and the innermost frame of the user's code.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# jaxlib's stubs leave its generic classes open.

from __future__ import annotations

import io
import itertools
import re
from functools import cached_property
from typing import Any, cast

from jaxlib.mlir import ir
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.printer import Printer

from donation_inspector.ir import location, resources
from donation_inspector.ir.bridge import constants
from donation_inspector.ir.dialect import VerbatimAttr, VerbatimType, make_context, to_text
from donation_inspector.ir.importer import Imported

_NAME = "constant_{}"
_SPECIAL = re.compile(r'[\x00-\x1f\x7f"\\]')
_LARGEST_SPLAT = 1 << 20
"""xDSL expands a splat when it reads it: one of more elements is a resource."""


def text(imported: Imported, module: ModuleOp) -> str:
    """`module`, a changed clone of `imported.module` or that itself."""
    with imported.origin.context, ir.Location.unknown():
        printer = _Printer(imported)
        printer.print_op(module)
        return printer.finished()


class _Printer(Printer):
    """xDSL's, which asks it for each attribute, nested ones too."""

    def __init__(self, imported: Imported) -> None:
        self._written = io.StringIO()
        super().__init__(self._written, print_generic_format=True, print_debuginfo=True)
        self._kept_aside = imported.constants
        self._origin = imported.origin
        self._attributes = imported.attributes
        self._resources: dict[str, bytes] = {}
        self._context = make_context()
        self._constants: dict[Attribute, str] = {}
        self._verbatim: dict[Attribute, bool] = {}
        self._locations: dict[int, str] = {}

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, DenseIntOrFPElementsAttr | DenseResourceAttr):
            known = self._constants.get(attribute)
            if known is None:
                known = self._constants[attribute] = self._constant(cast(Any, attribute))
            self.print_string(known)
        elif isinstance(attribute, VerbatimAttr | VerbatimType) and self._is_text_for_both(attribute):
            # past the printer, which would indent its further lines
            self._written.write(attribute.text.data)
        elif isinstance(attribute, LocationAttr):
            # by identity: hashing a deep call chain costs more than reading it
            known = self._locations.get(id(attribute))
            if known is None:
                known = self._locations[id(attribute)] = _location(attribute)
            self.print_string(known)
        else:
            super().print_attribute(attribute)

    def _is_text_for_both(self, attribute: VerbatimAttr | VerbatimType) -> bool:
        """Whether xDSL reads the text too, which is verbatim only because xDSL would print it in another way."""
        known = self._verbatim.get(attribute)
        if known is None:
            try:
                parser = Parser(self._context, attribute.text.data)
                parser.parse_type() if isinstance(attribute, VerbatimType) else parser.parse_attribute()
                known = "\n" in attribute.text.data
            except Exception:  # whatever it has against it, the text stays ours
                known = False
            self._verbatim[attribute] = known
        return known

    def finished(self) -> str:
        written = self._written.getvalue()
        return f"{written}\n\n{resources.section(self._resources)}" if self._resources else f"{written}\n"

    def _constant(self, constant: DenseIntOrFPElementsAttr | DenseResourceAttr) -> str:
        if isinstance(constant, DenseIntOrFPElementsAttr) and isinstance(constant.type, VectorType):
            return to_text(constant)  # the importer read it off MLIR's own text
        if isinstance(constant, DenseIntOrFPElementsAttr):
            return to_text(constant) if self._is_read_alike(constant) else self._resource(constant)
        name = constant.resource_handle.data
        theirs: Any = self._kept_aside.get(name)
        if theirs is None or str(theirs).startswith("dense_resource<"):
            if name in self._blobs_of_origin:
                self._resources[name] = self._blobs_of_origin[name]
            return to_text(constant)
        if self._is_plain_splat(theirs):
            return str(theirs)
        exact = constants.to_xdsl(theirs, constant.type)
        if isinstance(exact, DenseIntOrFPElementsAttr):
            return self._resource(exact)
        return f'#{VerbatimAttr.name}<"{_escaped(str(theirs))}">'

    def _is_read_alike(self, constant: DenseIntOrFPElementsAttr) -> bool:
        """Whether xDSL reads what it writes, and MLIR reads the same bits from it."""
        written = to_text(constant)
        try:
            theirs = constants.to_jaxlib(constant, ir.Type.parse(to_text(constant.type.element_type)))
            # in a list, because the bindings cannot return a complex constant alone
            same = str(ir.Attribute.parse(f"[{written}]")) == f"[{theirs}]"
            return same and Parser(self._context, written).parse_attribute() == constant
        except Exception:  # whatever either of them has against it, there is another way
            return False

    def _is_plain_splat(self, theirs: Any) -> bool:
        element = theirs.type.element_type
        if not theirs.is_splat or len(theirs) > _LARGEST_SPLAT or isinstance(element, ir.ComplexType):
            return False
        body = str(theirs).rpartition(" : ")[0]
        one: Any = ir.Attribute.parse(f"{body} : tensor<1x{element}>")
        alone = constants.to_xdsl(one, TensorType(self._attributes.type(element), [1]))
        return isinstance(alone, DenseIntOrFPElementsAttr) and self._is_read_alike(alone)

    def _resource(self, constant: DenseIntOrFPElementsAttr) -> str:
        data = constant.data.data
        if constant.type.element_type == i1:
            data = bytes(map(bool, data))
        taken = self._kept_aside.keys() | self._resources.keys()
        name = next(
            name for count in itertools.count(len(self._resources)) if (name := _NAME.format(count)) not in taken
        )
        self._resources[name] = data
        return to_text(DenseResourceAttr(StringAttr(name), constant.type))

    @cached_property
    def _blobs_of_origin(self) -> dict[str, bytes]:
        return resources.blobs(cast(str, self._origin.operation.get_asm()))


def _location(known: LocationAttr) -> str:
    place, name = location.source(known), _literal(location.name(known) or "")
    file = _literal(place.file or "") if place is not None else None
    frame = "" if place is None or file is None else f"{file}:{place.line}:{place.column}"
    if name is None:
        return f"loc({frame or 'unknown'})"
    return f"loc({name}({frame}))" if frame else f"loc({name})"


def _literal(words: str) -> str | None:
    """None where there is nothing, or xDSL reads no location of it: one beyond ASCII with escaped characters."""
    escaped = _escaped(words)
    return f'"{escaped}"' if words and (escaped == words or words.isascii()) else None


def _escaped(words: str) -> str:
    return _SPECIAL.sub(lambda found: f"\\{ord(found[0]):02X}", words)
