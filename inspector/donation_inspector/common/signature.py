"""What a traced function takes and returns, and what was decided about donating it: plain data, shared by all layers.

Two index spaces exist and are never mixed. A *leaf index* counts the user's flat arrays in JAX's order, those that
JAX drops included. A *position* counts the arguments (or results) of the module's entry function, tokens and other
implicit ones included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from donation_inspector.common import visible

Shape = tuple[int | None, ...]
"""Dimensions; None where the size is dynamic."""

ENTRY = "donation_inspector.entry"
"""The attribute of a module that names its entry function, where somebody chose another one than the rule gives."""

Ignored = Literal["inner jit", "debug_nans", "disable_jit"]
"""Why a donation that somebody wrote never reached the program: an inner jit asks for it, or a setting of JAX is on."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One flat array that the user passes or gets back.

    `nbytes` is global, as `jax.Array.nbytes`; `nbytes_per_device` is one device's shard. None means unknown.
    `position` is its place in the entry function, None where JAX dropped an unused argument.
    `root` is the whole argument that it belongs to, as the user wrote it: `params` for `params['w']`, `args[0]` for
    `args[0].count`; results have none.

    Over several devices `sharding` says all in one, and is None where XLA is left to choose. `spec` is the
    `PartitionSpec` alone, "P('x', None)", and `mesh` the axes that it names, "x: 4, y: 2": both are None where no mesh
    with named axes is told. `memory` is the memory kind, `layout` the order of dimensions; None is the default.
    `ignored` is why nobody's donation of it counts, though somebody wrote one.

    `added_by` is the part of a framework that keeps it for itself, "nnx.Optimizer" for its count of steps; None for
    what is the user's. `updates` is the path of the argument that a result is the new value of, None where that is not
    plain.
    """

    index: int
    path: str
    shape: Shape
    dtype: str
    nbytes: int | None
    shard_shape: Shape
    nbytes_per_device: int | None
    position: int | None
    sharding: str | None = None
    donated: bool = False
    root: str = ""
    spec: str | None = None
    mesh: str | None = None
    memory: str | None = None
    layout: str | None = None
    ignored: Ignored | None = None
    added_by: str | None = None
    updates: str | None = None

    def __post_init__(self) -> None:
        # whoever names it: no path moves the cursor of the terminal that it is written on
        for name in ("path", "root"):
            written = getattr(self, name)
            if not written.isprintable():
                object.__setattr__(self, name, visible.one_line(written))

    @property
    def title(self) -> str:
        """`params['w'], updated` for a result that is plainly an argument's new value, else the path."""
        return updated(self.updates) if self.updates else self.path


def updated(path: str) -> str:
    """How the new value of an argument is called: `params['w'], updated`."""
    return f"{path}, updated"


@dataclass(frozen=True, slots=True)
class Implicit:
    """An argument or result of the entry function that no user leaf stands for.

    `kind` is one of "token", "ref", "constant", "dimension", "unknown".
    """

    position: int
    kind: str
    type: str


@dataclass(frozen=True, slots=True)
class Signature:
    """The user's flat arguments and results, and what the entry function has besides them.

    `devices` is how many the program runs on.
    `returned` is the pytree that the function returns, as a Python literal with result indices for arrays:
    "({'w': 0, 'b': 1}, None)". A node that is no tuple, list or dict is the set of the indices below it. None where
    nothing about the tree is known, or where the function's jit does not take a `jax.sharding.Sharding` for it.
    """

    arguments: tuple[Leaf, ...]
    results: tuple[Leaf, ...]
    implicit_arguments: tuple[Implicit, ...] = ()
    implicit_results: tuple[Implicit, ...] = ()
    devices: int = 1
    returned: str | None = None


def _no_aliases() -> Mapping[int, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Donation:
    """What stands at the entry function about donation, by position.

    `aliases` maps an argument to the result that takes its buffer (`tf.aliasing_output`);
    `donors` are the arguments left to XLA (`jax.buffer_donor`).
    """

    aliases: Mapping[int, int] = field(default_factory=_no_aliases)
    donors: frozenset[int] = frozenset()

    @property
    def positions(self) -> frozenset[int]:
        """Every argument position whose buffer the program may overwrite."""
        return frozenset(self.aliases) | self.donors


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An entry function whose arguments and results stand in another order: at each place, the position of what stands
    there in the one that is known."""

    arguments: tuple[int, ...]
    results: tuple[int, ...]

    @property
    def changes_nothing(self) -> bool:
        """Whether everything stands where it stood."""
        return all(order == tuple(range(len(order))) for order in (self.arguments, self.results))

    def applied_to(self, donation: Donation) -> Donation:
        """The same donation, by the positions of the other order."""
        arguments = {position: place for place, position in enumerate(self.arguments)}
        results = {position: place for place, position in enumerate(self.results)}
        aliases = {arguments[argument]: results[result] for argument, result in donation.aliases.items()}
        return Donation(MappingProxyType(aliases), frozenset(arguments[position] for position in donation.donors))

    def signature(self, signature: Signature) -> Signature:
        """The same leaves in the other order, each with the position that it is known by."""
        arguments = {leaf.position: leaf for leaf in signature.arguments}
        results = {leaf.position: leaf for leaf in signature.results}
        return replace(
            signature,
            arguments=tuple(arguments[position] for position in self.arguments if position in arguments),
            results=tuple(results[position] for position in self.results if position in results),
        )
