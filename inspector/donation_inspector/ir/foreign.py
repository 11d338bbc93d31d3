"""Modules that somebody else made: read in a child process first, since some of them end the process that reads them.

jaxlib's parser and verifier crash on damaged bytecode and on deep nesting, and its bindings abort on names that are no
UTF-8. A quarter of a second once for the same bytes.
"""

# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading

from jaxlib.mlir import ir

from donation_inspector.common.interrupts import held
from donation_inspector.errors import IRError
from donation_inspector.ir import source, trial
from donation_inspector.machine import system

_CODE = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from donation_inspector.ir import trial; "
    "trial.main(aloud=sys.argv[2] == 'aloud')"
)
_KEPT = 4096


def parse(data: bytes | str) -> ir.Module:
    """As `source.parse`; a module that would end this process is an IRError.

    Raises:
      IRError: as `source.parse`; a module that jaxlib crashes on, or a name in it that is no UTF-8.
      MachineError: no child process can be had.
    """
    given = source.readable(data)
    _try(given)
    return source.read(given)


_survived: dict[bytes, None] = {}
_lock = threading.Lock()


def _try(given: bytes | str) -> None:
    raw = given if isinstance(given, bytes) else given.encode()
    key = hashlib.sha256(raw).digest()
    if key in _survived:
        return
    code, _ = _child(raw, "silent")
    if code:
        raise IRError(_told(code, *_child(raw, "aloud")))
    with _lock:
        _survived[key] = None
        while len(_survived) > _KEPT:
            del _survived[next(iter(_survived))]


def _child(raw: bytes, voice: str) -> tuple[int, str]:
    """The exit code of a child that reads it, and the last thing that it said."""

    def start() -> subprocess.Popen[bytes]:
        path = json.dumps([entry for entry in sys.path if entry])
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return system.start_python(_CODE, path, voice, env=system.own_environment(), **pipes)

    with held(start, system.kill) as process:
        said, errors = process.communicate(raw)
    last = said.decode(errors="replace").splitlines()[-1:]
    code = process.returncode
    if code == -6 and b"conversion error" in errors:
        code = trial.UNREADABLE
    if code > 0 and code != trial.UNREADABLE:
        # not about the module: the child did not get as far as that
        words = errors.decode(errors="replace").strip().splitlines()[-1:]
        raise IRError(f"It could not be tried in a child process first, which ended with code {code}: {''.join(words)}")
    return code, "".join(last)


def _told(code: int, again: int, last: str) -> str:
    if code == trial.UNREADABLE:
        where = f": {last}" if again == code and last else ""
        return f"A name in this module is no UTF-8, which jaxlib cannot give to Python{where}. Write it in UTF-8."
    at = f" It was at {last}." if again == code and last else ""
    return (
        f"jaxlib crashes on this module ({system.signal_name(-code)} in a child process that read it first).{at} It is "
        "damaged, or nested very deeply: get it again, or as text from the JAX that made it."
    )
