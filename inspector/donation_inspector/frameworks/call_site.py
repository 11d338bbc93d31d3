"""Where a person's code names the function that is inspected, so that what is proposed is assigned to that name.

Never the name in the function's definition: `solver_step = jax.jit(library.update)` is called as `solver_step`, and
`update` may be another function there. Nothing of a site is kept; what is read off it is a piece of code.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from donation_inspector.common.user_code import locals_of


@dataclass(frozen=True, eq=False)
class CallSite:
    """The variables that are seen where the function is named, and how it is `written` there; "" where that is unknown.

    `local` are those of a function under way, `variables` those of its module, or of the notebook.
    """

    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    local: Mapping[str, Any] = field(default_factory=dict[str, Any])
    written: str = ""

    def name_of(self, fn: Any) -> str:
        """What to assign a new jit of `fn` to, so that the person's calls go through it; "" where that is undecidable.

        A variable of the module or notebook, an attribute as `trainer.step`, else a variable of the function under way.
        """
        for name in filter(str.isidentifier, (self.written, _own_name(fn))):
            if _is(self.variables.get(name), fn):
                return name
        if "." in self.written and self._can_be_assigned(fn):
            return self.written
        for variables in (self.variables, self.local):
            names = list(_names(variables, fn))
            if len(names) == 1:
                return names[0]
            if names:
                return self.written if self.written in names else ""
        paths = list(itertools.chain(_attributes(self.local, fn), _attributes(self.variables, fn)))
        return paths[0] if len(paths) == 1 else ""

    def is_local(self, name: str) -> bool:
        """Whether a name is that of a variable which is gone with the function under way."""
        return name in self.local and name not in self.variables

    def holds(self, name: str, value: Any) -> bool:
        """Whether a variable stands for a value where the code is pasted."""
        return _is(self.local.get(name, self.variables.get(name)), value)

    def _can_be_assigned(self, fn: Any) -> bool:
        path, _, attribute = self.written.rpartition(".")
        first, *rest = path.split(".")
        owner: Any = self.local.get(first, self.variables.get(first))
        for step in rest:
            owner = inspect.getattr_static(owner, step, None)
        return _takes_attributes(owner) and _is(getattr(owner, attribute, None), fn)


NOWHERE = CallSite()


def of_caller() -> CallSite:
    """Of who called the function that asks: the first argument is what is named, as in `inspect(step, params)`."""
    frame = inspect.currentframe()
    try:
        # a frame in a variable of its own would be garbage that only the collector finds, with the call's arrays
        frame = None if frame is None else frame.f_back
        frame = None if frame is None else frame.f_back
        if frame is None:
            return NOWHERE
        call = _call_under_way(frame)
        return in_frame(frame, None if call is None or not call.args else call.args[0])
    finally:
        del frame


def in_frame(frame: types.FrameType, function: ast.expr | None = None) -> CallSite:
    """The variables that are seen from a frame, with the code of the function where that is known."""
    variables = frame.f_globals
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        local = locals_of(frame)
    else:
        local = {} if frame.f_locals is variables else dict(frame.f_locals)
    return CallSite(variables, local, written(function))


def written(function: ast.expr | None) -> str:
    """A name, or names with dots; "" for any other expression."""
    code = "" if function is None else ast.unparse(function)
    return code if all(map(str.isidentifier, code.split("."))) else ""


def _call_under_way(frame: types.FrameType) -> ast.Call | None:
    """The call in the frame's own code, off the place of the instruction that it is at."""
    places = frame.f_code.co_positions()
    line, last, start, end = next(itertools.islice(places, frame.f_lasti // 2, None), (None,) * 4)
    if line is None or last is None or start is None or end is None:
        return None
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[line - 1 : last]
    if not lines:
        return None
    encoded = [one.encode() for one in lines]
    encoded[-1] = encoded[-1][:end]
    encoded[0] = encoded[0][start:]
    try:
        expression = ast.parse(b"".join(encoded).decode(errors="replace"), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return expression if isinstance(expression, ast.Call) else None


def _own_name(fn: Any) -> str:
    return str(getattr(fn, "__name__", ""))


def _is(value: Any, fn: Any) -> bool:
    # a method is made anew each time that it is looked up
    return value is fn or (isinstance(fn, types.MethodType) and isinstance(value, types.MethodType) and value == fn)


def _is_ones_own(name: str) -> bool:
    # what begins with an underscore may be a notebook's memory of what a cell gave
    return name.isidentifier() and not name.startswith("_")


def _names(variables: Mapping[str, Any], fn: Any) -> Iterator[str]:
    return (name for name, value in list(variables.items()) if _is_ones_own(name) and _is(value, fn))


def _attributes(variables: Mapping[str, Any], fn: Any) -> Iterator[str]:
    """Where an object in a variable holds the function itself, as `trainer.step`."""
    for name, value in list(variables.items()):
        if not _is_ones_own(name) or not _takes_attributes(value):
            continue
        for attribute, held in list(cast("dict[str, Any]", vars(value)).items()):
            if held is fn and attribute.isidentifier():
                yield f"{name}.{attribute}"


def _takes_attributes(owner: Any) -> bool:
    """Whether an attribute can be set and does nothing else: not on modules and classes, which others share."""
    kind = cast(Any, type(cast(object, owner)))
    shared = isinstance(owner, types.ModuleType | type)
    return not shared and kind.__setattr__ is object.__setattr__ and hasattr(owner, "__dict__")
