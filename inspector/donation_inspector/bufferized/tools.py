"""What the target "mlir" needs: LLVM 19's mlir-opt and mlir-translate, and llvmlite."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass
from functools import cache

from donation_inspector.common.interrupts import held
from donation_inspector.errors import CompileError
from donation_inspector.machine import system

LLVM = 19
"""The one version whose passes and options the pipelines are written for: they change from one to the next."""

_HOW = (
    f"The target 'mlir' needs mlir-opt and mlir-translate of LLVM {LLVM}, and llvmlite: install mlir-{LLVM}-tools (on "
    f"Debian and Ubuntu: apt-get install mlir-{LLVM}-tools) and pip install 'donation-inspector[mlir]'."
)
_VERSION = re.compile(r"LLVM version (\d+)")
_OPERATION = re.compile(r"see current operation: [^\n]*?\"([\w.]+)\"\(")
_POLL_SECONDS = 0.02
_LINES = 6


@dataclass(frozen=True, slots=True)
class Tools:
    """The paths of the two programs."""

    opt: str
    translate: str


class ToolError(Exception):
    """A tool refused the IR, in its own words."""


class ToolDied(ToolError):
    """A tool died on the IR."""


class ToolCancelled(Exception):
    """The caller did not want the answer any more."""


def find() -> Tools:
    """The tools of this machine. Raises CompileError with what is missing and how to get it."""
    found = [_program(name) for name in ("mlir-opt", "mlir-translate")]
    missing = [why for path, why in found if path is None]
    if importlib.util.find_spec("llvmlite") is None:
        missing.append("llvmlite is not installed")
    if missing:
        raise CompileError(f"{_HOW} Here {' and '.join(missing)}.")
    opt, translate = (str(path) for path, _ in found)
    return Tools(opt, translate)


def why_not() -> str | None:
    """Why the target cannot be asked for here; None where it can."""
    try:
        find()
    except CompileError as error:
        return str(error)
    return None


def _program(name: str) -> tuple[str | None, str]:
    """The path of a tool, or why there is none."""
    others: list[str] = []
    for candidate in (f"{name}-{LLVM}", name):
        path = shutil.which(candidate)
        if path is None:
            continue
        version = _version(path)
        if version == str(LLVM):
            return path, ""
        others.append(f"{path} is of LLVM {version}")
    return None, ", ".join(others) or f"no {name}-{LLVM} is on the PATH"


@cache
def _version(path: str) -> str:
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "an unknown version"
    told = _VERSION.search(answer.stdout)
    return told[1] if told else "an unknown version"


def run(program: str, options: list[str], text: str, *, cancel: threading.Event | None, deadline: float) -> str:
    """What a tool makes of `text`; `deadline` is in `time.monotonic` seconds.

    Raises ToolError with the tool's own words, TimeoutError past the deadline, ToolCancelled when `cancel` is set.
    """
    name = pathlib.Path(program).name
    with system.file_with(text.encode()) as given:
        given.seek(0)

        def start() -> subprocess.Popen[str]:
            pipes = {"stdin": given, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            return system.start([program, *options], text=True, **pipes)

        with held(start, _ended) as process:
            while True:
                try:
                    made, said = process.communicate(timeout=_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    if cancel is not None and cancel.is_set():
                        raise ToolCancelled from None
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{name} did not end in time.") from None
    if process.returncode < 0:
        raise ToolDied(f"{name} was killed by {system.signal_name(-process.returncode)}.")
    if process.returncode:
        raise ToolError(f"{name} refuses it: {_told(said)}")
    return made


def _ended(process: subprocess.Popen[str]) -> None:
    running = process.poll() is None
    system.kill(process)
    if running:
        process.communicate()


def _told(said: str) -> str:
    """The first error, without its place in a text that nobody sees, and the operation that it is about."""
    head, _, rest = said.partition("error: ")
    if not rest:
        return "\n".join(head.splitlines()[-_LINES:]) or "it said nothing"
    error = rest.split("\n", 1)[0].strip()
    operation = _OPERATION.search(rest)
    return error if operation is None or operation[1] in error else f"{error}: {operation[1]}"
