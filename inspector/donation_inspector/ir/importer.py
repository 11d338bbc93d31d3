"""A jaxlib MLIR module as an xDSL module, walked in memory: no text of the module is written or read."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

from jaxlib.mlir import ir
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation

from donation_inspector.common.garbage import collector_paused
from donation_inspector.errors import IRError
from donation_inspector.ir.bridge import reading
from donation_inspector.ir.bridge.attributes import AttributesToXdsl, Depth
from donation_inspector.ir.bridge.locations import LocationsToXdsl
from donation_inspector.ir.dialect import make_context, operation_class


@dataclass(frozen=True, eq=False)
class Imported:
    """An xDSL module and what leads back to jaxlib's: nothing in here holds on to the text of either.

    `constants` are the large dense constants by the handle that stands for them in `module` (a `dense_resource`).
    `origin` is the jaxlib module, which is never changed; `context` the xDSL context of `module`.
    """

    module: ModuleOp
    constants: dict[str, ir.Attribute]
    origin: ir.Module
    context: Context
    attributes: AttributesToXdsl
    locations: LocationsToXdsl


def import_module(module: ir.Module) -> Imported:
    """Every operation, region, attribute, property, type and location of `module` in xDSL's IR.

    What xDSL cannot represent is kept verbatim (`dialect.VerbatimAttr`, `VerbatimType`). Dense constants are exact to
    the bit; those of more than `constants.LARGEST_INLINE` elements are kept aside.
    """
    context = make_context()
    with module.context, ir.Location.unknown(), collector_paused():
        walker = _Importer(context)
        try:
            imported = walker.operation(module.operation, {})
        except RecursionError:
            raise IRError("This module has locations nested more deeply than Python reads them.") from None
        walker.resolve_forward_references()
    assert isinstance(imported, ModuleOp)
    return Imported(imported, walker.attributes.constants, module, context, walker.attributes, walker.locations)


class _Importer:
    def __init__(self, context: Context) -> None:
        self.attributes = AttributesToXdsl(context)
        self.locations = LocationsToXdsl()
        self._depth = Depth("regions")
        self._context = context
        self._values: dict[ir.Value, SSAValue] = {}
        self._classes: dict[str, tuple[type[Operation], StringAttr | None]] = {}
        self._registered: dict[str, bool] = {}
        self._inherent: dict[tuple[str, str], bool] = {}
        self._forward: list[tuple[Operation, ir.Operation]] = []

    def operation(self, operation: ir.Operation, blocks: dict[ir.Block, Block]) -> Operation:
        name = operation.name
        known = self._classes.get(name)
        cls, op_name = known if known is not None else self._class(name)
        properties: dict[str, Attribute] = {}
        attributes: dict[str, Attribute] = {}
        for key, theirs in reading.attributes(operation):
            value = self.attributes.attribute(theirs)
            inherent = self._inherent.get((name, key))
            if inherent is None:
                inherent = self._learn(operation, cls, key)
            if inherent:
                properties[key] = value
            else:
                attributes[key] = value
        registered = self._registered.get(name)
        if registered is None:
            registered = self._registered[name] = operation.context.is_registered_operation(name)
        if not registered:
            properties |= {key: self.attributes.attribute(one) for key, one in reading.properties(operation)}
        if op_name is not None:
            attributes["op_name__"] = op_name
        values = self._values
        try:
            operands = [values[value] for value in operation.operands]
        except KeyError:
            operands = None
        results = list(operation.results)
        types = self.attributes.types
        made = cls.__new__(cls)
        Operation.__init__(
            made,
            operands=operands or (),
            result_types=[types.get(result.type) or self.attributes.type(result.type) for result in results],
            properties=properties,
            attributes=attributes,
            location=self.locations(operation.location),
            successors=[blocks[block] for block in operation.successors] if blocks else (),
            regions=[self._region(region) for region in operation.regions],
        )
        if operands is None:
            self._forward.append((made, operation))
        for theirs, mine in zip(results, made.results, strict=True):
            values[theirs] = mine
        return made

    def resolve_forward_references(self) -> None:
        """Sets the operands of operations that stand, in the text's order, before what they use."""
        for made, operation in self._forward:
            made.operands = [self._values[value] for value in operation.operands]

    def _region(self, region: ir.Region) -> Region:
        blocks = {block: self._block(block) for block in region.blocks}
        targets = blocks if len(blocks) > 1 else {}
        with self._depth:
            for theirs, mine in blocks.items():
                for operation in theirs.operations:
                    # some views of an operation override .name
                    mine.add_op(self.operation(operation.operation, targets))
        return Region(list(blocks.values()))

    def _block(self, block: ir.Block) -> Block:
        made = Block(arg_types=[self.attributes.type(argument.type) for argument in block.arguments])
        for theirs, mine in zip(block.arguments, made.args, strict=True):
            mine.location = self.locations(theirs.location)
            self._values[theirs] = mine
        return made

    def _class(self, name: str) -> tuple[type[Operation], StringAttr | None]:
        cls = operation_class(self._context, name)
        known = self._classes[name] = (cls, StringAttr(name) if issubclass(cls, UnregisteredOp) else None)
        return known

    def _learn(self, operation: ir.Operation, cls: type[Operation], key: str) -> bool:
        """Whether `key` belongs to the operation's definition, a property: MLIR's generic form tells."""
        if issubclass(cls, IRDLOperation):
            known = key in cls.get_irdl_definition().properties
        else:
            known = _is_property(operation, key)
        self._inherent[operation.name, key] = known
        return known


def _is_property(operation: ir.Operation, key: str) -> bool:
    # a clone stands alone: printing in place would number all the values of the function
    alone = cast(Any, operation.clone())
    for other in list(alone.attributes):
        if other != key:
            del alone.attributes[other]
    text: str = alone.get_asm(
        print_generic_op_form=True,
        skip_regions=True,
        use_local_scope=True,
        assume_verified=True,
        large_elements_limit=0,
    )
    # segment sizes cannot be taken away
    return (
        re.search(rf'^[^"]*"[^"]*"\([^)]*\)(?:\[[^\]]*\])? <\{{(?:\w+ = array<i32[^>]*>, )*"?{re.escape(key)}\b', text)
        is not None
    )
