"""From one program to the same program at other sizes: traced again from shapes, compiled for a target, not run."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from donation_inspector.common.visible import repr_of
from donation_inspector.errors import PathError, TraceError
from donation_inspector.program.selection import select
from donation_inspector.questions.compare import ask as compiling
from donation_inspector.questions.compare.answer import Variant
from donation_inspector.questions.sweep.answer import Size, Sweep, SweepRow, sizes_words

if TYPE_CHECKING:
    from donation_inspector.common.progress import Progress
    from donation_inspector.common.signature import Donation, Leaf, Shape, Signature
    from donation_inspector.program.subject import Subject
    from donation_inspector.xla.results import Compiled
    from donation_inspector.xla.targets import Target

Shapes = dict[int, tuple[int, ...]]


def sweep(
    subject: Subject,
    donated: frozenset[int],
    sizes: Mapping[str, Sequence[Any]],
    target: Target,
    *,
    progress: Progress,
    cancel: threading.Event | None,
) -> Sweep:
    """See `Inspection.sweep`; `donated` are leaf indices."""
    values = _values(sizes)
    steps = [{name: several[i] for name, several in values.items()} for i in range(len(next(iter(values.values()))))]
    shapes = [_shapes(subject.signature, step) for step in steps]
    there = [_lowered(subject, one, target, cancel) for one in shapes]
    programs = [
        (sizes_words(step), one, _donations(one, donated))
        for step, one in zip(steps, there, strict=True)
        if not isinstance(one, str)
    ]
    compiled = iter(compiling.compile_programs(programs, target, progress=progress, cancel=cancel))
    return Sweep(
        subject.origin.name,
        target.name,
        tuple(
            SweepRow(
                step,
                {subject.signature.arguments[leaf].path: shape for leaf, shape in changed.items()},
                {} if isinstance(one, str) else _variants(next(compiled), target),
                one if isinstance(one, str) else None,
            )
            for step, changed, one in zip(steps, shapes, there, strict=True)
        ),
    )


def _lowered(subject: Subject, shapes: Shapes, target: Target, cancel: threading.Event | None) -> Subject | str:
    """The program at these shapes for the target's platform, or why there is none."""
    if cancel is not None and cancel.is_set():
        return "Cancelled."
    try:
        return subject.resized(shapes).on(target.platform)
    except TraceError as error:
        return str(error)


def _donations(subject: Subject, donated: frozenset[int]) -> dict[str, Donation]:
    return {"none": subject.undonated, "jax": subject.origin.decide(donated)}


def _variants(compiled: Mapping[str, Compiled], target: Target) -> dict[str, Variant]:
    return {
        name: Variant(
            name,
            result.memory,
            {},
            result.seconds,
            result.status,
            result.error,
            capacity=target.capacity or result.capacity,
        )
        for name, result in compiled.items()
    }


# ---- what is asked for


def asked(sizes: object, by_name: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Sizes by argument from both ways to give them. Raises TraceError."""
    if not isinstance(sizes, Mapping | None):
        raise TraceError(
            f"sweep({repr_of(sizes)}): say of which argument, sweep(batch=[8, 16, 32]); a target is given as "
            "target='tpu:v5e'."
        )
    return {**cast("Mapping[str, Sequence[Any]]", sizes or {}), **by_name}


def _values(sizes: Mapping[str, Sequence[Any]]) -> dict[str, list[Size]]:
    """Raises TraceError: nothing to sweep over, sizes that are none, lists of different lengths."""
    if not sizes:
        raise TraceError("sweep needs sizes: sweep(batch=[8, 16, 32]), by the name of an argument.")
    values = {name: _sizes(name, several) for name, several in sizes.items()}
    lengths = {name: len(several) for name, several in values.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise TraceError(f"The sizes of several arguments change together, so there must be as many of each ({told}).")
    return values


def _sizes(name: str, several: object) -> list[Size]:
    if isinstance(several, str | int) or not isinstance(several, Iterable):
        raise TraceError(f"{name}={repr_of(several)} is no list of sizes: write {name}=[8, 16, 32].")
    found = [_size(name, one) for one in cast("Sequence[Any]", several)]
    if not found:
        raise TraceError(f"{name}=[] has no sizes: write {name}=[8, 16, 32].")
    return found


def _size(name: str, given: Any) -> Size:
    whole = isinstance(given, tuple | list)
    parts = cast("Sequence[Any]", given) if whole else (given,)
    try:
        dimensions = [operator.index(one) for one in parts]
    except TypeError:
        dimensions = [-1]
    if any(isinstance(one, bool) for one in parts) or any(one < 0 for one in dimensions):
        raise TraceError(
            f"{name}: {repr_of(given)} is no size. A size is the leading dimension, as 16, or a whole shape, as "
            "(16, 128)."
        )
    return tuple(dimensions) if whole else dimensions[0]


def _shapes(signature: Signature, sizes: Mapping[str, Size]) -> Shapes:
    """The shapes of the arguments that change. Raises PathError, TraceError."""
    changed: Shapes = {}
    for name, size in sizes.items():
        leaves = [signature.arguments[leaf] for leaf in sorted(select(signature, [name]))]
        for leaf, shape in (
            _whole(name, leaves, size) if isinstance(size, tuple) else _leading(name, leaves, size)
        ).items():
            if leaf in changed:
                raise PathError(f"{signature.arguments[leaf].path} is meant by more than one of {', '.join(sizes)}.")
            changed[leaf] = shape
    return changed


def _whole(name: str, leaves: Sequence[Leaf], shape: tuple[int, ...]) -> Shapes:
    if len(leaves) > 1:
        raise PathError(
            f"{name} is {len(leaves)} arrays, and {shape} the shape of one. Name it: "
            f"sweep({{{leaves[0].path!r}: [{shape}]}}), or give the leading dimension alone."
        )
    return {leaves[0].index: shape}


def _leading(name: str, leaves: Sequence[Leaf], size: int) -> Shapes:
    """The same with another leading dimension, which has to be the same one in all; scalars stay as they are."""
    known = {leaf.index: _known(leaf.shape, leaf) for leaf in leaves if leaf.shape}
    if not known:
        raise PathError(f"{name} has no dimension that could change: it is a scalar.")
    leading: dict[int, str] = {}
    for leaf in leaves:
        if leaf.shape:
            leading.setdefault(known[leaf.index][0], leaf.path)
    if len(leading) > 1:
        told = ", ".join(f"{path} has {one}" for one, path in list(leading.items())[:4])
        path = next(iter(leading.values()))
        raise PathError(
            f"The arrays of {name} have different leading dimensions: {told}. Name those that change: "
            f"sweep({{{path!r}: [{size}]}})."
        )
    return {index: (size, *shape[1:]) for index, shape in known.items()}


def _known(shape: Shape, leaf: Leaf) -> tuple[int, ...]:
    sizes = tuple(one for one in shape if one is not None)
    if len(sizes) < len(shape):
        raise TraceError(f"{leaf.path} has a dynamic shape: there is no size to change.")
    return sizes
