"""Back to jaxlib's MLIR: a donation or the pass's effect on a clone of the module, or a whole changed xDSL module."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeArgument=false, reportMissingTypeStubs=false
# jaxlib's stubs leave its generic classes open and its dialects out.

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from jaxlib.mlir import ir
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Block, Operation, Region, SSAValue

from donation_inspector.common.signature import Donation
from donation_inspector.errors import IRError
from donation_inspector.ir import native
from donation_inspector.ir.bridge import reading
from donation_inspector.ir.bridge.attributes import AttributesToJaxlib
from donation_inspector.ir.bridge.locations import LocationsToJaxlib
from donation_inspector.ir.entry import ALIAS, DONOR
from donation_inspector.ir.importer import Imported

MATERIALIZE = "bufferization.materialize_in_destination"

_flag = threading.Lock()


@dataclass(frozen=True, slots=True)
class Materializations:
    """What a pass put before the return of the entry function, by position.

    `ops` are the materializations in their order: (position of the result whose value, as returned before the pass, is
    materialized; position of the argument that is the destination). `returned` gives for each result the index in `ops`
    of what is returned there now, None where the value is the one from before.
    """

    ops: tuple[tuple[int, int], ...]
    returned: tuple[int | None, ...]


def with_donation(module: ir.Module, donation: Donation) -> ir.Module:
    """A clone whose entry function carries exactly this donation; whatever stood there is stripped.

    Raises:
      IRError: an argument that the entry function doesn't have.
    """
    made = native.clone(module)
    with made.context:
        _set_donation(native.entry_operation(made), donation)
    return made


def with_materializations(module: ir.Module, donation: Donation, materializations: Materializations) -> ir.Module:
    """A clone as a pass leaves it, to be shown: `donation` is what the pass left at the entry function.

    jaxlib does not know the bufferization dialect: the clone prints, but does not compile.

    Raises:
      IRError: a position that the entry function doesn't have, or a function of several blocks.
    """
    made = native.clone(module)
    with made.context, ir.Location.unknown(), _unregistered_allowed(made.context):
        function = native.entry_operation(made)
        _set_donation(function, donation)
        if materializations.ops:
            _materialize(function, materializations)
    return made


def to_jaxlib(imported: Imported, module: ModuleOp) -> ir.Module:
    """`module`, a changed clone of `imported.module` or that itself, in the MLIR context that it came from.

    Attributes, types, locations and constants that the importer made are given back as the very ones they came from.

    Raises:
      IRError: an attribute that MLIR doesn't take.
    """
    context = imported.origin.context
    with context, ir.Location.unknown(), _unregistered_allowed(context):
        exporter = _Exporter(imported)
        made = ir.Module.create(exporter.locations(module.location))
        for name, value in exporter.attributes_of(module).items():
            made.operation.attributes[name] = value
        exporter.fill(module.body.block, made.body, {})
        exporter.resolve_forward_references()
    return made


def why_invalid(module: ir.Module) -> str | None:
    """MLIR's own reason against the module, None where it verifies. What does not verify must not be printed: MLIR's
    printer reads beyond the end of attributes that are missing, and ends the process.

    Result attributes beyond the results, as `remove_matched_outputs` leaves them, are no reason: the printer reads none
    of them.
    """
    kept: list[tuple[Any, ir.Attribute]] = []
    with module.context, _unregistered_allowed(module.context):
        for function in (op.operation for op in module.body.operations if op.operation.name == "func.func"):
            attributes = cast(Any, function.attributes)
            entries = reading.elements(attributes["res_attrs"]) if "res_attrs" in attributes else []
            results = len(attributes["function_type"].value.results)
            if len(entries) > results:
                kept.append((attributes, attributes["res_attrs"]))
                attributes["res_attrs"] = ir.ArrayAttr.get(entries[:results])
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            return native.first_message(error)
        finally:
            for attributes, entries in kept:
                attributes["res_attrs"] = entries
    return None


@contextmanager
def _unregistered_allowed(context: ir.Context) -> Generator[None]:
    """The context may be the one of the user's lowering: it is left as it was."""
    with _flag:
        was_allowed = context.allow_unregistered_dialects
        context.allow_unregistered_dialects = True
        try:
            yield
        finally:
            context.allow_unregistered_dialects = was_allowed


def donation_attributes(function: ir.Operation, donation: Donation) -> ir.ArrayAttr:
    """`arg_attrs` of the function with exactly this donation in it. Its MLIR context must be the current one.

    Results are written down as given, those that a wrong file claims too: `entry.alias_problems` tells of them.

    Raises:
      IRError: an argument that the function doesn't have.
    """
    attributes = cast(Any, function.attributes)
    signature: ir.FunctionType = attributes["function_type"].value
    arguments = len(signature.inputs)
    _check(donation.positions, arguments, "argument")
    entries = reading.elements(attributes["arg_attrs"]) if "arg_attrs" in attributes else []
    entries += [ir.DictAttr.get({})] * (arguments - len(entries))
    i32, true = ir.IntegerType.get_signless(32), ir.BoolAttr.get(True)
    changed: list[ir.DictAttr] = []
    for position, entry in enumerate(cast(list[ir.DictAttr], entries)):
        kept = {name: value for name, value in reading.entries(entry) if name not in (ALIAS, DONOR)}
        if position in donation.aliases:
            kept[ALIAS] = ir.IntegerAttr.get(i32, donation.aliases[position])
        if position in donation.donors:
            kept[DONOR] = true
        changed.append(ir.DictAttr.get(kept))
    return ir.ArrayAttr.get(changed)


def _set_donation(function: ir.Operation, donation: Donation) -> None:
    cast(Any, function.attributes)["arg_attrs"] = donation_attributes(function, donation)


def _check(positions: Any, count: int, what: str) -> None:
    for position in positions:
        if not 0 <= position < count:
            raise IRError(f"The entry function has no {what} {position}: there are {count}, counted from 0.")


def _materialize(function: ir.Operation, materializations: Materializations) -> None:
    block = native.entry_block(function)
    end = block.operations[len(block.operations) - 1].operation
    returned, arguments = list(end.operands), block.arguments
    _check((value for value, _ in materializations.ops), len(returned), "result")
    _check((destination for _, destination in materializations.ops), len(arguments), "argument")
    before_return = ir.InsertionPoint(end)
    made = [
        ir.Operation.create(
            MATERIALIZE,
            results=[returned[value].type],
            operands=[returned[value], arguments[destination]],
            ip=before_return,
        )
        for value, destination in materializations.ops
    ]
    for position, index in enumerate(materializations.returned):
        if index is not None:
            end.operands[position] = made[index].results[0]


class _Exporter:
    def __init__(self, imported: Imported) -> None:
        self.locations = LocationsToJaxlib(imported.locations)
        self._attributes = AttributesToJaxlib(imported.attributes)
        self._values: dict[SSAValue, ir.Value] = {}
        self._forward: list[tuple[ir.Operation, int, SSAValue, ir.Operation]] = []

    def attributes_of(self, operation: Operation) -> dict[str, ir.Attribute]:
        both: Mapping[str, Any] = operation.properties | operation.attributes
        convert = self._attributes.attribute
        return {name: convert(value) for name, value in both.items() if name != "op_name__"}

    def fill(self, block: Block, target: ir.Block, blocks: dict[Block, ir.Block]) -> None:
        """Makes the operations of `block` at the end of `target`."""
        end = ir.InsertionPoint(target)
        for operation in block.ops:
            self._operation(operation, end, blocks)

    def resolve_forward_references(self) -> None:
        """Puts the values in that were not there yet when their first user was made."""
        for user, index, value, stand_in in self._forward:
            user.operands[index] = self._values[value]
            stand_in.erase()

    def _operation(self, operation: Operation, end: ir.InsertionPoint, blocks: dict[Block, ir.Block]) -> None:
        name = operation.op_name.data if isinstance(operation, UnregisteredOp) else operation.name
        values, convert = self._values, self._attributes.type
        missing = [index for index, value in enumerate(operation.operands) if value not in values]
        stand_ins = {index: self._stand_in(operation.operands[index]) for index in missing}
        results = [convert(result.type) for result in operation.results]
        operands: list[ir.Value] = [
            stand_ins[index].results[0] if index in stand_ins else values[value]
            for index, value in enumerate(operation.operands)
        ]
        location = self.locations(operation.location)
        if operation.properties and not location.context.is_registered_operation(name):
            made = self._with_properties(name, operation, results, operands, location)
            end.insert(made)
        else:
            made = ir.Operation.create(
                name,
                results=results,
                operands=operands,
                attributes=self.attributes_of(operation),
                successors=[blocks[block] for block in operation.successors],
                regions=len(operation.regions),
                loc=location,
                ip=end,
            )
        self._forward += [(made, index, operation.operands[index], stand_in) for index, stand_in in stand_ins.items()]
        for mine, theirs in zip(operation.results, made.results, strict=True):
            values[mine] = theirs
        for mine, theirs in zip(operation.regions, made.regions, strict=True):
            self._region(mine, theirs)

    def _with_properties(
        self,
        name: str,
        operation: Operation,
        results: Sequence[ir.Type],
        operands: Sequence[Any],
        location: ir.Location,
    ) -> ir.Operation:
        """An operation that is not registered, made from text: jaxlib's bindings give it no properties."""
        if operation.successors:
            raise IRError(
                f"'{name}' has properties and successors, and jaxlib does not know it: it cannot be given back."
            )
        convert = self._attributes.attribute
        properties = ir.DictAttr.get({key: convert(value) for key, value in operation.properties.items()})
        arguments = [f"%{number}" for number in range(len(operands))]
        typed = ", ".join(f"{argument}: {value.type}" for argument, value in zip(arguments, operands, strict=True))
        regions = f" ({', '.join('{}' for _ in operation.regions)})" if operation.regions else ""
        made = f"%r:{len(results)} = " if results else ""
        types = f"({', '.join(str(value.type) for value in operands)}) -> ({', '.join(map(str, results))})"
        text = (
            f'"donation_inspector.around"() ({{ ^around({typed}):\n'
            f'{made}"{name}"({", ".join(arguments)}) <{properties}>{regions} : {types} {location} }}) : () -> ()'
        )
        around = ir.Operation.parse(text)
        own = around.regions[0].blocks[0].operations[0].operation
        own.detach_from_parent()
        for number, value in enumerate(operands):
            own.operands[number] = value
        for key, value in operation.attributes.items():
            if key != "op_name__":
                own.attributes[key] = convert(value)
        return own

    def _region(self, region: Region, target: ir.Region) -> None:
        blocks: dict[Block, ir.Block] = {}
        for block in region.blocks:
            types = [self._attributes.type(argument.type) for argument in block.args]
            locations = [self.locations(argument.location) for argument in block.args]
            blocks[block] = made = target.blocks.append(*types, arg_locs=locations)
            for mine, theirs in zip(block.args, made.arguments, strict=True):
                self._values[mine] = theirs
        for block, made in blocks.items():
            self.fill(block, made, blocks)

    def _stand_in(self, value: SSAValue) -> ir.Operation:
        return ir.Operation.create("builtin.unrealized_conversion_cast", results=[self._attributes.type(value.type)])
