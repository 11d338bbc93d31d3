"""What running a file's program runs: said before it is run, and refused where nobody here answers for it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from donation_inspector.errors import MeasureError
from donation_inspector.xla import custom_calls
from donation_inspector.xla.attributes import operations

if TYPE_CHECKING:
    from donation_inspector.program.subject import Subject

_SHOWN = 5
_LONGEST = 80
_ON_TENSORS = frozenset(
    {"builtin", "func", "stablehlo", "chlo", "mhlo", "sdy", "shape", "complex", "ub", "bufferization"}
    | {"arith", "math", "tensor", "linalg", "scf"}
)
"""The dialects that know arrays alone: no address, and nothing outside of the module."""


def described(subject: Subject) -> str | None:
    """What runs where a file's program is run, in one sentence; None for a function of the caller's own.

    Raises MeasureError where it calls something that is neither XLA's own nor in the file.
    """
    origin = subject.origin
    if not origin.from_file:
        return None
    with subject.lock:
        called = Counter(custom_calls.targets(origin.module))
        count = sum(1 for _ in operations(origin.module.operation)) - 1
    callbacks = [name for name in called if custom_calls.is_callback(name)]
    foreign = [name for name in called if name not in callbacks and not custom_calls.is_xlas_own(name)]
    if foreign:
        raise MeasureError(
            f"{origin.name} calls {_listed(foreign)}, which XLA does not answer for: what that is is not in the file. "
            "Only the function that the file was made of can be measured."
        )
    own = [name for name in called if name not in callbacks]
    return f"{origin.name} from a file: {count} operations, {_listed(own) if own else 'no custom calls'}"


def refuse_memory_access(subject: Subject) -> None:
    """Raise MeasureError where a file's module is more than functions of arrays, as MLIR's own tools would run it."""
    if not subject.origin.from_file:
        return
    with subject.lock:
        found = {str(op.name) for op in operations(subject.origin.module.operation) if not _is_on_tensors(op)}
    if found:
        raise MeasureError(
            f"{subject.origin.name} is a file with {_listed(sorted(found))}: code that may reach outside of its own "
            "arrays is not run."
        )


def _is_on_tensors(operation: Any) -> bool:
    name = str(operation.name)
    declared = name == "func.func" and not len(operation.regions[0].blocks)
    return not declared and name.partition(".")[0] in _ON_TENSORS


def _listed(names: list[str]) -> str:
    shown = [name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…" for name in names[:_SHOWN]]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, shown)) + more
