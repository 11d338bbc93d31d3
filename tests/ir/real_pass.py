"""The installed xDSL's own `jax-use-donated-arguments` on a module's whole xDSL form: the oracle for what we derive."""

from __future__ import annotations

import io

from jaxlib.mlir import ir
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.printer import Printer
from xdsl.transforms.jax_use_donated_arguments import JaxUseDonatedArguments

from donation_inspector.common.signature import Donation
from donation_inspector.ir.context import make_context
from donation_inspector.ir.entry import argument_attributes, entry_function, read_donation
from donation_inspector.ir.exporter import Materializations
from donation_inspector.ir.importer import Imported


def run(imported: Imported, donation: Donation) -> tuple[ir.Module, Donation, Materializations]:
    """The passed module, through xDSL's printer and jaxlib's parser; the attributes left; what was materialized."""
    module = imported.module.clone()
    function = entry_function(module)
    _donate(function, donation)
    returned_before = _returned(function)
    JaxUseDonatedArguments().apply(imported.context, module)
    made = [operation for operation in function.walk() if isinstance(operation, MaterializeInDestinationOp)]
    arguments = {value: position for position, value in enumerate(function.args)}
    results: dict[SSAValue, int] = {value: position for position, value in reversed([*enumerate(returned_before)])}
    index = {operation.results[0]: number for number, operation in enumerate(made)}
    materializations = Materializations(
        tuple((results[operation.source], arguments[operation.dest]) for operation in made),
        tuple(index.get(value) for value in _returned(function)),
    )
    stream = io.StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    printed = stream.getvalue()
    for handle, constant in imported.constants.items():
        printed = printed.replace(f"dense_resource<{handle}> : {constant.type}", str(constant))
    return ir.Module.parse(printed, context=make_context()), read_donation(function), materializations


def _donate(function: FuncOp, donation: Donation) -> None:
    entries: list[DictionaryAttr] = []
    for position, entry in enumerate(argument_attributes(function)):
        kept = {k: v for k, v in entry.data.items() if k not in ("tf.aliasing_output", "jax.buffer_donor")}
        if position in donation.aliases:
            kept["tf.aliasing_output"] = IntegerAttr(donation.aliases[position], i32)
        if position in donation.donors:
            kept["jax.buffer_donor"] = IntegerAttr(1, 1)
        entries.append(DictionaryAttr(kept))
    function.arg_attrs = ArrayAttr(entries)


def _returned(function: FuncOp) -> list[SSAValue]:
    last = function.body.blocks[-1].last_op
    assert last is not None
    return list(last.operands)
