"""One pass after the other: what each left, in how long, and where it went wrong, in its author's own words."""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from donation_inspector.analysis.naming import operation_name
from donation_inspector.errors import PassError
from donation_inspector.passes.notes import PassNote, heard


@dataclass(frozen=True)
class PassRun:
    """`module_pass` ran on `before` and left `after`, which nobody changes any more. `seconds` is its own time."""

    module_pass: ModulePass
    before: ModuleOp
    after: ModuleOp
    seconds: float
    notes: Sequence[PassNote]


def run_passes(passes: Sequence[ModulePass], context: Context, module: ModuleOp) -> list[PassRun]:
    """Each on a copy of what the one before left; `module` itself stays.

    Raises PassError for one that fails, with the line of its author's file, and for one that leaves a module that does
    not verify, with the operation.
    """
    runs: list[PassRun] = []
    for module_pass in passes:
        after = module.clone()
        start = time.perf_counter()
        with heard() as notes:
            run_pass(module_pass, context, after)
        seconds = time.perf_counter() - start
        _verify(module_pass, after)
        runs.append(PassRun(module_pass, module, after, seconds, tuple(notes)))
        module = after
    return runs


def run_pass(module_pass: ModulePass, context: Context, module: ModuleOp) -> None:
    """Raises PassError where it fails."""
    try:
        module_pass.apply(context, module)
    except (Exception, SystemExit) as error:  # a pass is anybody's code: its failure must not take the notebook down
        raise PassError(f"The pass '{module_pass.name}' failed: {_told(error)}{_line(module_pass, error)}") from error


def _verify(module_pass: ModulePass, module: ModuleOp) -> None:
    try:
        module.verify()
    except (Exception, SystemExit) as error:
        raise PassError(
            f"The pass '{module_pass.name}' left a module that does not verify: {_told(error)}{_operation(module)}"
        ) from error


def _told(error: BaseException) -> str:
    text, kind = str(error).strip(), type(error).__name__
    if not text:
        return kind
    # what a pass says on purpose is whole; of any other exception the text alone may be a key or a number
    return text if isinstance(error, DiagnosticException) else f"{kind}: {text}"


def _line(module_pass: ModulePass, error: BaseException) -> str:
    """The innermost line of the file that the pass is written in; nothing for what our own passes say on purpose."""
    kind = type(module_pass)
    if isinstance(error, DiagnosticException) and kind.__module__.startswith(f"{__package__}."):
        return ""
    file = kind.apply.__code__.co_filename
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if not frames:
        return ""
    return f"\n  {file}:{frames[-1].lineno}, in {frames[-1].name}\n    {frames[-1].line}"


def _operation(module: ModuleOp) -> str:
    """The first operation that does not verify by itself, and the function that it is in."""
    for op in module.walk(reverse=False):
        try:
            op.verify(verify_nested_ops=False)
        except (Exception, SystemExit):
            return f"\n  at '{operation_name(op)}'{_in_function(op)}"
    return ""


def _in_function(op: Operation) -> str:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return "" if parent is None else f" in @{parent.sym_name.data}"
