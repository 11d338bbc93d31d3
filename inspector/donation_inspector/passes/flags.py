"""The two attributes at a function's arguments that say what is donated."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i1, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.common.signature import Donation
from donation_inspector.ir.entry import ALIAS, DONOR


def defined_functions(module: ModuleOp, asked_by: str) -> list[FuncOp]:
    """The functions that have a body.

    Raises DiagnosticException, in the name of the pass `asked_by`, when the attributes of a function's arguments are
    more or fewer than those: they go by their order alone, so that it is not known whose they are.
    """
    functions = [op for op in module.walk() if isinstance(op, FuncOp)]
    for func in functions:
        attributes, arguments = func.arg_attrs, len(func.function_type.inputs)
        if attributes is not None and len(attributes) != arguments:
            raise DiagnosticException(
                f"{asked_by}: in function @{func.sym_name.data}: arg_attrs has {len(attributes)} entries for "
                f"{arguments} arguments; it needs one for each, {{}} where there is nothing."
            )
    return [func for func in functions if not func.is_declaration]


def argument_attributes(func: FuncOp) -> list[dict[str, Attribute]]:
    """The attributes of each argument, to be changed and set again; empty where the function has none."""
    if func.arg_attrs is None:
        return [{} for _ in func.function_type.inputs]
    return [dict(attributes.data) for attributes in func.arg_attrs]


def set_donation(func: FuncOp, donation: Donation) -> None:
    """Makes the arguments of `func` carry exactly this donation; every other attribute stays."""
    if func.arg_attrs is None and not donation.positions:
        return
    attributes = argument_attributes(func)
    for position, of_argument in enumerate(attributes):
        of_argument.pop(ALIAS, None)
        of_argument.pop(DONOR, None)
        if position in donation.aliases:
            of_argument[ALIAS] = IntegerAttr(donation.aliases[position], i32)
        if position in donation.donors:
            of_argument[DONOR] = IntegerAttr(1, i1)
    func.arg_attrs = ArrayAttr([DictionaryAttr(of_argument) for of_argument in attributes])
