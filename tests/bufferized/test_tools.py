"""MLIR's tools found, missing, of another version; what they refuse, and how they are ended."""

from __future__ import annotations

import pathlib
import threading
import time

import pytest

import donation_inspector as di
from donation_inspector.bufferized import tools
from donation_inspector.bufferized.tools import ToolCancelled, ToolDied, ToolError
from donation_inspector.errors import CompileError

BOTH = ("mlir-opt", "mlir-translate")


def script(path: pathlib.Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def soon() -> float:
    return time.monotonic() + 30


def test_on_an_empty_path_it_is_told_how_to_get_them(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    inspection = di.inspect(lambda a: a + 1, 1.0)
    with pytest.raises(CompileError) as told:
        inspection.compare("mlir")
    assert str(told.value) == (
        "The target 'mlir' needs mlir-opt and mlir-translate of LLVM 19, and llvmlite: install mlir-19-tools (on "
        "Debian and Ubuntu: apt-get install mlir-19-tools) and pip install 'donation-inspector[mlir]'. Here no "
        "mlir-opt-19 is on the PATH and no mlir-translate-19 is on the PATH."
    )
    last = di.targets()[-1]
    assert (last.name, last.available, last.why_not) == ("mlir", False, str(told.value))


def test_another_version_is_named_and_the_right_one_is_found_by_either_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(
        tools.shutil, "which", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None
    )
    for name in BOTH:
        script(tmp_path / name, "echo '  LLVM version 20.1.0'")
    with pytest.raises(CompileError, match=r"mlir-opt is of LLVM 20 and .*mlir-translate is of LLVM 20"):
        tools.find()
    script(tmp_path / "mlir-opt-19", "echo '  LLVM version 19.1.7'")
    script(tmp_path / "mlir-translate-19", "exit 3")
    with pytest.raises(CompileError, match=r"Here .*mlir-translate-19 is of LLVM an unknown version, "):
        tools.find()
    script(tmp_path / "plain", "echo '  LLVM version 19.1.7'")
    (tmp_path / "mlir-translate-19").unlink()
    (tmp_path / "mlir-translate").unlink()
    (tmp_path / "plain").rename(tmp_path / "mlir-translate")
    tools._version.cache_clear()
    assert tools.find() == tools.Tools(str(tmp_path / "mlir-opt-19"), str(tmp_path / "mlir-translate"))
    assert tools.why_not() is None


def test_llvmlite_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.importlib.util, "find_spec", lambda _: None)
    assert (tools.why_not() or "").endswith("Here llvmlite is not installed.")


def test_a_refusal_is_the_tools_own_words_with_the_operation() -> None:
    found = tools.find()
    text = '"func.func"() <{function_type = () -> (), sym_name = "main"}> ({ "acme.op"() : () -> () }) : () -> ()'
    with pytest.raises(ToolError, match=r"^mlir-opt-19 refuses it: operation being parsed with an unregistered"):
        tools.run(found.opt, [], text, cancel=None, deadline=soon())


def test_a_tool_that_dies_hangs_or_is_not_wanted_any_more_is_ended(tmp_path: pathlib.Path) -> None:
    dies = script(tmp_path / "dies", "cat > /dev/null; echo stray >&2; kill -SEGV $$")
    with pytest.raises(ToolDied, match=r"^dies was killed by SIGSEGV\.$"):
        tools.run(dies, [], "text", cancel=None, deadline=soon())
    hangs = script(tmp_path / "hangs", f"echo $$ > {tmp_path}/pid; exec sleep 100")
    with pytest.raises(TimeoutError, match="hangs did not end in time"):
        tools.run(hangs, [], "text", cancel=None, deadline=time.monotonic() + 0.5)
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(ToolCancelled):
        tools.run(hangs, [], "text", cancel=cancelled, deadline=soon())
    pid = int((tmp_path / "pid").read_text())
    assert not pathlib.Path(f"/proc/{pid}").exists()


def test_a_long_text_goes_in_while_the_answer_comes_out(tmp_path: pathlib.Path) -> None:
    text = "line\n" * 100_000
    assert tools.run(script(tmp_path / "slow", "sleep 0.1; cat"), [], text, cancel=None, deadline=soon()) == text
