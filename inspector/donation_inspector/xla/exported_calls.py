"""Lays open calls of what `jax.export` made: the operations of the exported function, in the function that calls it.

An exported module comes into a lowering as one private function. XLA lays it open by itself; until then the whole
program would be one operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from donation_inspector.xla import attributes, internals

_EXPORTED = "call_exported_"
_WRAPPED = "_wrapped_jax_export_main"


def laid_open(module: Any, *, polymorphic: bool) -> Any:
    """The module with its exported calls in place, sizes refined; the same object where there are none.

    Over several devices they stay, because their arguments' shardings stand at the function.
    """
    if not any(map(_is_exported, _functions(module))) or attributes.partitions(module) > 1:
        return module
    # both give a module of their own: the lowering's is never changed
    opened: Any = internals.mlir.refine_polymorphic_shapes(module) if polymorphic else module.operation.clone()
    while _lay_open_one(opened):
        pass
    return opened


def _is_exported(name: str) -> bool:
    return name.startswith((_EXPORTED, _WRAPPED))


def _lay_open_one(module: Any) -> bool:
    functions = _functions(module)
    calls = list(_calls(module.operation))
    times = Counter(call.attributes["callee"].value for call in calls)
    for call in calls:
        name = call.attributes["callee"].value
        if _is_exported(name) and times[name] == 1:
            _move(functions[name].regions[0].blocks[0], call)
            functions[name].erase()
            return True
    return False


def _move(body: Any, call: Any) -> None:
    for argument, given in zip(body.arguments, call.operands, strict=True):
        argument.replace_all_uses_with(given)
    *operations, returned = [one.operation for one in body.operations]
    for one in operations:
        one.move_before(call)
    for result, value in zip(call.results, returned.operands, strict=True):
        result.replace_all_uses_with(value)
    call.erase()


def _functions(module: Any) -> dict[str, Any]:
    body = module.operation.regions[0].blocks[0]
    found = [one.operation for one in body.operations if one.operation.name == "func.func"]
    return {one.attributes["sym_name"].value: one for one in found}


def _calls(root: Any) -> Iterator[Any]:
    return (one for one in attributes.operations(root) if one.name == "func.call")
