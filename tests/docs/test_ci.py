"""docs/ci.md does what it says: its files are written, its commands run, its output is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.py)\n")

COMMANDS = {
    "python": '#!/bin/sh\nexec "{python}" "$@"\n',
    "donation-inspector": "#!{python}\nfrom donation_inspector.cli import main\nraise SystemExit(main())\n",
}


def test_the_page_can_be_followed(tmp_path: Path) -> None:
    binaries, work = tmp_path / "bin", tmp_path / "work"
    binaries.mkdir()
    work.mkdir()
    for name, text in COMMANDS.items():
        (binaries / name).write_text(text.format(python=sys.executable))
        (binaries / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    printed = ""
    for kind, text in BLOCK.findall(PAGE.read_text()):
        if kind == "python":
            named = FILE.match(text)
            assert named, "a block of Python begins with the name of its file"
            (work / named[1]).write_text(text)
        elif kind == "text":
            assert text.strip() in printed
        else:
            script = text if kind == "sh" else "\n".join(step["run"] for step in yaml.safe_load(text))
            run = subprocess.run(
                ["bash", "-e", "-c", script], cwd=work, env=environment, capture_output=True, text=True
            )
            assert run.returncode == 0, (script, run.stdout, run.stderr)
            printed = run.stdout
    assert (work / "donation.html").read_text().startswith("<!doctype html>")
