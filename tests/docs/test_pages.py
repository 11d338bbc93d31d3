"""The pages about frameworks do what they say: their code runs as one script, and prints what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ("jax", "flax_nnx", "flax_linen", "equinox")


def blocks(page: str, kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall((DOCS / f"{page}.md").read_text()) if found == kind]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_can_be_followed(page: str, tmp_path: Path) -> None:
    # not the name of a package that it imports
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")))
    run = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    for printed in blocks(page, "text"):
        assert printed in run.stdout


@pytest.mark.parametrize("page", PAGES)
def test_the_first_five_lines_end_in_the_line_to_change(page: str) -> None:
    first = blocks(page, "python")[0]
    assert first.rstrip().endswith("print(inspection.recommend())")
