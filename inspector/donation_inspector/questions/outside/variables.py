"""From Python's variables to the arrays behind them, by the names that a person would write: `history[3]`.

What is not to be seen from where the user is says where it stands: `history[3] in train()`.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, cast

from donation_inspector.common.user_code import is_user_code, locals_of

LIMIT = 100_000
"""Objects that are looked at in one walk."""

_ATOMS = (bool, int, float, complex, str, bytes, bytearray, type(None), type, types.ModuleType, type(Ellipsis))
_IPYTHONS = {"In", "_ih", "_dh", "_oh", "exit", "quit", "get_ipython", "open"}
"""What IPython puts into the namespace beside the user's names; `_oh` is `Out`."""
_OURS = __name__.partition(".")[0]

Scope = tuple[str, list[tuple[str, Any]]]
"""Where variables stand, as ` in train()`, "" for what the user sees; and the variables, by name."""


class Walk:
    """One walk, nearest first, over containers and objects; what comes later goes on where it has not been.

    `complete` is False once `limit` objects were looked at, or one holds more than that: something may be left out.
    """

    def __init__(self, wanted: Callable[[Any], bool], limit: int = LIMIT) -> None:
        """`wanted` tells what to yield; nothing inside of it is looked at."""
        self._wanted = wanted
        self._left = limit
        self._seen: set[int] = set()
        self.complete = True

    def through(self, roots: Iterable[tuple[str, Any]], where: str = "") -> Iterator[tuple[str, Any]]:
        """(path, value) of everything wanted, each once, by the shortest path; `where` ends each path.

        What an object of ours keeps for itself is said to be held by it.
        """
        waiting = deque[tuple[str, str | None, Any]]((path, None, value) for path, value in roots)
        while waiting:
            if self._left == 0:
                self.complete = False
                return
            path, holder, value = waiting.popleft()
            if isinstance(value, _ATOMS) or id(value) in self._seen:
                continue
            self._left -= 1
            self._seen.add(id(value))
            if self._wanted(value):
                yield (holder or path) + where, value
                continue
            parts = list(islice(_parts(value), self._left + 1))
            self.complete = self.complete and len(parts) <= self._left
            kept = f"held by {path} ({type(value).__name__})" if holder is None and _is_ours(value) else holder
            waiting.extend((path + step, kept if step.startswith("._") else holder, part) for step, part in parts)


def scopes() -> Iterator[Scope]:
    """The user's variables, nearest first: of the functions under way, the notebook or script, other modules of theirs,
    and what the last exception's traceback holds."""
    yield from _of_functions_under_way()
    namespace = user_namespace()
    yield from of_namespace(namespace)
    yield from _of_modules(namespace)
    yield from _of_last_error()


def user_namespace() -> Mapping[str, Any]:
    """The notebook's variables, or those of the script that runs."""
    ipython: Any = sys.modules.get("IPython")
    shell: Any = None if ipython is None else ipython.get_ipython()
    return vars(sys.modules["__main__"]) if shell is None else shell.user_ns


def of_namespace(namespace: Mapping[str, Any]) -> Iterator[Scope]:
    """A namespace in the order in which names tell most: the user's, IPython's `Out`, `_` and the like."""
    names = [(name, value) for name, value in list(namespace.items()) if name not in _IPYTHONS]
    yield "", [(name, value) for name, value in names if not name.startswith("_") and name != "Out"]
    yield "", [(name, value) for name, value in names if name == "Out"]
    yield "", [(name, value) for name, value in names if name.startswith("_") and not name.startswith(("__", "_i"))]
    yield "", [(name, value) for name, value in names if name in ("__", "___")]


def _of_functions_under_way() -> Iterator[Scope]:
    """What the user's functions hold in variables. While a debugger traces nothing is asked: see `_locals`."""
    frame: types.FrameType | None = inspect.currentframe() if sys.gettrace() is None else None
    innermost = True
    while frame is not None:
        if is_user_code(frame.f_code.co_filename):
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                yield "" if innermost else f" in {frame.f_code.co_name}()", _locals(frame)
            innermost = False
        frame = frame.f_back


def _locals(frame: types.FrameType) -> list[tuple[str, Any]]:
    """The variables of a function under way."""
    # a comprehension's own iterator has a name that is none
    return [(name, value) for name, value in locals_of(frame).items() if name.isidentifier()]


def _of_modules(namespace: Mapping[str, Any]) -> Iterator[Scope]:
    """The modules that are the user's own code, but for the one whose namespace this is."""
    for name, module in list(sys.modules.items()):
        file: object = getattr(module, "__file__", None)
        if not isinstance(file, str) or not is_user_code(file) or vars(module) is namespace:
            continue
        yield f" in module {name}", [(key, value) for key, value in list(vars(module).items()) if key[:2] != "__"]


def _of_last_error() -> Iterator[Scope]:
    traceback: types.TracebackType | None = getattr(sys, "last_traceback", None)
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_name != "<module>":
            where = f" in {frame.f_code.co_name}(), kept by the last error's traceback"
            yield where, list(frame.f_locals.items())
        traceback = traceback.tb_next


def _is_ours(value: object) -> bool:
    # what C makes may have no module
    return str(type(value).__module__).partition(".")[0] == _OURS


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, without running any of its code."""
    if isinstance(value, dict | types.MappingProxyType):
        yield from ((f"[{_key(key)}]", part) for key, part in list(cast("Mapping[Any, Any]", value).items()))
    elif isinstance(value, tuple) and hasattr(cast(Any, value), "_fields"):
        yield from zip((f".{name}" for name in cast(Any, value)._fields), cast("tuple[Any, ...]", value), strict=False)
    elif isinstance(value, list | tuple | deque):
        # another thread may change a deque meanwhile, and only a deque minds
        held = list(cast("deque[Any]", value)) if isinstance(value, deque) else cast("list[Any]", value)
        yield from ((f"[{i}]", part) for i, part in enumerate(held))
    elif isinstance(value, functools.partial):
        held = cast("functools.partial[Any]", value)
        yield from ((".func", held.func), (".args", held.args), (".keywords", held.keywords))
    elif isinstance(value, types.MethodType):
        yield from ((".__self__", value.__self__), (".__func__", value.__func__))
    elif isinstance(value, types.FunctionType):
        yield from _of_function(value)
    else:
        yield from _of_object(value)


def _key(key: Any) -> str:
    return repr(key) if isinstance(key, str | int | bool | float) else f"<{type(key).__name__}>"


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f".<closure>.{name}", cell.cell_contents
        except ValueError:
            # the enclosing function has not set it yet
            continue
    yield ".__defaults__", function.__defaults__
    yield from _attributes(vars(function))


def _of_object(value: Any) -> Iterator[tuple[str, Any]]:
    for kind in type(value).__mro__:
        slots: Any = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else tuple(slots):
            member = kind.__dict__.get(slot)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    yield _attribute(slot), member.__get__(value)
                except AttributeError:
                    # never set
                    continue
    try:
        attributes: Any = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    if isinstance(attributes, dict):
        yield from _attributes(cast("dict[str, Any]", attributes))


def _attributes(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((_attribute(name), part) for name, part in list(attributes.items()))


_TRANSPARENT = ("__wrapped__", "_raw_value")
"""What nobody writes to get at what is inside: the function in a jitted one, the array in an NNX Variable."""


def _attribute(name: str) -> str:
    if name in _TRANSPARENT:
        return ""
    return f".{name}" if name.isidentifier() else f"[{name}]"
