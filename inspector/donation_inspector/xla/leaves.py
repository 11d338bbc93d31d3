"""The user's flat arguments and results: their names, sizes, shardings and places in the entry function."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from jax.sharding import NamedSharding, PartitionSpec

from donation_inspector.common.signature import Implicit, Leaf, Shape, Signature
from donation_inspector.xla import attributes, internals
from donation_inspector.xla.facts import Facts


class Name(NamedTuple):
    """A user's name for a flat array: `opt_state` and `[0].mu['w']`."""

    root: str
    """The whole argument, as the user wrote it; empty for results."""
    rest: str
    added_by: str | None = None
    """As in `Leaf`."""
    updates: str | None = None
    """As in `Leaf`."""

    @property
    def path(self) -> str:
        """The whole name."""
        return self.root + self.rest


def argument_names(debug_info: Any, args_info: Any, count: int) -> tuple[Name, ...]:
    """The user's name of each of `count` flat arguments: `params['w']`, `state[0].mu['w']`, `args[0]` behind `*args`.

    JAX's own names, which know static arguments and the function's signature; where it has none, positional
    arguments are called `args[i]`.
    """
    plain = [_plain_name(keys) for keys, _ in leaves_with_path(args_info)]
    if len(plain) != count:
        # a structure that looks at its leaves has others where JAX's own words stand in their place
        plain = [Name(f"args[{index}]", "") for index in range(count)]
    given: Sequence[str] | None = debug_info.arg_names
    if given is None or len(given) < len(plain):
        return tuple(plain)
    given = given[len(given) - len(plain) :]
    named = [Name(path.removesuffix(name.rest), name.rest) for path, name in zip(given, plain, strict=True)]
    return distinct(named, plain)


def traced_names(traced: Any) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
    """The names of the flat arguments and results of a `jax.stages.Traced` that was not lowered."""
    results = tuple(Name("", key_path(keys) or "result") for keys, _ in leaves_with_path(traced.out_info))
    return argument_names(traced.jaxpr.jaxpr.debug_info, traced.args_info, len(traced.jaxpr.in_avals)), results


def distinct(names: Sequence[Name], otherwise: Sequence[Name]) -> tuple[Name, ...]:
    """`names`, but the other name where one is empty or used twice."""
    count = Counter(name.path for name in names)
    return tuple(
        name if name.path and count[name.path] == 1 else other for name, other in zip(names, otherwise, strict=True)
    )


def _plain_name(keys: tuple[Any, ...]) -> Name:
    kind, argument, *rest = keys
    root = f"args[{argument.idx}]" if kind.idx == 0 else str(argument.key)
    return Name(root, key_path(tuple(rest)))


def result_names(facts: Facts) -> tuple[Name, ...]:
    """The path of each flat result in what the function returns, `[0]['w']`; `result` where it returns one array."""
    found = tuple(Name("", key_path(keys) or "result") for keys, _ in leaves_with_path(_numbered_results(facts)))
    count = facts.order.returned.num_leaves
    return found if len(found) == count else tuple(Name("", f"[{index}]") for index in range(count))


def _numbered_results(facts: Facts) -> Any:
    returned = facts.order.returned
    return internals.public_trees.tree_unflatten(returned, range(returned.num_leaves))


def leaves_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[tuple[Any, ...], Any]]:
    """JAX's (keys, leaf) pairs of a pytree."""
    return internals.public_trees.tree_flatten_with_path(tree, is_leaf)[0]


def key_path(keys: tuple[Any, ...]) -> str:
    """JAX's `keystr`, but `[0]` where a container numbers its leaves without keys."""
    return re.sub(r"<flat index (\d+)>", r"\1", internals.public_trees.keystr(keys))


def read_signature(facts: Facts, arguments: Sequence[Name], results: Sequence[Name]) -> Signature:
    """Arguments and results as the user sees them, given their names."""
    kept = {leaf: order for order, leaf in enumerate(facts.kept)}
    leaves = tuple(
        _leaf(
            index=index,
            name=name,
            aval=aval,
            position=None if index not in kept else facts.first_kept + kept[index],
            sharding=None if index not in kept else facts.in_shardings[len(facts.constants) + kept[index]],
            layout=None if index not in kept else _nth(facts.in_layouts, len(facts.constants) + kept[index]),
            one_device=facts.partitions == 1,
            donated=donated,
        )
        for index, (name, aval, donated) in enumerate(zip(arguments, facts.leaf_avals, facts.leaf_donated, strict=True))
    )
    own = [i for i, reference in enumerate(facts.result_reference) if reference is None]
    place = dict(zip(facts.order.results, own, strict=True))
    user_results = [place[leaf] for leaf in range(len(own))]
    returned = tuple(
        _leaf(
            index=index,
            name=name,
            aval=facts.out_avals[i],
            position=facts.tokens + i,
            sharding=facts.out_shardings[i],
            layout=_nth(facts.out_layouts, i),
            one_device=facts.partitions == 1,
            donated=False,
        )
        for index, (name, i) in enumerate(zip(results, user_results, strict=True))
    )
    # A framework that names the results anew returns a tree of its own, and its jit takes shardings in its own way.
    own = [name.path for name in results] == [name.path for name in result_names(facts)]
    tree = _literal(_numbered_results(facts)) if own else None
    return Signature(leaves, returned, *_implicit(facts, leaves, returned), facts.partitions, tree)


def _literal(tree: Any) -> str:
    if tree is None or type(tree) is int:
        return repr(tree)
    if type(tree) is tuple:
        parts = tuple(map(_literal, cast("tuple[Any, ...]", tree)))
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if type(tree) is list:
        return f"[{', '.join(map(_literal, cast('list[Any]', tree)))}]"
    if type(tree) is dict and all(type(key) in (str, int) for key in cast("dict[Any, Any]", tree)):
        items = cast("dict[Any, Any]", tree).items()
        return f"{{{', '.join(f'{key!r}: {_literal(part)}' for key, part in items)}}}"
    below: list[int] = internals.public_trees.tree_leaves(tree)
    return f"{{{', '.join(map(str, below))}}}" if below else "set()"


def _nth(layouts: Any, index: int) -> Any:
    return None if layouts is None else layouts[index]


def _leaf(
    *,
    index: int,
    name: Name,
    aval: Any,
    position: int | None,
    sharding: Any,
    layout: Any,
    one_device: bool,
    donated: bool,
) -> Leaf:
    shape = _shape(aval.shape)
    shard = _shard_shape(shape, aval, sharding, one_device)
    named = sharding if isinstance(sharding, NamedSharding) and sharding.num_devices > 1 else None
    return Leaf(
        index=index,
        path=name.path,
        shape=shape,
        dtype=str(aval.dtype),
        nbytes=_nbytes(shape, aval.dtype),
        shard_shape=shard,
        nbytes_per_device=_nbytes(shard, aval.dtype),
        position=position,
        sharding=sharding_text(sharding),
        donated=donated,
        root=name.root,
        spec=None if named is None else spec_text(named),
        mesh=None if named is None else mesh_text(named),
        memory=None if sharding is None or sharding.memory_kind in _DEVICE_MEMORY else sharding.memory_kind,
        layout=_layout_text(layout),
        added_by=name.added_by,
        updates=name.updates,
    )


_DEVICE_MEMORY = (None, "device")


def _layout_text(layout: Any) -> str | None:
    if layout is None:
        return None
    order = getattr(layout, "major_to_minor", None)
    return str(layout) if order is None else f"major to minor {tuple(order)}"


def _shape(dimensions: Sequence[Any]) -> Shape:
    return tuple(size if isinstance(size, int) else None for size in dimensions)


def _shard_shape(shape: Shape, aval: Any, sharding: Any, one_device: bool) -> Shape:
    if one_device or not shape:
        return shape
    if sharding is None or None in shape:
        return (None,) * len(shape)
    try:
        return tuple(sharding.shard_shape(tuple(aval.shape)))
    except ValueError:
        return (None,) * len(shape)


def _nbytes(shape: Shape, dtype: Any) -> int | None:
    sizes = [size for size in shape if size is not None]
    if len(sizes) < len(shape):
        return None
    return math.prod(sizes) * int(dtype.itemsize)


def sharding_text(sharding: Any) -> str | None:
    """`P('data', None) over (data: 4, model: 2)`; None for one device or where XLA chooses."""
    if sharding is None or sharding.num_devices == 1:
        return None
    memory = "" if sharding.memory_kind in _DEVICE_MEMORY else f" in {sharding.memory_kind}"
    if not isinstance(sharding, NamedSharding):
        whole = "replicated" if sharding.is_fully_replicated else "split"
        return f"{whole} over {sharding.num_devices} devices{memory}"
    return f"{spec_text(sharding)} over ({mesh_text(sharding)}){memory}"


def spec_text(sharding: NamedSharding) -> str:
    """`P('data', None)`: the PartitionSpec as its newer repr has it, whichever JAX prints it."""
    spec: Any = sharding.spec
    entries = ["P.UNCONSTRAINED" if one is PartitionSpec.UNCONSTRAINED else repr(one) for one in spec]
    for word in ("unreduced", "reduced"):
        axes: Any = getattr(spec, word, ())
        entries += [f"{word}={{{', '.join(repr(axis) for axis in sorted(axes))}}}"] if axes else []
    return f"P({', '.join(entries)})"


def mesh_text(sharding: NamedSharding) -> str:
    """`data: 4, model: 2`."""
    return ", ".join(f"{axis}: {size}" for axis, size in sharding.mesh.shape.items())


def _implicit(
    facts: Facts, arguments: Sequence[Leaf], results: Sequence[Leaf]
) -> tuple[tuple[Implicit, ...], tuple[Implicit, ...]]:
    kept = len(facts.kept)
    argument_kinds = (
        *["dimension"] * facts.dimensions,
        *["token"] * facts.tokens,
        *["constant"] * len(facts.constants),
        *["leaf"] * kept,
        *["ref"] * len(facts.references),
    )
    result_kinds = (
        *["token"] * facts.tokens,
        *["leaf" if reference is None else "ref" for reference in facts.result_reference],
    )
    return (
        _not_leaves(argument_kinds, attributes.argument_types(facts.module), arguments),
        _not_leaves(result_kinds, attributes.result_types(facts.module), results),
    )


def _not_leaves(kinds: Sequence[str], types: Sequence[str], leaves: Sequence[Leaf]) -> tuple[Implicit, ...]:
    taken = {leaf.position for leaf in leaves}
    return tuple(
        Implicit(position, kinds[position] if position < len(kinds) else "unknown", type_)
        for position, type_ in enumerate(types)
        if position not in taken
    )
