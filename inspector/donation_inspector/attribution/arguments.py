"""What each argument and each result of a program is: parameters, optimizer state, batch.

What the program does with an argument counts more than its name. Parameters are read by what is differentiated and
returned anew by what comes after it; optimizer state is returned anew, mirrors a parameter's path or type, and no
forward or backward pass reads it. Where neither says anything the argument is an "other argument".
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from donation_inspector.attribution.flow import Flow
from donation_inspector.attribution.names import Certainty, Keys, keys, read_name
from donation_inspector.attribution.phase import Phase, phase
from donation_inspector.attribution.role import Role
from donation_inspector.common.signature import Leaf, Signature
from donation_inspector.xla.hlo.buffers import BufferLiveRange

_FLOATING = ("float", "bfloat", "complex")

Type = tuple[tuple[int, ...], str]


@dataclass(frozen=True, slots=True)
class _Entry:
    """An argument or a result as the compiled program has it: `inner` is its path inside of the whole argument."""

    buffer: BufferLiveRange
    path: str
    keys: Keys
    inner: Keys

    @property
    def type(self) -> Type:
        return self.buffer.shape, self.buffer.dtype


class Arguments:
    """The class of each argument and result, by position of the entry function."""

    def __init__(self, flow: Flow, signature: Signature) -> None:
        self._flow = flow
        self._arguments = _entries(signature.arguments, flow.arguments)
        self._results = _entries(signature.results, flow.results)
        self._phases = {position: self._read_by(entry.buffer) for position, entry in self._arguments.items()}
        self.differentiated = any(Phase.BACKWARD in phases for phases in self._phases.values())
        self._direct = self._read_directly()
        self._updated_after = self._find_updated()
        exact = {(entry.path, entry.type) for entry in self._results.values()}
        self._updated = self._updated_after | {p for p, e in self._arguments.items() if (e.path, e.type) in exact}
        self.arguments: dict[int, Role] = self._classify()
        for implicit in signature.implicit_arguments:
            is_constant = implicit.kind == "constant"
            self.arguments[implicit.position] = Role.CONSTANTS if is_constant else Role.ARGUMENTS
        self.parameter_shapes = {
            tuple(sorted(entry.buffer.shape))
            for position, entry in self._arguments.items()
            if self.arguments[position] is Role.PARAMETERS and entry.buffer.shape
        }
        self._of_type: defaultdict[Type, list[int]] = defaultdict(list)
        for position, entry in self._arguments.items():
            self._of_type[entry.type].append(position)
        self.results: dict[int, Role] = {position: self._result(position) for position in self._results}

    def _read_by(self, buffer: BufferLiveRange) -> frozenset[Phase]:
        """The phases of everything that reads a value."""
        return frozenset(phase(op_name) for use in self._flow.far_uses(buffer) for op_name in self._flow.op_names(use))

    def _in_passes(self, position: int) -> bool:
        return bool(self._phases[position] & {Phase.FORWARD, Phase.BACKWARD})

    def _phase_of(self, entry: _Entry) -> Phase:
        origin = self._flow.origin(entry.buffer)
        return Phase.OUTSIDE if origin is None else phase(origin.op_name)

    def _read_directly(self) -> Mapping[int, frozenset[int]]:
        """For each result the arguments of its type that it is the update of: its maker reads them after the passes."""
        at = {entry.buffer.id: position for position, entry in self._arguments.items()}
        found: dict[int, frozenset[int]] = {}
        for position, entry in self._results.items():
            read = {source.id for source in self._flow.updated_from(entry.buffer)}
            same = {at[buffer] for buffer in read if buffer in at}
            found[position] = frozenset(p for p in same if self._arguments[p].type == entry.type)
        return found

    def _find_updated(self) -> frozenset[int]:
        """The arguments whose new value comes after the passes: a result of the same type has the same path inside of
        its whole, or is computed from the argument directly."""
        outside = {p: entry for p, entry in self._results.items() if self._phase_of(entry) is Phase.OUTSIDE}
        tails = Counter((tail, entry.type) for entry in outside.values() for tail in _tails(entry.keys))
        claims = Counter((entry.inner, entry.type) for entry in self._arguments.values())
        direct = {position for result, read in self._direct.items() if result in outside for position in read}
        return frozenset(
            position
            for position, entry in self._arguments.items()
            if (entry.inner and claims[entry.inner, entry.type] <= tails[entry.inner, entry.type]) or position in direct
        )

    def _classify(self) -> dict[int, Role]:
        named = {position: read_name(entry.keys) for position, entry in self._arguments.items()}
        mirrors = self._mirrors()
        roles: dict[int, Role] = {}
        for position, name in named.items():
            role = self._by_structure(position, name, position in mirrors)
            if role is not None:
                roles[position] = role
        self._by_company(named, roles)
        return {position: roles.get(position, Role.ARGUMENTS) for position in self._arguments}

    def _by_structure(self, position: int, name: tuple[Role, Certainty] | None, mirrors: bool) -> Role | None:
        """What the program does with an argument, and a plain name where that says nothing against it."""
        updated, in_passes = position in self._updated, self._in_passes(position)
        role, certainty = name or (None, Certainty.WEAK)
        if certainty is Certainty.PLAIN and not (role is Role.BATCH and updated):
            return role
        if role is Role.BATCH and certainty is Certainty.PLAIN:
            # named as data and trained on: neither word can be told from the other
            return Role.ARGUMENTS
        if self.differentiated and updated and self._arguments[position].buffer.dtype.startswith(_FLOATING):
            if mirrors and not in_passes:
                return Role.OPTIMIZER
            if in_passes and (position in self._updated_after or certainty is Certainty.LIKELY):
                return Role.PARAMETERS
        return role if certainty is Certainty.LIKELY else None

    def _by_company(self, named: Mapping[int, tuple[Role, Certainty] | None], roles: dict[int, Role]) -> None:
        """Arguments that only the others explain: a state of a parameter's type, a leaf of optimizer state, a batch."""
        shapes = {self._arguments[p].type for p, role in roles.items() if role is Role.PARAMETERS}
        whole: defaultdict[str, set[Role]] = defaultdict(set)
        for position, role in roles.items():
            whole[self._arguments[position].keys[0]].add(role)
        for position, entry in self._arguments.items():
            if position in roles:
                continue
            updated, in_passes = position in self._updated, self._in_passes(position)
            name = named[position]
            is_alike = updated and not in_passes and self.differentiated and entry.type in shapes
            is_inside = len(entry.keys) > 1 and whole[entry.keys[0]] == {Role.OPTIMIZER}
            if is_alike or is_inside:
                roles[position] = Role.OPTIMIZER
            elif name is not None and shapes and updated == _comes_back(name[0], updated):
                roles[position] = name[0]

    def _mirrors(self) -> frozenset[int]:
        """The arguments whose path repeats that of an argument which the passes read, from one key on.

        `opt[0].mu['blocks']['w']` repeats `params['blocks']['w']`, `state.mu['w']` repeats `state.params['w']`.
        """
        originals: defaultdict[tuple[Type, Keys], list[Keys]] = defaultdict(list)
        for position, entry in self._arguments.items():
            if self._in_passes(position):
                for tail in _tails(entry.keys):
                    originals[entry.type, tail].append(entry.keys)
        found: set[int] = set()
        for position, entry in self._arguments.items():
            for tail in _tails(entry.keys[1:]):
                for other in originals.get((entry.type, tail), ()):
                    group = len(other) - len(tail)
                    if other != entry.keys and other[: group - 1] == entry.keys[: group - 1]:
                        found.add(position)
        return frozenset(found)

    def _result(self, result: int) -> Role:
        """A result is what the argument is whose new value it holds; gradients are results of the backward pass."""
        entry = self._results[result]
        same = self._of_type[entry.type]
        for position in same:
            if self._arguments[position].path == entry.path:
                return self.arguments[position]
        made_in = self._phase_of(entry)
        if made_in is Phase.BACKWARD and tuple(sorted(entry.buffer.shape)) in self.parameter_shapes:
            return Role.GRADIENTS
        if made_in is not Phase.OUTSIDE:
            return Role.RESULTS
        for tail in _tails(entry.keys):
            matching = {self.arguments[p] for p in same if p in self._updated and self._arguments[p].inner == tail}
            if matching:
                if len(matching) == 1:
                    return matching.pop()
                break
        read = {self.arguments[p] for p in self._direct[result]}
        if Role.PARAMETERS in read:
            return Role.PARAMETERS
        return Role.OPTIMIZER if read == {Role.OPTIMIZER} else Role.RESULTS


def _entries(leaves: tuple[Leaf, ...], buffers: Mapping[int, BufferLiveRange]) -> dict[int, _Entry]:
    entries: dict[int, _Entry] = {}
    for leaf in leaves:
        if leaf.position is not None and leaf.position in buffers:
            path = leaf.updates or leaf.path
            entries[leaf.position] = _Entry(buffers[leaf.position], path, keys(path), keys(path[len(leaf.root) :]))
    return entries


def _comes_back(role: Role, updated: bool) -> bool:
    """Whether an argument of this class is returned anew: optimizer state is, a batch is not, parameters may be."""
    return {Role.OPTIMIZER: True, Role.BATCH: False}.get(role, updated)


def _tails(path: Keys) -> list[Keys]:
    return [path[start:] for start in range(len(path))]
