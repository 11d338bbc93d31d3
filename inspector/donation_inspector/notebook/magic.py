"""`%donation f(x, y)`: from a line of notebook code to an Inspection, without calling the function.

Options come first:

    %donation [--donate PATH] [--keep PATH] [--pipeline P] [--target T] [--fits SIZE] [--compare] [--measure] f(x, y)
    %donation params, state = f(params, state)

`%%donation` takes the same with the call in the cell, over as many lines as it needs. Without a call, in the cell after
an exception, the jitted call that raised it is looked at.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope, no_var_expand

from donation_inspector.errors import DonationInspectorError

if TYPE_CHECKING:
    from donation_inspector.inspection import Inspection

_OPTION = re.compile(r"""\s*--(?P<name>[\w-]*)(?:[ =](?P<value>"[^"]*"|'[^']*'|[^\s-]\S*))?""")
_WITH_VALUE = ("donate", "keep", "pipeline", "target", "fits")
_FLAGS = ("compare", "measure")
_USAGE = (
    "%donation [--donate PATH] [--keep PATH] [--pipeline P] [--target T] [--fits SIZE] [--compare] [--measure] f(x, y)"
)


class MagicError(DonationInspectorError):
    """The line after `%donation` is not a call, or has an option that does not exist."""


@dataclass(frozen=True)
class Request:
    """One parsed `%donation` line: its options and the code of a call, empty for the call that raised last."""

    code: str
    donate: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    pipeline: str | None = None
    targets: tuple[str, ...] = ()
    fits: str | None = None
    compare: bool = False
    measure: bool = False


def parse(line: str) -> Request:
    """Split options from code.

    Raises:
      MagicError: an unknown option, or an option without its value.
    """
    values: dict[str, list[str]] = {name: [] for name in _WITH_VALUE}
    flags: set[str] = set()
    rest = line
    while match := _OPTION.match(rest):
        name = match["name"]
        if name in _FLAGS:
            flags.add(name)
            rest = rest[match.start("name") + len(name) :]
            if rest.startswith("="):
                raise MagicError(f"--{name} takes no value: {_USAGE}")
        elif name in _WITH_VALUE:
            if match["value"] is None:
                raise MagicError(f"--{name} needs a value: {_USAGE}")
            values[name].append(match["value"].strip("\"'") if match["value"][0] in "\"'" else match["value"])
            rest = rest[match.end() :]
        else:
            near = difflib.get_close_matches(name, (*_WITH_VALUE, *_FLAGS), 1)
            hint = f"; did you mean --{near[0]}?" if near else ""
            raise MagicError(f"--{name} is no option of %donation{hint} Usage: {_USAGE}")
    return Request(
        code=rest.strip(),
        donate=tuple(values["donate"]),
        keep=tuple(values["keep"]),
        pipeline=values["pipeline"][-1] if values["pipeline"] else None,
        targets=tuple(values["target"]),
        fits=values["fits"][-1] if values["fits"] else None,
        compare="compare" in flags,
        measure="measure" in flags,
    )


def call_of(code: str) -> ast.Call:
    """The call in `f(x)` or `p, s = f(x)`.

    Raises:
      MagicError: anything that is not exactly one call.
    """
    try:
        body = ast.parse(code).body
    except SyntaxError as error:
        raise MagicError(f"not Python: {error.msg} in `{code}`, column {error.offset}") from None
    if len(body) != 1:
        raise MagicError(f"%donation looks at one call, here are {len(body)} statements")
    statement = body[0]
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign) else None
    if isinstance(value, ast.Call):
        return value
    raise MagicError(
        f"`{code}` is not a call: write the function with its arguments, as in `%donation train_step(params, batch)`; "
        "it is traced, never called"
    )


def evaluate(call: ast.Call, namespace: dict[str, Any]) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]]:
    """The function and its arguments, evaluated; the function itself is not called.

    Raises:
      MagicError: the function or an argument cannot be evaluated.
    """
    collector = "_donation_inspector_collect_"
    arguments = ast.Call(func=ast.Name(collector, ast.Load()), args=call.args, keywords=call.keywords)

    def collect(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    def run(node: ast.expr, local: dict[str, Callable[..., Any]]) -> Any:
        expression = ast.fix_missing_locations(ast.Expression(node))
        return eval(compile(expression, "<donation>", "eval"), namespace, local)

    try:
        fn = run(call.func, {})
        args, kwargs = run(arguments, {collector: collect})
    except Exception as error:
        raise MagicError(f"`{ast.unparse(call)}` cannot be evaluated: {type(error).__name__}: {error}") from None
    return fn, args, kwargs


def taken(call: ast.Call, namespace: Mapping[str, Any]) -> Iterator[str]:
    """What to say of each `next(…)` among the arguments: evaluating it took something that is not there again.

    `next(iter(loader))` takes nothing from a loader that starts anew each time.
    """
    for node in (part for argument in (*call.args, *call.keywords) for part in ast.walk(argument)):
        match node:
            case ast.Call(
                func=ast.Name(id="next"), args=[ast.Call(func=ast.Name(id="iter"), args=[ast.Name(id=name)])]
            ):
                if not isinstance(namespace.get(name), Iterator):
                    continue
                source = name
            case ast.Call(func=ast.Name(id="next"), args=[first, *_]):
                source = ast.unparse(first)
            case ast.Call(func=ast.Attribute(value=first, attr="__next__")):
                source = ast.unparse(first)
            case _:
                continue
        yield (
            f"{ast.unparse(node)} was evaluated, as every argument is: what it took out of {source} is not there for "
            "the loop that goes on with it. To lose nothing, take it first (batch = next(…)), look at the step with "
            "batch, and train on batch."
        )


@magics_class
class DonationMagics(Magics):
    """`%donation` and `%%donation`."""

    # IPython would otherwise expand {…} and $… in the line, and with them every dict literal in the call.
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def donation(self, line: str, cell: str | None = None, local_ns: Mapping[str, Any] | None = None) -> Inspection:
        """Trace the call, show the inspector; nothing is executed and nothing assigned.

        Without a call: the jitted call that raised last, with its arguments, deleted arrays by their shapes.
        """
        from donation_inspector.capture.opening import inspect_at
        from donation_inspector.frameworks.call_site import CallSite, written

        request = parse(line if cell is None else f"{line} {cell}")
        if not request.code:
            return _after_error(request)
        # In a function, IPython gives its locals apart.
        user_ns = cast(Any, self.shell).user_ns
        namespace: dict[str, Any] = {**user_ns, **(local_ns or {})}
        call = call_of(request.code)
        fn, args, kwargs = evaluate(call, namespace)
        for told in taken(call, namespace):
            print(told)
        site = CallSite(user_ns, local_ns or {}, written(call.func))
        return _as_asked(inspect_at(site, fn, args, kwargs), request)


def _as_asked(inspection: Inspection, request: Request) -> Inspection:
    """With what the options ask for."""
    if request.donate:
        inspection = inspection.donate(*request.donate)
    if request.keep:
        inspection = inspection.keep(*request.keep)
    if request.pipeline is not None:
        inspection = inspection.with_pipeline(request.pipeline)
        inspection.apply()
    targets = tuple(one for one in request.targets if one != "mlir")
    if len(targets) > 1:
        inspection.compare(targets, fits=request.fits)
    elif targets or request.fits or request.compare or request.measure:
        inspection.compare(*targets, fits=request.fits)
    if "mlir" in request.targets:
        print(inspection.compare("mlir"))
    if request.measure:
        inspection.measure()
    return inspection


def _after_error(request: Request) -> Inspection:
    """The call that raised last, inspected; what was found is printed.

    Raises:
      MagicError: nothing was raised.
      TraceError: the call cannot be had back; the message says what to type.
    """
    from donation_inspector.capture.after_error import last_error, recover

    error = last_error()
    if error is None:
        raise MagicError(f"%donation needs a call to look at, or an error before it: {_USAGE}")
    try:
        recovered = recover(error)
        inspection = recovered.inspect()
        print(recovered.told)
        return _as_asked(inspection, request)
    except DonationInspectorError as refused:
        # what was raised first stays within reach of the next try
        raise refused from error
