"""The two attributes at a function's arguments that say what is donated."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i1, i32
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.common.signature import Donation
from donation_inspector.ir.entry import ALIAS, DONOR, read_donation
from donation_inspector.passes.notes import tell


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


def called_from_outside(functions: Sequence[FuncOp]) -> list[FuncOp]:
    """Those that are not private, and the private ones that none of the module calls."""
    called = called_functions(functions)
    return [func for func in functions if not is_private(func) or func.sym_name.data not in called]


def uncalled_functions(module: ModuleOp, asked_by: str) -> list[FuncOp]:
    """The functions with a body that are called from outside alone, for a pass that writes into what those donate.

    One that the module calls too, though it has donated arguments, is told.
    """
    functions = defined_functions(module, asked_by)
    called = called_functions(functions)
    for func in called_from_outside(functions):
        donated = read_donation(func).positions
        if func.sym_name.data in called and donated:
            told = "is called in this module, and its callers decide what dies there: its donated arguments are left"
            tell(asked_by, "called", func, told)
    return [func for func in called_from_outside(functions) if func.sym_name.data not in called]


def called_functions(functions: Sequence[FuncOp]) -> frozenset[str]:
    """The names of what these functions call."""
    return frozenset(op.callee.string_value() for func in functions for op in func.walk() if isinstance(op, CallOp))


def is_private(func: FuncOp) -> bool:
    return func.sym_visibility is not None and func.sym_visibility.data == "private"


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
