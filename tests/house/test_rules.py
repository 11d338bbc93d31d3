"""What no linter sees: private names in one place, nothing of one machine, notebooks with outputs, one version."""

import ast
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager

import donation_inspector

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "inspector" / "donation_inspector"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

PRIVATE = ("jax._src", "jaxlib._jax", "jaxlib.xla_client", "jaxlib.xla_extension")


def imported_modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def test_private_jax_names_live_in_xla_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in source_files()
        if SOURCE / "xla" not in path.parents
        for name in PRIVATE
        if name in path.read_text()
    ]
    assert found == []


def test_ir_takes_nothing_of_jaxlib_but_its_mlir_bindings() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (SOURCE / "ir").rglob("*.py")
        for name in imported_modules(ast.parse(path.read_text()))
        if name.partition(".")[0] == "jaxlib" and not name.startswith("jaxlib.mlir")
    ]
    assert found == []


def tracked_text() -> Iterator[tuple[str, str]]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        path = ROOT / name
        if path.is_file():
            yield name, path.read_text(encoding="utf-8", errors="replace")


def test_no_file_names_the_machine_it_was_written_on() -> None:
    # Notebook outputs and built files carry absolute paths most easily. An invented home is that of "me" or "you".
    homes = "|".join(map(re.escape, sorted({str(ROOT), str(Path.home())} - {"/"})))
    machine = re.compile(rf"(?<![\w./-])(?:(?:{homes})\b|/(?:home|Users)/(?!(?:me|you)/)\w+|/root/)")
    found = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for name, text in tracked_text()
        if name != str(Path(__file__).relative_to(ROOT))
        for match in machine.finditer(text)
    ]
    assert found == []


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_saved_with_the_outputs_of_one_run(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        kinds = {output["output_type"] for output in cell["outputs"]}
        assert "error" not in kinds or "raises-exception" in cell["metadata"].get("tags", ())
        # nbval compares what is there: a cell that shows something but was saved without it passes unseen.
        assert kinds or not shows_something("".join(cell["source"])), "".join(cell["source"])


def shows_something(source: str) -> bool:
    """Whether a cell prints, or ends in an expression or a magic other than `%load_ext`."""
    tree = ast.parse(TransformerManager().transform_cell(source))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    silent = "load_ext" in source.rstrip().rpartition("\n")[2] or source.rstrip().endswith(";")
    return bool({"print", "display"} & called) or (
        bool(tree.body) and isinstance(tree.body[-1], ast.Expr) and not silent
    )


def test_the_version_is_told_once() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert donation_inspector.__version__ == declared
    assert f"## [{declared}]" in (ROOT / "CHANGELOG.md").read_text()
