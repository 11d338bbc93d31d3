"""A child process where the machine gives little: what is not needed is done without, the rest is one message."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from donation_inspector.xla.process import child

HERE = Path(__file__).parent
_ASK = """
import json, os, pickle, resource, shutil, sys, tempfile
sys.path.insert(0, {here!r})
from donation_inspector.errors import MachineError
from donation_inspector.xla.process import child

def ask(job="hello"):
    try:
        with child(job, os.environ, worker="echo_worker") as running:
            events = list(running.events(cancel=None, deadline=None))
        failure = running.failure
        return "".join(events) if failure is None else [failure.status, failure.error]
    except MachineError as error:
        return str(error)
"""


def answers(code: str) -> list[object]:
    """What a fresh interpreter prints, a line each; `ask(job)` asks a child of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _ASK.format(here=str(HERE)) + code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_closed_standard_descriptors_and_a_folder_that_is_gone_make_no_difference() -> None:
    code = """
out = os.dup2(1, 40)
for closed in ((0,), (1,), (0, 1, 2)):
    for fd in closed:
        os.close(fd) if os.path.exists(f"/proc/self/fd/{fd}") else None
    os.write(out, (json.dumps(ask()) + "\\n").encode())
folder = tempfile.mkdtemp()
os.chdir(folder)
shutil.rmtree(folder)
os.write(out, (json.dumps(ask()) + "\\n").encode())
"""

    assert answers(code) == ["hello"] * 4


@pytest.mark.parametrize(
    ("less", "said"),
    [
        ("resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/proc/self/fd')) + 1, 4096))", "ulimit -n"),
        ("resource.setrlimit(resource.RLIMIT_FSIZE, (3, 3))", "TMPDIR"),
        ("tempfile.tempdir = '/proc/nowhere'", "No such file"),
        ("sys.executable = ''", "sys.executable"),
        ("sys.executable = '/nowhere/python'", "/nowhere/python"),
    ],
    ids=["no descriptors", "disk full", "no temporary folder", "no interpreter", "interpreter gone"],
)
def test_what_is_not_to_be_had_is_one_message_with_what_to_do(less: str, said: str) -> None:
    (answer,) = answers(f"{less}\nprint(json.dumps(ask()))")

    assert isinstance(answer, str)
    assert "is needed here" in answer
    assert said in answer


def test_a_limit_on_memory_is_told_as_that() -> None:
    code = "resource.setrlimit(resource.RLIMIT_AS, (400 << 20,) * 2)\nprint(json.dumps(ask()))"

    (answer,) = answers(code)

    told = str(answer)
    assert "out of memory" in told
    assert "419 MB" in told
    assert "ulimit -v" in told


@pytest.mark.parametrize(
    ("job", "status"),
    [
        ("raise MemoryError while it was imported", "out of memory"),
        ("raise ImportError liblarge.so: failed to map segment from shared object", "out of memory"),
        ("raise ImportError liblarge.so: cannot open shared object file", "crashed"),
        ("segv", "crashed"),
    ],
)
def test_how_a_child_ended(job: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(HERE), *sys.path])

    with child(job, os.environ, worker="echo_worker") as running:
        assert not list(running.events(cancel=None, deadline=None))

    assert running.failure is not None
    assert running.failure.status == status


def test_a_child_ends_with_its_parent_while_it_still_imports(tmp_path: Path) -> None:
    (tmp_path / "slow_worker.py").write_text("import time\ntime.sleep(60)\n")
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
with child(None, os.environ, worker="slow_worker") as running:
    os.write(1, f"{{running.pid}}\\n".encode())
    import time; time.sleep(0.5)
    os.kill(os.getpid(), 9)
"""
    parent = subprocess.run(
        [sys.executable, "-c", _ASK.format(here=str(HERE)) + code], capture_output=True, text=True, timeout=60
    )
    pid = int(parent.stdout)
    try:
        for _ in range(100):
            os.kill(pid, 0)
            signal.sigtimedwait([], 0.05)
        left = True
    except ProcessLookupError:
        left = False

    assert parent.returncode == -signal.SIGKILL
    assert not left
