"""What a pipeline did to a module: its effect on the entry function, and whether anything else changed."""

from __future__ import annotations

from collections import Counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from donation_inspector.analysis.naming import operation_name
from donation_inspector.errors import PassError
from donation_inspector.ir.entry import entry_function
from donation_inspector.passes.effect import Effect, read_effect


def read_module_effect(before: ModuleOp, after: ModuleOp) -> Effect:
    """The effect on the entry function of `before`, of which `after` is the changed copy.

    Raises PassError when that function is gone.
    """
    entry = entry_function(before)
    label = _function_label(entry)
    was, now = _by_label(before), _by_label(after)
    entry_after = now.get(label)
    if not isinstance(entry_after, FuncOp) or entry_after.is_declaration:
        raise PassError(f"The pipeline removed the entry function {label}, so there is nothing to show.")
    rewritten: list[str] = []
    changed = [] if before.attributes == after.attributes else ["attributes of the module"]
    for name in dict.fromkeys((*was, *now)):
        op, other = was.get(name), now.get(name)
        if op is entry or (op is not None and other is not None and _equal(op, other, before, after)):
            continue
        (rewritten if _only_materializes(op, other) else changed).append(name)
    return read_effect(entry, entry_after, rewritten=rewritten, changed=changed)


def _by_label(module: ModuleOp) -> dict[str, Operation]:
    """The module's operations: functions as "@name", others by kind and count."""
    seen: Counter[str] = Counter()
    labelled: dict[str, Operation] = {}
    for op in module.ops:
        if isinstance(op, FuncOp):
            labelled[_function_label(op)] = op
        else:
            kind = operation_name(op)
            seen[kind] += 1
            labelled[f"'{kind}' number {seen[kind]}"] = op
    return labelled


def _function_label(func: FuncOp) -> str:
    return f"@{func.sym_name.data}"


def _equal(op: Operation, other: Operation, before: ModuleOp, after: ModuleOp) -> bool:
    return op.is_structurally_equivalent(other, {before.body.block: after.body.block})


def _only_materializes(op: Operation | None, other: Operation | None) -> bool:
    if not isinstance(op, FuncOp) or not isinstance(other, FuncOp) or op.is_declaration or other.is_declaration:
        return False
    return read_effect(op, other).compilable
