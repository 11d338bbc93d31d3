"""A donation as the code that makes it: the user's own call, in the words of the framework that jits it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from donation_inspector.analysis.fifo import pair_in_order
from donation_inspector.analysis.paths import steps
from donation_inspector.common.signature import Donation, Leaf, Signature

if TYPE_CHECKING:
    from donation_inspector.frameworks.ways import Way
    from donation_inspector.program.subject import Subject, Whole

_WIDTH = 100
_NUMBER = re.compile(r"\[\d+\]")
_MOST_ORDERS = 120
"""Orders of the returned values that are tried: all of five."""


def code_for(subject: Subject, donated: frozenset[int], pairs: Mapping[int, int]) -> str:
    """The lines that make exactly this donation, to be pasted below the function; a comment where nothing is to change.

    `donated` are flat leaves, `pairs` flat argument to flat result. Where the user's jit cannot be told to, the lines
    are comments that say what to do. They run where the function is in scope by its own name, with `jax`, `nnx` or
    `eqx` imported as these are usually.
    """
    return "\n".join(_Code(subject, donated, dict(pairs)).lines())


def reorders(subject: Subject, donated: frozenset[int], pairs: Mapping[int, int]) -> bool:
    """Whether that code makes the pairs by another order of what the program takes and returns."""
    return _Code(subject, donated, dict(pairs)).reorders


@dataclass(frozen=True, eq=False)
class _Code:
    subject: Subject
    donated: frozenset[int]
    pairs: dict[int, int]

    @property
    def way(self) -> Way | None:
        return self.subject.origin.way

    @property
    def signature(self) -> Signature:
        return self.subject.signature

    @property
    def reorders(self) -> bool:
        """Whether a `di.jit` is written, or another order of the returned values, which is the same program."""
        way = self.way
        if way is None or way.kind in ("equinox", "nnx") or not self.pairs:
            return False
        return not any(self._are(made) for made in (self.subject.origin.decide(self._own), self._by_jax()))

    def _by_jax(self) -> Donation:
        return self._decided(_leaves(self._wholes()))

    def lines(self) -> list[str]:
        if self._are(self.subject.origin.decide(self._own)):
            return [f"# Nothing to change: {self._as_it_is()}."]
        way, wholes = self.way, self._wholes()
        if way is None:
            return self._of_a_file(wholes)
        if way.kind == "equinox":
            return self._equinox(way)
        if not self.pairs or self._are(self._by_jax()):
            return self._with_jit(way, wholes)
        return self._nnx(way, wholes) if way.kind == "nnx" else self._paired(way, wholes)

    # ---- what JAX makes of a donated set

    def _decided(self, leaves: frozenset[int]) -> Donation:
        """What JAX makes of a donated set without pairs of our own."""
        if self.way is not None and self.way.kind == "paired":
            return pair_in_order(self.signature, Donation(), leaves)
        return self.subject.origin.decide(leaves)

    def _are(self, decided: Donation) -> bool:
        """Whether these are exactly the pairs, and nothing else is donated."""
        arguments, results = self.subject.leaf_of_argument, self.subject.leaf_of_result
        made = {
            arguments[argument]: results[result]
            for argument, result in decided.aliases.items()
            if argument in arguments and result in results
        }
        given = self._places(decided)
        return made == self.pairs and self._left_to_xla <= given <= self.donated

    def _places(self, decided: Donation) -> set[int]:
        """The leaves whose buffers the program may overwrite."""
        arguments = self.subject.leaf_of_argument
        return {arguments[position] for position in decided.positions if position in arguments}

    @cached_property
    def _left_to_xla(self) -> set[int]:
        """The donated leaves that no result of their own type takes over, and XLA may use."""
        donors = self.subject.origin.decide(self.donated).donors
        return self._places(Donation(donors=donors)) - set(self.pairs)

    @property
    def _own(self) -> frozenset[int]:
        return frozenset(leaf.index for leaf in self.signature.arguments if leaf.donated)

    def _wholes(self) -> list[Whole]:
        """The whole arguments whose donation makes a difference."""
        needed = {*self.pairs, *self._left_to_xla}
        return [whole for whole in self.subject.wholes if not needed.isdisjoint(whole.leaves)]

    def _as_it_is(self) -> str:
        if not self._own:
            return "no donation makes the program smaller"
        names = [whole.name for whole in self.subject.wholes if not self._own.isdisjoint(whole.leaves)]
        return f"{self.subject.origin.name} already donates {_listed(names)}, and JAX's own pairing is this one"

    # ---- jax.jit, nnx.jit

    def _with_jit(self, way: Way, wholes: Sequence[Whole]) -> list[str]:
        """The jit that donates whole arguments, which JAX pairs as wanted by itself."""
        call = "nnx.jit" if way.kind == "nnx" else "jax.jit"
        roots = [whole.name for whole in wholes]
        donating = way.donating(roots)
        if donating is None:
            return [
                f"# {call} knows {_listed(roots)} of {way.name} by no name or number. Give them as parameters of their",
                "# own and donate these.",
            ]
        return _placed(way, call, donating)

    # ---- pairs that are not JAX's own

    def _paired(self, way: Way, wholes: Sequence[Whole]) -> list[str]:
        left = [self.signature.arguments[leaf].path for leaf in sorted(self.donated - set(self.pairs))]
        lines = [f"# Without a pair, and not donated here: {_listed(left)}."] if left else []
        reordered = self._reordered(way, _leaves(wholes), self._with_jit(way, wholes))
        if reordered:
            lines += [*reordered, "# With the results as they are (di is donation_inspector):"]
        written = _placed(way, "di.jit", f"pairs={_dict(self.signature, self.pairs)}")
        return [*lines, *(["import donation_inspector as di", ""] if written[0][0] != "#" else []), *written]

    def _reordered(self, way: Way, leaves: frozenset[int], jit: Sequence[str]) -> list[str]:
        """How these lines give the pairs where the function returns its results in another order, if there is one."""
        order = self._order(leaves)
        if order is None:
            return []
        return [
            "# JAX gives the first donated argument to the first result of its shape and dtype. It makes these pairs",
            f"# by itself where {way.name} returns its results in the order {', '.join(order)}:",
            *(line if line.startswith("#") else f"#     {line}" for line in jit),
        ]

    def _order(self, leaves: frozenset[int]) -> tuple[str, ...] | None:
        """The order of the returned tuple's parts with which first in, first out gives the pairs; None without one."""
        signature = self.signature
        parts: dict[str, list[Leaf]] = {}
        ahead: list[Leaf] = []
        for result in signature.results:
            part = next(iter(steps(result.path)), "")
            (parts.setdefault(part, []) if _NUMBER.fullmatch(part) else ahead).append(result)
        # A framework's own result keeps its place before the user's.
        alone = not ahead or (signature.returned is None and {leaf.path for leaf in ahead} == {"eqx marker"})
        if not alone or len(parts) < 2 or (signature.returned or "(")[0] not in "([":
            return None
        taker = {result: argument for argument, result in self.pairs.items()}
        natural = sorted(parts, key=lambda part: min(taker.get(leaf.index, 1 << 60) for leaf in parts[part]))
        arguments, results = signature.arguments, signature.results
        wanted = {arguments[argument].position: results[result].position for argument, result in self.pairs.items()}
        for order in itertools.islice(itertools.chain([natural], itertools.permutations(parts)), _MOST_ORDERS):
            returned = (*ahead, *(leaf for part in order for leaf in parts[part]))
            made = pair_in_order(replace(signature, results=returned), Donation(), leaves)
            if dict(made.aliases) == wanted:
                return tuple(order)
        return None

    # ---- other frameworks

    def _nnx(self, way: Way, wholes: Sequence[Whole]) -> list[str]:
        left_out = sorted(_leaves(wholes) - self.donated)
        if left_out and self._are(self._decided(self.donated)):
            return [
                f"# nnx.jit donates whole arguments, and not all of one but "
                f"{_listed([self.signature.arguments[leaf].path for leaf in left_out])}. The nearest to it here:",
                *self._with_jit(way, wholes),
            ]
        return [
            "# nnx.jit pairs what the step changes in its own order: these pairs cannot be told to it. A pure function",
            "# of nnx.split's state can be given to donation_inspector.jit. The nearest to them here:",
            *self._with_jit(way, wholes),
        ]

    def _equinox(self, way: Way) -> list[str]:
        everything = frozenset(leaf.index for leaf in self.signature.arguments)
        first = {whole.name for whole in self.subject.wholes[:1]}
        if way.positional:
            first = {way.positional[0]}
        ahead = frozenset(leaf for whole in self.subject.wholes if whole.name in first for leaf in whole.leaves)
        line = f'{way.name} = eqx.filter_jit({way.name}, donate="{{}}")'
        if not way.name:
            line = '# Where it is made: eqx.filter_jit(…, donate="{}")'
        words = {"all": everything, "all-except-first": everything - ahead, "none": frozenset[int]()}
        for word, leaves in words.items():
            if self._are(self._decided(leaves)):
                return [*self._with_the_rest(leaves), line.format(word)]
        for word, leaves in words.items():
            if self._places(self._decided(leaves)) == {*self.pairs, *self._left_to_xla}:
                return self._reordered(way, leaves, [line.format(word)]) or [
                    "# eqx.filter_jit pairs what it donates in its order, and cannot be told these pairs. The nearest:",
                    line.format(word),
                ]
        wholes = self._wholes()
        kept = [whole.name for whole in self.subject.wholes if whole not in wholes]
        donated = [whole.name for whole in wholes]
        return [
            "# eqx.filter_jit donates all arguments or all but the first, and pairs them in their order. To donate",
            f"# {_listed(donated)} alone, put what is kept into the first argument, as a tuple ({_listed(kept)},), and",
            f"#     {line.format('all-except-first')}",
        ]

    def _with_the_rest(self, leaves: frozenset[int]) -> list[str]:
        """What is donated with a group of arguments, and given back because no result takes it over."""
        wanted = {whole.name for whole in self._wholes()}
        rest = [w.name for w in self.subject.wholes if w.name not in wanted and not leaves.isdisjoint(w.leaves)]
        return [f"# {_listed(rest)}: donated with the rest, and alive afterwards, as no result fits."] if rest else []

    def _of_a_file(self, wholes: Sequence[Whole]) -> list[str]:
        donated = _listed([whole.name for whole in wholes]) or "nothing"
        return [
            f"# A file has no call to rewrite. Donated: {donated}, with the pairs",
            *_commented(_dict(self.signature, self.pairs)),
        ]


def _leaves(wholes: Sequence[Whole]) -> frozenset[int]:
    return frozenset(leaf for whole in wholes for leaf in whole.leaves)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown


def _placed(way: Way, call: str, more: str) -> list[str]:
    """The assignment that jits the function in another way, or where to do that by hand."""
    partial = f"functools.partial({_joined(call, way.static, more)})"
    if way.kind == "method":
        return [
            f"# {way.name} is a method, which no assignment replaces. Above its def, in place of a jit there:",
            *_commented(f"@{partial}"),
        ]
    if way.kind in ("unnamed", "exported"):
        return [
            f"# {way.name} has no name that an assignment could replace. Where it is made, give it to",
            *_commented(partial),
        ]
    if way.shardings:
        return [
            f"# The jit of {way.name} has options that another one around it would not have. Write it with",
            *_commented(_joined(call if call == "di.jit" else "", more) or "nothing donated"),
        ]
    return [f"{way.assigned} = {call}({_joined(way.function, way.static, more)})"]


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _commented(text: str) -> list[str]:
    return [f"#     {line}" for line in text.splitlines()]


# ---- pairs as a dictionary of paths


def _dict(signature: Signature, pairs: Mapping[int, int]) -> str:
    entries = [f'"{_escaped(a)}": "{_escaped(r)}"' for a, r in _entries(signature, pairs)]
    one_line = f"{{{', '.join(entries)}}}"
    if len(one_line) <= _WIDTH:
        return one_line
    return "{\n" + "".join(f"    {entry},\n" for entry in entries) + "}"


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')


def _entries(signature: Signature, pairs: Mapping[int, int]) -> Iterator[tuple[str, str]]:
    """The pairs by path, one entry for a whole tree where all below it goes to what stands in the same place."""
    below: dict[str, list[int]] = {}
    for leaf in signature.arguments:
        for prefix in _prefixes(leaf.path, leaf.root):
            below.setdefault(prefix, []).append(leaf.index)
    results: dict[str, list[int]] = {}
    for leaf in signature.results:
        for prefix in _prefixes(leaf.path, ""):
            results.setdefault(prefix, []).append(leaf.index)
    done: set[int] = set()
    for argument in sorted(pairs):
        if argument in done:
            continue
        path, root = signature.arguments[argument].path, signature.arguments[argument].root
        target = signature.results[pairs[argument]].path
        for prefix in _prefixes(path, root):
            rest = path.removeprefix(prefix)
            if not target.endswith(rest) or target == rest:
                continue
            there = target[: len(target) - len(rest)]
            taken = [pairs.get(leaf) for leaf in below[prefix]]
            if taken == results.get(there) and None not in taken:
                done.update(below[prefix])
                yield prefix, there
                break


def _prefixes(path: str, root: str) -> list[str]:
    """The path's prefixes at whole steps, from the argument as a whole to the leaf itself."""
    found = [root] if root else []
    for step in steps(path.removeprefix(root)):
        found.append((found[-1] if found else "") + step)
    # A key with both kinds of quotes in it is no step that is understood.
    return found if found and found[-1] == path else [path]
