"""The program that a shell command is about: a file, or a function of the user's own code with its arguments.

The folder that the command runs in can be imported from, as with `python -m`.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from xdsl.passes import ModulePass

from donation_inspector.capture import opening
from donation_inspector.errors import DonationInspectorError
from donation_inspector.frameworks.call_site import CallSite
from donation_inspector.inspection import Inspection
from donation_inspector.xla.explain import essence, shown, user_line

CONTRACT = (
    "a tuple is the positional arguments, a dict the keyword arguments, a tuple of these two both, and anything else "
    "the one argument"
)
_T = TypeVar("_T")


class ProgramError(DonationInspectorError):
    """What was named on the command line cannot be imported, or does not give the arguments of the function."""


@dataclass(frozen=True)
class Program:
    """An Inspection, and the arguments that it was made of, kept alive so that they can be measured."""

    inspection: Inspection
    arguments: Any


def pass_class(named: str) -> ModulePass:
    """The pass that `module:Class` names, with its default options. Raises ProgramError where it is none."""
    module, _, name = named.rpartition(":")
    found = _named(module, name)
    if not (isinstance(found, type) and issubclass(found, ModulePass)):
        raise ProgramError(f"{named} is no ModulePass class. Give a pipeline as for xdsl-opt, or module:Class.")
    return _users_own(f"{named}()", "fails", found)


def open_program(named: str, arguments: str | None, entry: str | None = None) -> Program:
    """The program that `named` is: a file where there is one of that name, otherwise `module:function`.

    `arguments` names what gives the arguments: `module:name`, or a name in the function's module. `entry` names the
    function of a file.

    Raises:
      DonationInspectorError: there is no such thing, the user's own code raises, or JAX cannot trace the function.
    """
    path = pathlib.Path(named)
    module, colon, name = named.rpartition(":")
    if path.exists() or not (colon and module and name):
        if arguments is not None:
            raise ProgramError(f"--args goes with module:function, and {named} is no function but a file.")
        return Program(opening.open_file(path, entry), None)
    if entry is not None:
        raise ProgramError(f"--entry goes with a file, and {named} is a function.")
    fn = _named(module, name)
    if arguments is None:
        given = ()
    else:
        where, _, what = arguments.rpartition(":")
        given = _named(where or module, what)
        if callable(given):
            given = _users_own(f"{arguments}()", "fails", given)
    args, kwargs = _read(given, arguments)
    _check(fn, named, args, kwargs, arguments)
    site = CallSite(cast("dict[str, Any]", vars(_imported(module))), written=name)
    return Program(opening.inspect_at(site, fn, args, kwargs), given)


# ---- names


def _named(module: str, name: str) -> Any:
    """The object `a.b` of a module, which is a dotted name or a file."""
    found: Any = _imported(module)
    walked = module
    for step in name.split("."):
        if not hasattr(found, step):
            near = difflib.get_close_matches(step, [one for one in dir(found) if not one.startswith("_")], 3)
            hint = f"; near it: {', '.join(near)}" if near else ""
            raise ProgramError(f"{walked} has no {step!r}{hint}.")
        found, walked = getattr(found, step), f"{walked}:{step}" if walked == module else f"{walked}.{step}"
    return found


def _imported(module: str) -> Any:
    _importable_from(pathlib.Path.cwd())
    if module.endswith(".py") or os.sep in module:
        return _imported_file(pathlib.Path(module))
    return _imported_name(module, module)


def _imported_file(path: pathlib.Path) -> Any:
    """A file as the module that it is, in its package where it is in one."""
    if not path.is_file():
        raise ProgramError(f"There is no file {path}.")
    folder, names = path.resolve().parent, [path.stem]
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    _importable_from(folder)
    module = _imported_name(".".join(names), str(path))
    origin = getattr(module, "__file__", None)
    if origin is None or not path.samefile(origin):
        raise ProgramError(
            f"{path} has the name of a module that is loaded already ({origin or 'built in'}): rename it."
        )
    return module


def _importable_from(folder: pathlib.Path) -> None:
    if str(folder) not in sys.path[:1]:
        sys.path.insert(0, str(folder))


def _imported_name(name: str, shown_as: str) -> Any:
    try:
        return _users_own(shown_as, "cannot be imported", importlib.import_module, name)
    except ProgramError as error:
        missing = error.__cause__
        if isinstance(missing, ModuleNotFoundError) and missing.name and f"{name}.".startswith(f"{missing.name}."):
            raise ProgramError(
                f"There is no module {missing.name!r} to import {'' if missing.name == name else f'{name} '}from "
                f"{pathlib.Path.cwd()}, and no file {shown_as}."
            ) from None
        raise


def _users_own(what: str, failure: str, call: Callable[..., _T], *args: Any) -> _T:
    """Call the user's own code; whatever it raises is told in one line, with the line of it that raised."""
    try:
        return call(*args)
    except SystemExit as error:
        raise ProgramError(
            f"{what} {failure}: it ends the process (SystemExit: {error.code}){_at(error)}. Put what a script does "
            'under `if __name__ == "__main__":`.'
        ) from error
    except Exception as error:
        raise ProgramError(f"{what} {failure}: {type(error).__name__}: {_told(error)}{_at(error)}") from error


def _told(error: Exception) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.msg} ({pathlib.Path(error.filename).name}:{error.lineno}: {(error.text or '').strip()})"
    return essence(shown(str, error))


def _at(error: BaseException) -> str:
    line = None if isinstance(error, SyntaxError) else user_line(error)
    return "" if line is None else f" ({line})"


# ---- arguments


def _read(given: Any, named: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments, as `CONTRACT` says; a named tuple is one argument, as any pytree is."""
    if inspect.isgenerator(given) or inspect.iscoroutine(given):
        raise ProgramError(f"{named}() gives a {type(given).__name__}: it has to return the arguments; {CONTRACT}.")
    if type(given) is tuple:
        several = cast("tuple[Any, ...]", given)
        if len(several) == 2 and type(several[0]) is tuple and _is_keywords(several[1]):
            return several
        return several, {}
    return ((), cast("dict[str, Any]", given)) if _is_keywords(given) else ((given,), {})


def _is_keywords(value: Any) -> bool:
    return type(value) is dict and all(isinstance(key, str) for key in cast("dict[Any, Any]", value))


def _check(fn: Any, named: str, args: tuple[Any, ...], kwargs: dict[str, Any], arguments: str | None) -> None:
    """That the arguments are those of the function, said in the words of the command line."""
    if not callable(fn):
        return
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        if arguments is None:
            raise ProgramError(
                f"{named}{signature} needs arguments: give --args module:name, a function that returns them (arrays or "
                f"jax.ShapeDtypeStruct) or they themselves; {CONTRACT}."
            ) from None
        parts = [f"{len(args)} positional", *(f"{name}=" for name in kwargs)]
        raise ProgramError(
            f"{arguments} does not give the arguments of {named}{signature}: {error}. It gives {', '.join(parts)}: "
            f"{CONTRACT}. One dict or tuple alone is written (it,), two arguments that are a tuple and a dict "
            "((first, second), {})."
        ) from None
