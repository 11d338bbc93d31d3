"""Which call donated an array that is gone: read off the code that was run, never by running any of it.

Nothing in JAX remembers who donated. What is known: the code of the notebook's cells and of the files that an exception
went through, what each name in it is bound to now, and what a jitted function donates.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from donation_inspector.capture.expressions import NotReadable, read
from donation_inspector.frameworks import donates, shapes


@dataclass(frozen=True)
class Source:
    """Code that was run: `place` is "cell [4]" or a file's name, `scope` what its names are bound to.

    `failed` tells that it ended with an exception, so that not all of it may have run.
    """

    place: str
    code: str
    tree: ast.Module
    scope: Mapping[str, Any]
    failed: bool = False


@dataclass(frozen=True, eq=False)
class DonatingCall:
    """A call, as it stands in the code, that gives arguments away.

    `gone` are the arrays that were asked about and that its arguments hold; `given` the donated arguments as written,
    those alone that hold some where any does.
    `always` tells that it stands outside of functions and branches, so that it ran when its code did; `again` that it
    stands in a function or a loop, so that it may have run several times.
    """

    source: Source
    node: ast.Call
    given: tuple[str, ...]
    gone: tuple[Any, ...]
    always: bool
    again: bool

    @property
    def place(self) -> str:
        """`cell [4], line 2`."""
        return f"{self.source.place}, line {self.node.lineno}"

    @property
    def function(self) -> str:
        """The function as the call names it."""
        return ast.unparse(self.node.func)


def parsed(place: str, code: str, scope: Mapping[str, Any], *, failed: bool = False) -> Source | None:
    """Code as a `Source`; None where it is no Python."""
    try:
        return Source(place, code, ast.parse(code), scope, failed)
    except (SyntaxError, ValueError):
        return None


def notebook() -> list[Source]:
    """The cells that the running IPython shell ran, oldest first; none outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return []
    scope: dict[str, Any] = shell.user_ns
    # IPython 8 does not keep which cells failed
    failed: Mapping[int, Any] = getattr(shell.history_manager, "exceptions", {})
    sources = (
        parsed(f"cell [{number}]", code, scope, failed=number in failed)
        for number, code in enumerate(scope.get("In", ()))
        if code
    )
    return [one for one in sources if one is not None]


def donating(sources: Iterable[Source], gone: Sequence[Any]) -> list[DonatingCall]:
    """Every call in the code that donates something, in the order of the code."""
    return [call for source in sources for call in _calls(source, {id(array): array for array in gone})]


@dataclass(frozen=True, eq=False)
class Finding:
    """What is known of who donated: the call, where one was found, and a sentence or two; both None for nothing."""

    call: DonatingCall | None = None
    told: str | None = None


def find(gone: Sequence[Any], sources: Sequence[Source], failed: ast.Call | None = None) -> Finding:
    """Which call donated these arrays.

    `failed` is the call that could not take them. It may itself be the one, when it ran before.
    """
    calls = donating(sources, gone)
    # a call that failed has donated nothing, and outside of loops and functions it ran only then
    holding = [call for call in calls if call.gone and (call.again or call.node is not failed)]
    since, bound = _since_bound(holding, sources, failed)

    def runs(call: DonatingCall) -> bool:
        # of what failed, all runs that stands before the call that did
        return call.always and (not call.source.failed or _stands_in(failed, call.source))

    if since:
        # one that came later would itself have failed
        call = min(since, key=lambda one: (one.node is failed, not runs(one)))
        # a call in a function or a loop may not have run at all, unless what it passes was bound right before it
        ran = runs(call) or (call.node is failed and bound is call.source)
        sure = bound is not None and len(since) == 1 and ran and len(call.gone) == len(gone)
        where = "by this same call, when it ran before" if call.node is failed else f"by the call in {call.place}"
        how = "" if sure else "most likely "
        verb = "was" if len(call.given) == 1 else "were"
        return Finding(
            call,
            f"{', '.join(call.given)} {verb} {how}donated to {call.function} {where}: use what it returned "
            "in its place.",
        )
    others = {call.function: call for call in calls if call.node is not failed}
    if not others:
        return Finding()
    listed = [f"{call.function} donates {', '.join(call.given)} ({call.place})" for call in others.values()]
    return Finding(None, f"Which call donated it is not known. Calls here that donate: {'; '.join(listed[-3:])}.")


def _stands_in(node: ast.AST | None, source: Source) -> bool:
    return node is not None and node in ast.walk(source.tree)


def _since_bound(
    calls: Sequence[DonatingCall], sources: Sequence[Source], failed: ast.Call | None
) -> tuple[list[DonatingCall], Source | None]:
    """The calls that come after the code that last bound the names they pass, before `failed`; and that code.

    All of them where none does.
    """
    order = {id(source): number for number, source in enumerate(sources)}

    def at(source: Source, node: ast.expr) -> tuple[int, int, int]:
        return order[id(source)], node.lineno, node.col_offset

    ends = [at(one, failed) for one in sources if failed is not None and _stands_in(failed, one)]
    end = ends[0] if ends else (len(sources), 0, 0)
    roots = {one.partition("[")[0].partition(".")[0] for call in calls for one in call.given}
    bound = [
        place
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in roots
        if (place := at(source, node)) <= end
    ]
    last = max(bound, default=None)
    since = [
        call
        for call in calls
        if last is not None
        if at(call.source, call.node) > last and (not call.always or at(call.source, call.node) <= end)
    ]
    return (since, sources[last[0]]) if since and last is not None else (list(calls), None)


def _calls(source: Source, wanted: Mapping[int, Any]) -> Iterator[DonatingCall]:
    for node, always, again in _walk(source.tree):
        if not isinstance(node, ast.Call):
            continue
        try:
            function = read(node.func, source.scope)
        except NotReadable:
            continue
        if not donates.is_step(function):
            continue
        found = _donated(node, function, source.scope)
        if found:
            held = [(text, [array for array in shapes.arrays(value) if id(array) in wanted]) for text, value in found]
            given = [text for text, arrays in held if arrays] or [text for text, _ in found]
            gone = {id(array): array for _, arrays in held for array in arrays}
            yield DonatingCall(source, node, tuple(given), tuple(gone.values()), always, again)


@dataclass(frozen=True, eq=False)
class _Argument:
    written: str
    value: Any


def _donated(node: ast.Call, function: Any, scope: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The donated arguments of a call: as written, with what they are bound to now (None where it cannot be read)."""
    if any(isinstance(one, ast.Starred) for one in node.args):
        return []
    positional = [_argument(one, scope) for one in node.args]
    named = {one.arg: _argument(one.value, scope) for one in node.keywords if one.arg is not None}
    found: list[tuple[str, Any]] = []
    for one in donates.donated(function, positional, named):
        if isinstance(one, _Argument):
            found.append((one.written, one.value))
        elif isinstance(node.func, ast.Attribute):
            found.append((ast.unparse(node.func.value), one))
    return found


def _argument(node: ast.expr, scope: Mapping[str, Any]) -> _Argument:
    try:
        return _Argument(ast.unparse(node), read(node, scope))
    except NotReadable:
        return _Argument(ast.unparse(node), None)


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_AGAIN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.For, ast.AsyncFor, ast.While, *_COMPREHENSIONS)
_MAYBE = (*_AGAIN, ast.ClassDef, ast.If, ast.IfExp, ast.Try, ast.Match)


def _walk(node: ast.AST, always: bool = True, again: bool = False) -> Iterator[tuple[ast.AST, bool, bool]]:
    """Each node, with whether it runs whenever the code does, and whether it may run several times."""
    yield node, always, again
    always, again = always and not isinstance(node, _MAYBE), again or isinstance(node, _AGAIN)
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, always, again)
