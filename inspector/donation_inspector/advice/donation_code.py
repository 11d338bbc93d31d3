"""A donation as the code that makes it: the user's own call, in the words of the framework that jits it."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from donation_inspector.analysis.fifo import pair_in_order
from donation_inspector.analysis.paths import steps
from donation_inspector.common.signature import Donation, Leaf, Signature
from donation_inspector.program.as_generated import HandedOver, as_inspected, as_paired, as_written, jax_makes

if TYPE_CHECKING:
    from donation_inspector.frameworks.ways import Way
    from donation_inspector.program.subject import Subject, Whole

_WIDTH = 100
_NUMBER = re.compile(r"\[\d+\]")
_MOST_ORDERS = 120
"""Orders of the returned values that are tried: all of five."""


@dataclass(frozen=True)
class Line:
    """Code that donates, and what it gives to JAX.

    `given` is None where it gives nothing, as for a file. `made` is JAX's own pairing of it, by position. `exact`:
    these are the pairs that were asked for, and nothing is donated that was not to be.
    """

    code: str
    given: HandedOver | None
    made: Donation
    exact: bool


def code_for(subject: Subject, donated: frozenset[int], pairs: Mapping[int, int]) -> str:
    """The code of `line_for`."""
    return line_for(subject, donated, pairs).code


def line_for(subject: Subject, donated: frozenset[int], pairs: Mapping[int, int]) -> Line:
    """The lines that make exactly this donation, to be pasted below the function; a comment where nothing is to change.

    `donated` are flat leaves, `pairs` flat argument to flat result. Where the user's jit cannot be told to, the lines
    are comments that say what to do. They run where the function is in scope by its own name, with `jax`, `nnx` or
    `eqx` imported as these are usually. Where no jit makes these pairs, it is what comes nearest: JAX's own pairing was
    asked of each line.
    """
    return _Code(subject, donated, dict(pairs)).line()


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

    def line(self) -> Line:
        own = as_inspected(self.subject, self._own)
        if self._is_made(own):
            return self._line([f"# Nothing to change: {self._as_it_is()}."], own)
        way, wholes = self.way, self._wholes()
        if way is None:
            return self._of_a_file(wholes)
        if way.kind == "equinox":
            return self._equinox(way)
        by_jax = as_written(self.subject, _leaves(wholes))
        if not self.pairs or self._is_made(by_jax):
            return self._line(self._with_jit(way, wholes), by_jax)
        if way.kind == "foreign":
            return self._nearest(way, wholes, f"{way.name} makes its pairs in JAX's own order.")
        return self._nnx(way, wholes) if way.kind == "nnx" else self._paired(way, wholes)

    # ---- what JAX makes of what it is given

    def _line(self, lines: Sequence[str], given: HandedOver) -> Line:
        made = jax_makes(self.subject, given)
        return Line("\n".join(lines), given, made or Donation(), made is not None and self._has_the_pairs(made))

    def _is_made(self, given: HandedOver) -> bool:
        """Whether JAX makes exactly the donation that is wanted of it."""
        made = jax_makes(self.subject, given)
        return made is not None and self._has_the_pairs(made) and self._left_to_xla <= self._places(made)

    def _has_the_pairs(self, made: Donation) -> bool:
        arguments, results = self.subject.leaf_of_argument, self.subject.leaf_of_result
        pairs = {
            arguments[argument]: results[result]
            for argument, result in made.aliases.items()
            if argument in arguments and result in results
        }
        return pairs == self.pairs and self._places(made) <= self.donated

    def _places(self, made: Donation) -> set[int]:
        """The leaves whose buffers the program may overwrite."""
        arguments = self.subject.leaf_of_argument
        return {arguments[position] for position in made.positions if position in arguments}

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

    def _paired(self, way: Way, wholes: Sequence[Whole]) -> Line:
        told = {a: r for a, r in self.pairs.items() if self._of_one_type(a, r)}
        alone = as_paired(self.subject, told, told.keys())
        # what has no pair is donated as well, as whole arguments, where JAX makes of that what is wanted
        both = as_paired(self.subject, told, _leaves(wholes))
        donating = way.donating([whole.name for whole in wholes])
        more = donating if donating and not self._is_made(alone) and self._is_made(both) else ""
        given = both if more else alone
        left = [self.signature.arguments[leaf].path for leaf in sorted(self.donated - given.donated)]
        lines = [f"# Without a pair, and not donated here: {_listed(left)}."] if left else []
        reordered = self._reordered(way, as_written(self.subject, _leaves(wholes)), self._with_jit(way, wholes))
        if reordered:
            lines += [*reordered[0], "# With the results as they are (di is donation_inspector):"]
        pairs = f"pairs={_dict(self.signature, told)}"
        written = _placed(way, "di.jit", _joined(pairs, more))
        imported = ["import donation_inspector as di", ""] if written[0][0] != "#" else []
        line = self._line([*lines, *imported, *written], given)
        return line if line.exact else self._nearest(way, wholes, "No jit makes these pairs.")

    def _nearest(self, way: Way, wholes: Sequence[Whole], why: str) -> Line:
        lines = [*_wrapped(f"{why} The nearest to them here:"), *self._with_jit(way, wholes)]
        return self._line(lines, as_written(self.subject, _leaves(wholes)))

    def _of_one_type(self, argument: int, result: int) -> bool:
        """Whether `di.jit` takes them for a pair."""
        one, other = self.signature.arguments[argument], self.signature.results[result]
        return (one.shape, one.dtype) == (other.shape, other.dtype)

    def _reordered(self, way: Way, given: HandedOver, jit: Sequence[str]) -> tuple[list[str], HandedOver] | None:
        """How these lines give the pairs where the function returns its results in another order, if there is one."""
        found = self._order(given)
        if found is None:
            return None
        order, reordered = found
        lines = [
            "# JAX gives the first donated argument to the first result of its shape and dtype. It makes these pairs",
            f"# by itself where {way.name} returns its results in the order {', '.join(order)}:",
            *(line if line.startswith("#") else f"#     {line}" for line in jit),
        ]
        return lines, reordered

    def _order(self, given: HandedOver) -> tuple[tuple[str, ...], HandedOver] | None:
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
            made = pair_in_order(replace(signature, results=returned), Donation(), given.donated)
            reordered = replace(given, results=tuple(leaf.index for leaf in returned))
            if dict(made.aliases) == wanted and self._is_made(reordered):
                return tuple(order), reordered
        return None

    # ---- other frameworks

    def _nnx(self, way: Way, wholes: Sequence[Whole]) -> Line:
        left_out = sorted(_leaves(wholes) - self.donated)
        if left_out and self._is_made(as_written(self.subject, self.donated)):
            paths = _listed([self.signature.arguments[leaf].path for leaf in left_out])
            lines = [f"# nnx.jit donates whole arguments, and not all of one but {paths}. The nearest to it here:"]
        else:
            lines = [
                "# nnx.jit pairs what the step changes in its own order: these pairs cannot be told to it. A pure",
                "# function of nnx.split's state can be given to donation_inspector.jit. The nearest to them here:",
            ]
        return self._line([*lines, *self._with_jit(way, wholes)], as_written(self.subject, _leaves(wholes)))

    def _equinox(self, way: Way) -> Line:
        everything = frozenset(leaf.index for leaf in self.signature.arguments)
        first = {way.positional[0]} if way.positional else {whole.name for whole in self.subject.wholes[:1]}
        ahead = frozenset(leaf for whole in self.subject.wholes if whole.name in first for leaf in whole.leaves)
        line = f'{way.name} = eqx.filter_jit({way.function}, donate="{{}}")'
        if not way.name:
            line = '# Where it is made: eqx.filter_jit(…, donate="{}")'
        groups = {"all": everything, "all-except-first": everything - ahead, "none": frozenset[int]()}
        words = {word: self._given_by_equinox(leaves, ahead) for word, leaves in groups.items()}
        for word, given in words.items():
            if self._is_made(given):
                return self._line([*self._with_the_rest(given.donated), line.format(word)], given)
        for word, given in words.items():
            made = jax_makes(self.subject, given)
            if made is not None and self._places(made) == {*self.pairs, *self._left_to_xla}:
                reordered = self._reordered(way, given, [line.format(word)])
                if reordered:
                    return self._line(*reordered)
                told = (
                    "# eqx.filter_jit pairs what it donates in its order, and cannot be told these pairs. The nearest:"
                )
                return self._line([told, line.format(word)], given)
        wholes = self._wholes()
        kept = [whole for whole in self.subject.wholes if whole not in wholes]
        donated, others = (_listed([whole.name for whole in some]) for some in (wholes, kept))
        lines = [
            "# eqx.filter_jit donates all arguments or all but the first, and pairs them in their order. To donate",
            f"# {donated} alone, put what is kept into the first argument, as a tuple ({others},), and",
            f"#     {line.format('all-except-first')}",
        ]
        return self._line(lines, self._given_by_equinox(everything - _leaves(kept), _leaves(kept)))

    def _given_by_equinox(self, donated: frozenset[int], first: frozenset[int]) -> HandedOver:
        """What it donates before the rest, and of both the first argument before the others."""
        own = as_written(self.subject, donated)
        return replace(
            own, arguments=tuple(sorted(own.arguments, key=lambda one: (one not in donated, one not in first)))
        )

    def _with_the_rest(self, leaves: frozenset[int]) -> list[str]:
        """What is donated with a group of arguments, and given back because no result takes it over."""
        wanted = {whole.name for whole in self._wholes()}
        rest = [w.name for w in self.subject.wholes if w.name not in wanted and not leaves.isdisjoint(w.leaves)]
        return [f"# {_listed(rest)}: donated with the rest, and alive afterwards, as no result fits."] if rest else []

    def _of_a_file(self, wholes: Sequence[Whole]) -> Line:
        donated = _listed([whole.name for whole in wholes]) or "nothing"
        lines = [
            f"# A file has no call to rewrite. Donated: {donated}, with the pairs",
            *_commented(_dict(self.signature, self.pairs)),
        ]
        return Line("\n".join(lines), None, Donation(), exact=True)


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
    if way.shardings:
        return [
            f"# The jit of {way.name} has options that another one around it would not have. Write it with",
            *_commented(_joined(call if call == "di.jit" else "", more) or "nothing donated"),
        ]
    if way.kind in ("unnamed", "exported"):
        return [
            f"# {way.name} has no name that an assignment could replace. Where it is made, "
            f"give it {'in place of its jit ' if way.jitted else ''}to",
            *_commented(partial),
        ]
    return [f"{way.assigned} = {call}({_joined(way.function, way.static, more)})"]


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 118, initial_indent="# ", subsequent_indent="# ")


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
