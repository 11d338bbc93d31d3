"""What XLA did, once it has compiled, with a donated argument that JAX left to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from donation_inspector.analysis.donation import Argument, Result, Verdict
from donation_inspector.analysis.paths import noun
from donation_inspector.common.units import format_bytes


def usable_donors(arguments: Sequence[Argument], results: Sequence[Result]) -> frozenset[int]:
    """The arguments left to XLA that it can use: each has a free result of as many bytes on a device.

    Where a result's sharding is left to XLA, of as many bytes in all.
    """
    free = Counter(_size(result) for result in results if result.argument is None)
    usable: set[int] = set()
    for argument in arguments:
        for size in (("a device", argument.nbytes_per_device), ("in all", argument.nbytes)):
            if argument.verdict is Verdict.DONOR and None not in size and free[size]:
                free[size] -= 1
                usable.add(argument.index)
                break
    return frozenset(usable)


def _size(result: Result) -> tuple[str, int | None]:
    known = result.nbytes_per_device is not None
    return ("a device", result.nbytes_per_device) if known else ("in all", result.nbytes)


def donor_outcome(
    argument: Argument, arguments: Sequence[Argument], results: Sequence[Result], alias: Mapping[int, int]
) -> str | None:
    """One sentence about an argument left to XLA; None for every other argument.

    alias: the compiled module's own `input_output_alias`, from argument indices to result indices.
    """
    if argument.verdict is not Verdict.DONOR:
        return None
    if argument.index in alias:
        return f"XLA reused it for {noun(results[alias[argument.index]].title)}"
    return f"XLA did not reuse it: {_why_not(argument, arguments, results, alias)}"


def _why_not(
    argument: Argument, arguments: Sequence[Argument], results: Sequence[Result], alias: Mapping[int, int]
) -> str:
    takers = {result: taker for taker, result in alias.items()}
    size = argument.nbytes_per_device
    alike = [result for result in results if size is not None and result.nbytes_per_device == size]
    free = next((result for result in alike if result.index not in takers), None)
    if free is not None:
        return f"{noun(free.title)} has as many bytes, but XLA gave it a buffer of its own"
    whole = argument.nbytes
    unplaced = [
        result
        for result in results
        if result.nbytes_per_device is None and whole is not None and result.nbytes == whole
    ]
    free = next((result for result in unplaced if result.index not in takers), None)
    if free is not None:
        return (
            f"{noun(free.title)} has as many bytes in all, and XLA sharded it in its own way or gave it another buffer"
        )
    taken = [*alike, *unplaced]
    if taken:
        taker = arguments[takers[taken[0].index]].path
        if len(taken) == 1:
            return f"{noun(taken[0].title)}, the only result of as many bytes, took the buffer of {taker}"
        return f"all {len(taken)} results of as many bytes took other buffers, {noun(taken[0].title)} that of {taker}"
    if size is None or any(result.nbytes_per_device is None for result in results):
        return "no result is known to have as many bytes"
    return f"no result has as many bytes ({format_bytes(size)})"
