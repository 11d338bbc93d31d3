"""After an error: the jitted call that raised it, found again in its traceback, so that it can be inspected.

Nothing of the user's runs again. Where JAX or a framework has a frame in the traceback, that frame holds the call; a
call that JAX dispatched without Python has left none, and is read off the user's own line of code instead.
"""

from __future__ import annotations

import ast
import dataclasses
import linecache
import re
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from typing import Any

import jax

from donation_inspector.capture import earlier_calls, expressions
from donation_inspector.capture.earlier_calls import Source
from donation_inspector.capture.expressions import NotReadable
from donation_inspector.capture.opening import inspect_at
from donation_inspector.common.user_code import is_user_code
from donation_inspector.errors import DonationInspectorError, TraceError
from donation_inspector.frameworks import call_site, donates, naming, shapes, wrappers
from donation_inspector.frameworks.call_site import NOWHERE, CallSite
from donation_inspector.inspection import Inspection
from donation_inspector.xla import traceback_frames
from donation_inspector.xla.explain import essence, shown
from donation_inspector.xla.traceback_frames import Frame

_jax: Any = jax
"""Public, partly untyped."""

_NOT_CALLING = ("jax", "jaxlib", "IPython", "ipykernel")
_WRITE = "Write the call, as in `%donation train_step(params, batch)`"


@dataclass(frozen=True, eq=False)
class Recovered:
    """A jitted call that raised, with what it was given; deleted arrays are there as shapes.

    `told` says in sentences what was found: the error and its place, what was deleted, and by which call.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    told: str = ""
    site: CallSite = NOWHERE

    def inspect(self) -> Inspection:
        """As `di.inspect` with the call. Raises TraceError."""
        return inspect_at(self.site, self.function, self.args, self.kwargs)


@dataclass(frozen=True, eq=False)
class _Found:
    """A call in the traceback, with the user's frame that made it and the code of it, as far as they are there."""

    function: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    frame: Frame | None
    node: ast.Call | None
    site: CallSite


def last_error() -> BaseException | None:
    """The exception that was raised last at the top, as Python and IPython keep it for a debugger; None for our own."""
    error: object = getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) and any(_not_ours(error)) else None


def recover(error: BaseException) -> Recovered:
    """The jitted call that an exception came out of, or the one that donated what could not be used any more.

    The exception is not one of our own; or it was raised from one that is not.

    Raises:
      TraceError: there is none, or its arguments are not there any more; the message says what to type instead.
    """
    sources = _Sources()
    for one in _not_ours(error):
        frames = traceback_frames.frames(one)
        found = _by_frame(frames, sources) or _by_code(frames, sources, one)
        if found is not None:
            return _recovered(one, found, frames, sources)
    return _by_deleted(next(_not_ours(error)), sources)


def _not_ours(error: BaseException) -> Iterator[BaseException]:
    return (one for one in traceback_frames.chain(error) if not isinstance(one, DonationInspectorError))


class _Sources:
    """The code that was run, parsed once: the notebook's cells and the files of frames."""

    def __init__(self) -> None:
        self.cells = earlier_calls.notebook()
        self._of_file: dict[str, Source | None] = {}

    def of(self, frame: Frame) -> Source | None:
        """The code that a frame runs, with the names that are bound there."""
        if frame.file not in self._of_file:
            self._of_file[frame.file] = self._parse(frame)
        source = self._of_file[frame.file]
        held = frame.frame
        scope = ChainMap[str, Any](dict(held.f_locals), held.f_globals)
        return None if source is None else dataclasses.replace(source, scope=scope)

    def _parse(self, frame: Frame) -> Source | None:
        code = "".join(linecache.getlines(frame.file, frame.frame.f_globals))
        return earlier_calls.parsed(self._place(frame, code), code, {}) if code else None

    def _place(self, frame: Frame, code: str) -> str:
        """`cell [4]` by the last cell with this code, else the file's name."""
        same = [cell.place for cell in self.cells if cell.code.rstrip() == code.rstrip()]
        return same[-1] if same else re.split(r"[\\/]", frame.file)[-1]

    def all(self, frames: Sequence[Frame], failed: Frame | None = None) -> list[Source]:
        """The cells, then what the user's own frames and the one that failed run: with the names of those frames."""
        running = [frame for frame in frames if is_user_code(frame.file) or frame is failed]
        own: dict[str, Source] = {}
        for source in filter(None, map(self.of, running)):
            # where two frames run the same code, what the inner one binds goes first
            outer = own.get(source.place)
            scope = source.scope if outer is None else {**outer.scope, **source.scope}
            own[source.place] = dataclasses.replace(source, scope=scope)
        return [*(cell for cell in self.cells if cell.place not in own), *own.values()]


# ---- where the call is


def _by_frame(frames: Sequence[Frame], sources: _Sources) -> _Found | None:
    """From the outermost frame of a framework or of JAX that holds a jitted call of the user's."""
    for number, frame in enumerate(frames):
        call = wrappers.called_in(frame.frame) or traceback_frames.jit_call(frame)
        if call is None or not _is_users(call.function):
            continue
        above = [one for one in frames[:number] if is_user_code(one.file)]
        maker = above[-1] if above else None
        node = None if maker is None else _jitted_call(maker, sources)
        site = NOWHERE if maker is None else call_site.in_frame(maker.frame, node and node.func)
        return _Found(call.function, tuple(call.args), call.kwargs, maker, node, site)
    return None


def _by_code(frames: Sequence[Frame], sources: _Sources, error: BaseException) -> _Found | None:
    """From the outermost line, of the user's or of a library, that was calling a jitted function.

    Raises:
      TraceError: its arguments cannot be had without running something again.
    """
    for frame in frames:
        node = _jitted_call(frame, sources) if frame.package not in _NOT_CALLING else None
        source = None if node is None else sources.of(frame)
        if node is None or source is None:
            continue
        try:
            return _read(node, source, frame)
        except NotReadable as unread:
            function = ast.unparse(node.func)
            raise TraceError(
                f"{_headline(error, frame, sources)} came out of `{ast.unparse(node)}`. Its argument `{unread.code}` "
                "is gone, and would have to be computed again. Put it into a variable, and write the call with that: "
                f"`%donation {function}(…)`. It is traced, never run."
            ) from None
    return None


def _read(node: ast.Call, source: Source, frame: Frame | None) -> _Found:
    """A call with what its code stands for now. Raises NotReadable."""
    function = expressions.read(node.func, source.scope)
    args = tuple(expressions.items(node.args, source.scope))
    written = call_site.written(node.func)
    site = CallSite(source.scope, written=written) if frame is None else call_site.in_frame(frame.frame, node.func)
    return _Found(function, args, expressions.keywords(node.keywords, source.scope), frame, node, site)


def _jitted_call(frame: Frame, sources: _Sources) -> ast.Call | None:
    """The one call of a jitted function in what a frame was running; None where there is none or more than one."""
    source = sources.of(frame)
    if source is None or frame.end_line is None:
        return None
    running = _running(frame, source.tree)
    outer = running if isinstance(running, ast.Call) and _calls_step(running, source) else None
    if outer is not None or running is None:
        return outer
    inner = [one for one in ast.walk(running) if isinstance(one, ast.Call) and _calls_step(one, source)]
    return inner[0] if len(inner) == 1 else None


def _running(frame: Frame, tree: ast.Module) -> ast.expr | None:
    end = (frame.end_line, frame.end_column)
    ending = [
        node for node in ast.walk(tree) if isinstance(node, ast.expr) and (node.end_lineno, node.end_col_offset) == end
    ]
    exact = [one for one in ending if (one.lineno, one.col_offset) == (frame.line, frame.column)]
    # a method's call over several lines starts at its name
    calls = [one for one in ending if isinstance(one, ast.Call)]
    return next(iter(exact or calls), None)


def _calls_step(node: ast.Call, source: Source) -> bool:
    try:
        return donates.is_step(expressions.read(node.func, source.scope))
    except NotReadable:
        return False


def _is_users(function: Any) -> bool:
    package = str(getattr(function, "__module__", None) or "").partition(".")[0]
    return package not in ("jax", "jaxlib") or traceback_frames.is_stage(function)


# ---- what is told of it


_UNKNOWN = "Which call donated it is not known: no code that is at hand donates it."


def _recovered(error: BaseException, found: _Found, frames: Sequence[Frame], sources: _Sources) -> Recovered:
    gone = [one for one in shapes.arrays((found.args, dict(found.kwargs))) if shapes.is_deleted(one)]
    told = [f"{_headline(error, found.frame, sources)} came out of {_code(found)}; this is that call, inspected."]
    if gone:
        told.append(f"Deleted by now, and seen by shape alone: {_gone_words(found)}.")
        told.append(earlier_calls.find(gone, sources.all(frames, found.frame), found.node).told or _UNKNOWN)
    return _with_shapes(found, told)


def _with_shapes(found: _Found, told: Sequence[str]) -> Recovered:
    args, kwargs = shapes.map_arrays(
        lambda one: shapes.shape_of(one) if shapes.is_deleted(one) else one, (found.args, dict(found.kwargs))
    )
    return Recovered(found.function, args, kwargs, "\n".join(told), found.site)


def _by_deleted(error: BaseException, sources: _Sources) -> Recovered:
    """The call that donated what an operation outside of jit could not use any more.

    Raises:
      TraceError: there is no such call, or it is not known.
    """
    frames = traceback_frames.frames(error)
    own = [frame for frame in frames if is_user_code(frame.file)]
    said = _headline(error, own[-1] if own else None, sources)
    gone = _deleted_names(own[-1], sources) if own else {}
    if not gone and _comes_late(error):
        late = _by_last_call(said, own, sources)
        if late is not None:
            return late
    if not gone:
        about = essence(shown(str, error))
        raise TraceError(
            f"{said}: {about}{'' if about.endswith('.') else '.'} It did not come out of a jitted call that can be "
            f"found. {_WRITE}; it is traced, never run."
        )
    names = ", ".join(gone)
    arrays = [array for held in gone.values() for array in held]
    finding = earlier_calls.find(arrays, sources.all(frames))
    told = [f"{said}: {names} {'has' if len(gone) == 1 else 'have'} been deleted.", finding.told or _UNKNOWN]
    call = finding.call
    if call is not None:
        try:
            return _with_shapes(_read(call.node, call.source, None), [*told, "This is that call, inspected."])
        except NotReadable as unread:
            told.append(f"Its argument `{unread.code}` is gone.")
    raise TraceError(f"{' '.join(told)} {_WRITE}: what is deleted can be given as jax.ShapeDtypeStruct(shape, dtype).")


def _deleted_names(frame: Frame, sources: _Sources) -> dict[str, list[Any]]:
    """What a frame was running names that is deleted: as written, with the arrays."""
    source = sources.of(frame)
    running = None if source is None or frame.end_line is None else _running(frame, source.tree)
    found: dict[str, list[Any]] = {}
    for name, value in _readable(running, source.scope) if running is not None and source is not None else ():
        gone = [one for one in shapes.arrays(value) if shapes.is_deleted(one)]
        if gone:
            found[name] = gone
    return found


def _readable(node: ast.AST, scope: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The largest parts of the code that name something, with what they are bound to now."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        try:
            yield ast.unparse(node), expressions.read(node, scope)
        except NotReadable:
            pass
        else:
            return
    for child in ast.iter_child_nodes(node):
        yield from _readable(child, scope)


# ---- after an error that came up late


_STATUS = re.compile(r"[A-Z]+(_[A-Z]+)*: ")
"""How a message of the runtime's begins: "RESOURCE_EXHAUSTED: "."""


def _comes_late(error: BaseException) -> bool:
    """Whether it is the runtime's: what ran in the background raises only where its result is waited for."""
    late = isinstance(error, RuntimeError) and _STATUS.match(shown(str, error)) is not None
    return late or isinstance(error, _jax.errors.JaxRuntimeError)


def _by_last_call(said: str, own: Sequence[Frame], sources: _Sources) -> Recovered | None:
    """The last call of a jitted function that stands before what raised; None where none does.

    Raises:
      TraceError: its arguments cannot be had without running something again.
    """
    places = [(frame, sources.of(frame)) for frame in reversed(own)] + [(None, cell) for cell in sources.cells[::-1]]
    for frame, source in places:
        node = None if source is None else _last_call(frame, source)
        if node is None or source is None:
            continue
        late = (
            f"{said} came up when a result was waited for. JAX runs calls in the background, so that it may be the "
            f"error of any call before; the last one is `{ast.unparse(node)}` ({source.place}, line {node.lineno})"
        )
        try:
            found = _read(node, source, frame)
        except NotReadable as unread:
            raise TraceError(f"{late}. {_how_to_write(node, frame, unread)}") from None
        return _with_shapes(found, [f"{late}: this is that call with what its names are bound to now, inspected."])
    return None


def _last_call(frame: Frame | None, source: Source) -> ast.Call | None:
    """The call of a jitted function that ran last in a frame; None for the frame stands for code that ran to its end.

    In a loop it may stand below the line that raised.
    """
    body: ast.AST = source.tree
    if frame is not None and frame.frame.f_code.co_flags & CO_OPTIMIZED:
        around = [one for one in ast.walk(body) if isinstance(one, _FUNCTIONS) and _stands_on(one, frame.line)]
        body = max(around, key=lambda one: one.lineno, default=body)
    nodes = list(_own_nodes(body))
    calls = [one for one in nodes if isinstance(one, ast.Call) and _calls_step(one, source)]
    if frame is not None:
        loops = [one for one in nodes if isinstance(one, _LOOPS) and _stands_on(one, frame.line)]
        before = [one for one in calls if one.lineno <= frame.line]
        calls = before or [one for one in calls if any(_stands_on(loop, one.lineno) for loop in loops)]
    return max(calls, key=lambda one: one.lineno, default=None)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def _stands_on(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """What is in a function or module, and not in a function inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            yield child
            yield from _own_nodes(child)


def _how_to_write(node: ast.Call, frame: Frame | None, unread: NotReadable) -> str:
    """What to type for a call whose argument would have to be computed again."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    code = None if frame is None else frame.frame.f_code
    if frame is None or code is None or not code.co_flags & CO_OPTIMIZED:
        return f"To look at it: `%donation {ast.unparse(node)}`."
    local = ", ".join(f"`{name}`" for name in sorted(names & frame.frame.f_locals.keys()))
    known = f", and {local} {'are' if ', ' in local else 'is'} local to `{code.co_name}`" if local else ""
    return (
        f"Its argument `{unread.code}` would have to be computed again{known}. Write `%donation "
        f"{ast.unparse(node.func)}(…)` with variables that are there, or with jax.ShapeDtypeStruct(shape, dtype)."
    )


def _headline(error: BaseException, frame: Frame | None, sources: _Sources) -> str:
    source = None if frame is None else sources.of(frame)
    where = "" if frame is None or source is None else f" in {source.place}, line {frame.line}"
    return f"{type(error).__name__}{where}"


def _code(found: _Found) -> str:
    if found.node is not None:
        return f"`{ast.unparse(found.node)}`"
    return f"`{getattr(found.function, '__name__', type(found.function).__name__)}(…)`"


def _gone_words(found: _Found) -> str:
    """The arguments with deleted arrays: as the function names them, and as they were written where that differs."""
    written = {} if found.node is None else _written(found.node, found.args, found.kwargs)
    words: list[str] = []
    for name, value in naming.bound_arguments(found.function, found.args, found.kwargs):
        held = shapes.arrays(value)
        gone = sum(map(shapes.is_deleted, held))
        if gone:
            code = written.get(id(value), name)
            said = [f"{gone} of {len(held)} arrays"] if len(held) > 1 else []
            said += [f"given as {code}"] if code != name else []
            words.append(f"{name} ({', '.join(said)})" if said else name)
    return ", ".join(words)


def _written(node: ast.Call, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[int, str]:
    """The code of each argument, by the identity of its value."""
    # a bound method's object comes first
    given = args[len(args) - len(node.args) :]
    starred = any(isinstance(one, ast.Starred) for one in node.args)
    positional = () if starred else zip(given, node.args, strict=False)
    named = ((kwargs[one.arg], one.value) for one in node.keywords if one.arg is not None and one.arg in kwargs)
    return {id(value): ast.unparse(code) for value, code in (*positional, *named)}
