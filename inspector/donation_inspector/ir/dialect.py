"""The xDSL context that modules are imported into, and the two attributes of our own that stand for what xDSL lacks."""

from __future__ import annotations

import io
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.bufferization import Bufferization
from xdsl.dialects.builtin import Builtin, StringAttr, UnregisteredOp
from xdsl.dialects.func import Func
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.printer import Printer
from xdsl.traits import OpTrait, SymbolTable


@irdl_attr_definition
class VerbatimAttr(ParametrizedAttribute):
    """An attribute that xDSL cannot represent, as MLIR's own text; exporting restores it exactly."""

    name: ClassVar[str] = "verbatim.attr"
    text: StringAttr = param_def()


@irdl_attr_definition
class VerbatimType(ParametrizedAttribute, TypeAttribute):
    """A type that xDSL cannot represent, as MLIR's own text; exporting restores it exactly."""

    name: ClassVar[str] = "verbatim.type"
    text: StringAttr = param_def()


Verbatim = Dialect("verbatim", [], [VerbatimAttr, VerbatimType])


def to_text(attribute: Attribute) -> str:
    """The attribute or type as MLIR writes it."""
    if isinstance(attribute, VerbatimAttr | VerbatimType):
        return attribute.text.data
    stream = io.StringIO()
    Printer(stream).print_attribute(attribute)
    return stream.getvalue()


def make_context() -> Context:
    """A context that knows builtin, func and bufferization; every other operation is unregistered.

    StableHLO is not among xDSL's dialects, and the versions of the upstream dialects that xDSL carries refuse what
    jaxlib emits here and there, while their generic form always holds.
    """
    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, Bufferization, Verbatim):
        context.load_dialect(dialect)
    return context


def operation_class(context: Context, name: str) -> type[Operation]:
    """The class of the operation called `name`; one that is not registered is no symbol table.

    xDSL gives unregistered operations every trait. A `func.call` inside `stablehlo.while` would then look for its
    callee in the loop instead of the module, and fail to verify.
    """
    found = context.get_op(name)
    if issubclass(found, UnregisteredOp) and "has_trait" not in found.__dict__:
        never_a_symbol_table(found)
    return found


def never_a_symbol_table(operation: type[Operation]) -> None:
    """Takes that trait from a class of unregistered operations."""

    def has_trait(_cls: type[Operation], trait: type[OpTrait] | OpTrait, *, value_if_unregistered: bool = True) -> bool:
        return trait is not SymbolTable and value_if_unregistered

    operation.has_trait = classmethod(has_trait)  # pyright: ignore[reportAttributeAccessIssue]  # a class made for one context
