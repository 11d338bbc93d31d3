"""The words of the command line, and what `--help` says about them."""

from __future__ import annotations

import argparse
import pathlib

from donation_inspector import __version__

_PIPELINE = "as for xdsl-opt (default: jax-use-donated-arguments"
_PROGRAM = """\
PROGRAM is a file (MLIR text or bytecode, or what Inspection.save wrote) or a function of yours: module:function,
module:object.method or path/to/train.py:function. The current folder can be imported from, as with python -m. The
function is traced; measure alone runs it, in processes of its own.

--args names a function without parameters that returns the arguments, or a value that is them: module:name, or a name
in the function's module. Shapes are enough (jax.ShapeDtypeStruct, as jax.eval_shape gives them).
  a tuple                    the positional arguments: return params, batch
  a dict                     the keyword arguments: return {"params": params, "batch": batch}
  a tuple of such two        both: return (params,), {"batch": batch}
  anything else              the one argument; a dict or tuple that is one alone is written (it,)
"""
_EXIT = """
exit code:
  0    there is a report
  1    there is an error, told on stderr; what --fail-on asks cannot be told is one
  2    the command line is wrong
  3    there is a report, and what --fail-on names is so
  130  interrupted
"""
_DIFF = """\
Arguments are matched by path. Versions of jax, or one of the two having been compiled for another target, are told and
are no difference by themselves; a measured peak is one where the ranges of the runs lie apart.

exit code:
  0    nothing is different
  1    something is
  2    there is an error, told on stderr
"""


def parser() -> argparse.ArgumentParser:
    """The parser; what it returns has the name of a function of `commands` and the exit code of trouble."""
    top = argparse.ArgumentParser(
        prog="donation-inspector",
        description="What buffer donation does to a program: verdicts, live memory, the xDSL pass, XLA's own buffers.",
    )
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    inspect = _command(commands, "inspect", "the report on one program", _PROGRAM + _EXIT)
    inspect.add_argument("--compare", action="store_true", help="compile with XLA for this machine")
    inspect.add_argument(
        "--target",
        action="append",
        metavar="TARGET",
        help="compile for it too, as tpu:v5e; mlir: run the pass's own IR, without XLA (give it several times)",
    )
    inspect.add_argument("--fits", metavar="SIZE", help="the memory of one device, as 24GB")
    inspect.add_argument(
        "--recommend",
        type=float,
        metavar="SECONDS",
        help="search for so long which pairs save most, for the first target, and give the lines to paste",
    )
    measure = _command(
        commands, "measure", "compile a program, run it in fresh processes, and report", _PROGRAM + _EXIT
    )
    measure.add_argument("--runs", type=int, default=5, help="measured calls of each variant (default: %(default)s)")
    measure.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="for each variant (default: %(default)s)"
    )
    for command in (inspect, measure):
        _add_program(command)
    diff = _command(commands, "diff", "what is different in the second of two --json files of inspect", _DIFF)
    diff.set_defaults(trouble=2)
    diff.add_argument("before", type=pathlib.Path, metavar="BEFORE", help="what inspect or measure wrote with --json")
    diff.add_argument(
        "after", type=pathlib.Path, metavar="AFTER", help="the same of another version, of the code or of jax"
    )
    _add_json(diff, "write every difference as JSON too")
    corpus = _command(
        commands,
        "corpus",
        "what pipelines make of every program in a folder, as a table",
        "exit code:\n  0    every pipeline ran on every program\n  1    there is a gap in the table, or an error",
    )
    corpus.add_argument("folder", type=pathlib.Path, help="with .mlir, .mlirbc, .di files, in folders of it too")
    corpus.add_argument(
        "-p",
        "--pipeline",
        action="append",
        help=f"{_PIPELINE}), or module:Class of a ModulePass; give it several times",
    )
    corpus.add_argument("--no-compile", action="store_true", help="leave out what is compiled or run")
    corpus.add_argument(
        "--no-mlir", action="store_true", help="leave out the allocations and copies of what each pipeline made, run"
    )
    _add_json(corpus, "write everything as JSON too")
    return top


def _command(commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, what: str, more: str):  # pyright: ignore[reportPrivateUsage]
    command = commands.add_parser(
        name, help=what, description=what, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command.set_defaults(command=name, trouble=1)
    return command


def _add_program(command: argparse.ArgumentParser) -> None:
    command.add_argument("program", metavar="PROGRAM", help="a file, or module:function")
    command.add_argument("--entry", metavar="NAME", help="of a file: the function to look at (default: @main)")
    command.add_argument("--args", metavar="MODULE:NAME", help="what gives the function's arguments")
    command.add_argument("-p", "--pipeline", help=f"{_PIPELINE}, or the saved one)")
    command.add_argument("--donate", action="append", metavar="PATH", help="donate this argument too")
    command.add_argument(
        "--fail-on",
        action="append",
        default=[],
        choices=("not-donated", "does-not-fit"),
        help="exit with 3 where this is so (give it several times). not-donated: nothing is donated, or no result "
        "takes over the buffer of a donated argument (what JAX leaves to XLA is compiled for it). does-not-fit: as JAX "
        "donates, it does not fit a --target, or --fits",
    )
    command.add_argument("--html", type=pathlib.Path, metavar="FILE", help="write the report as HTML too")
    _add_json(command, "write everything known as JSON too: Inspection.to_dict()")


def _add_json(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--json", type=pathlib.Path, metavar="FILE", help=what)
