"""The real `xdsl-opt`: in this process where many are run, its command line where one is."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sysconfig
from pathlib import Path

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import Builtin
from xdsl.xdsl_opt_main import xDSLOptMain


def as_a_new_process() -> None:
    """xDSL keeps resources for the life of a process, and mistakes those of a second text by the same name."""
    resources = Builtin.get_interface(OpAsmDialectInterface)
    assert resources is not None
    resources._blob_storage.clear()


def xdsl_opt(path: Path, *arguments: str) -> str:
    """What it prints."""
    as_a_new_process()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        xDSLOptMain(args=[str(path), *arguments]).run()
    return printed.getvalue()


def xdsl_opt_from_the_shell(path: Path, *arguments: str) -> str:
    """What it prints, run as a program."""
    program = f"{sysconfig.get_path('scripts')}/xdsl-opt"
    result = subprocess.run([program, str(path), *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout
