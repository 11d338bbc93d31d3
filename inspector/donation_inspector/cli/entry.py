"""From the shell's words to an exit code: a report on stdout, or one line of error on stderr."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO, cast

from donation_inspector.cli.parser import parser
from donation_inspector.errors import DonationInspectorError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, which `--help` of each command lists."""
    options = parser().parse_args(arguments)
    stdout: TextIO = sys.stdout
    if isinstance(stdout, io.TextIOWrapper):
        # a terminal without UTF-8 still gets its report
        cast("io.TextIOWrapper[Any]", stdout).reconfigure(errors="replace")
    try:
        # JAX and XLA take a second to load: not for `--help`
        from donation_inspector.cli import commands

        return getattr(commands, options.command)(options)
    except BrokenPipeError:
        # whoever reads has seen enough (`| head`); Python must not try again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except DonationInspectorError as error:
        return _fail(str(error), options.trouble)
    except OSError as error:
        return _fail(f"{error.filename} cannot be written: {error.strerror}.", options.trouble)
    except KeyboardInterrupt:
        return _fail("interrupted.", 130)


def _fail(message: str, code: int) -> int:
    print(f"donation-inspector: {message}", file=sys.stderr)
    return code
