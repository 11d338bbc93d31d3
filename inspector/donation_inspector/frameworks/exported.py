"""`jax.export.Exported`: the program as a call of it runs, with the names that its function had.

What export loses: the names of results, static arguments, and donation. The exported module still says what was
donated, but a call of an Exported donates nothing, unless a `jax.jit` around it asks for it again.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from donation_inspector.errors import TraceError
from donation_inspector.frameworks.updates import sums_of, with_updates
from donation_inspector.xla import internals, lowering
from donation_inspector.xla.leaves import Name, distinct, key_path, leaves_with_path
from donation_inspector.xla.lowering import Lowered
from donation_inspector.xla.notes import Note
from donation_inspector.xla.stage import flat_inputs, trace


def behind(fn: Any) -> Any | None:
    """The `jax.export.Exported` that this is, or whose `call` this is or jits; None for anything else."""
    module = sys.modules.get("jax.export")
    if module is None:
        return None
    if not callable(fn):
        # an object that is no function may raise for whatever it is asked
        return fn if isinstance(fn, module.Exported) else None
    held = getattr(getattr(fn, "_fun", fn), "__self__", fn)
    return held if isinstance(held, module.Exported) else None


def lower(fn: Any, exported: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Lowered:
    """Trace and lower a call; without arguments, with the shapes that it was exported for.

    Raises:
        TraceError: as `lowering.lower`; it was exported for another platform; its sizes are not fixed.
    """
    name = str(exported.fun_name)
    _refuse_other_platforms(exported, name)
    if not args and not kwargs:
        args, kwargs = _shapes(exported, name)
    jitted = fn if hasattr(fn, "_fun") else internals.jit(exported.call)
    staged = trace(jitted, args, kwargs, name=name, inputs=flat_inputs(jitted, args, kwargs))
    entry, traced = _entry(exported), staged.traced

    def rename(arguments: Sequence[Name], results: Sequence[Name]) -> lowering.Names:
        named = distinct([entry[i].name or one for i, one in enumerate(arguments)], arguments)
        return named, with_updates(traced, (), sums_of(traced, named), named, results)

    lowered = lowering.from_stage(staged, rename)
    return dataclasses.replace(lowered, notes=(*lowered.notes, *_lost_donation(lowered, entry)))


def _shapes(exported: Any, name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    open_sizes = [str(aval) for aval in exported.in_avals if not all(isinstance(size, int) for size in aval.shape)]
    if open_sizes:
        raise TraceError(
            f"{name} was exported for sizes that are not fixed: {', '.join(open_sizes[:3])}. Give it arguments too, "
            "arrays or shapes: inspect(exported, *args)."
        )
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in exported.in_avals]
    return internals.public_trees.tree_unflatten(exported.in_tree, shapes)


def _refuse_other_platforms(exported: Any, name: str) -> None:
    here = internals.backends.get_backend().platform
    platforms: Sequence[str] = exported.platforms
    if here not in platforms and not (here == "gpu" and {"cuda", "rocm"} & set(platforms)):
        raise TraceError(
            f"{name} was exported for {', '.join(platforms)}, and this machine calls it on {here}. Export it for that "
            f"too (export(f, platforms=[…, {here!r}])), or look at the program alone: "
            "inspect_ir(exported.mlir_module_serialized)."
        )


@dataclass(frozen=True)
class _Argument:
    """A flat argument of the exported function: its own name, None where it is not kept, and what was done with it."""

    name: Name | None = None
    donated: bool = False


def _entry(exported: Any) -> list[_Argument]:
    """Each flat argument, read off the exported module, which has those that the function uses."""
    keys = [path for path, _ in leaves_with_path(_numbered(exported.in_tree))]
    found = [_Argument() for _ in keys]
    kept: Sequence[int] = exported.module_kept_var_idx
    # where sizes are not fixed, @main only looks at them and calls the function
    heads = [one for one in exported.mlir_module().splitlines() if one.lstrip().startswith(_HEADS)]
    written = _ARGUMENT.split(heads[-1])[1:] if heads else []
    for leaf, text in zip(kept, written[len(written) - len(kept) :], strict=False):
        rest = key_path(tuple(keys[leaf][2:]))
        path = next(iter(_LOCATION.findall(text)), "")
        name = Name(path.removesuffix(rest), rest) if path.endswith(rest) and path != rest else None
        found[leaf] = _Argument(name, "tf.aliasing_output" in text or "jax.buffer_donor" in text)
    return found


_HEADS = ("func.func public @main(", "func.func private @_wrapped_jax_export_main(")
_ARGUMENT = re.compile(r"%arg\d+: ")
_LOCATION = re.compile(r'loc\("([^"]*)"')


def _numbered(tree: Any) -> Any:
    return internals.public_trees.tree_unflatten(tree, range(tree.num_leaves))


def _lost_donation(lowered: Lowered, entry: Sequence[_Argument]) -> Iterator[Note]:
    """Donation that the exported function asked for and that a call does not."""
    leaves = [
        leaf
        for leaf, argument in zip(lowered.signature.arguments, entry, strict=True)
        if argument.donated and not leaf.donated
    ]
    if leaves:
        roots = dict.fromkeys(leaf.root for leaf in leaves)
        yield Note(
            "exported",
            f"The exported function donates {', '.join(roots)}, but a call of an Exported donates nothing. Ask for it "
            "again: jax.jit(exported.call, donate_argnums=…).",
            tuple(leaf.index for leaf in leaves),
        )
