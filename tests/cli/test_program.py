"""What a program is named by, what gives its arguments, and what is said when that is wrong."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import pytest

import donation_inspector as di
from donation_inspector.cli import main
from donation_inspector.cli.program import open_program
from shell_programs import SWAP, TRAIN


def test_a_function_is_inspected_as_in_python(train: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", f"{train}:step", "--args", f"{train}:make_args"]) == 0
    scope: dict[str, Any] = {**vars(sys.modules[train]), "di": di}
    exec("report = di.inspect(step, *make_args()).report()", scope)
    assert capsys.readouterr().out == scope["report"] + "\n"


@pytest.mark.parametrize("named", ["{train}:trainer.step", "{train}.py:trainer.step", "./{train}.py:trainer.step"])
def test_a_method_and_a_file_of_python_are_functions_too(named: str, train: str) -> None:
    inspection = open_program(named.format(train=train), "positional").inspection
    assert [(one.path, one.donated) for one in inspection.arguments] == [("params", True), ("batch", False)]


def test_a_file_in_a_package_is_imported_in_it(train: str, tmp_path: pathlib.Path) -> None:
    package = tmp_path / "source" / f"of_{train}"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "rates.py").write_text("RATE = 3.0")
    (package / "steps.py").write_text("from .rates import RATE\ndef step(x): return RATE * x")
    found = open_program(f"source/of_{train}/steps.py:step", f"{train}:one").inspection
    assert [one.path for one in found.arguments] == ["x"]
    assert sys.modules[f"of_{train}.steps"].RATE == 3.0


def test_a_file_wins_where_there_is_one_of_that_name(train: str, swap: pathlib.Path) -> None:
    (swap.parent / f"{train}:step").write_text(SWAP)
    assert open_program(f"{train}:step", None).inspection.jaxpr is None


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ("positional", ["first", "second"]),
        ("keywords", ["second"]),
        ("both", ["first", "second"]),
        ("one", ["first"]),
        ("tree", ["first.x", "first.y"]),
        ("alone", ["first['w']"]),
        ("numbered", ["first[0]"]),
        ("array_and_dict", ["first", "second['second']"]),
    ],
)
def test_a_tuple_is_positional_a_dict_is_keywords_and_anything_else_one_argument(
    given: str, paths: list[str], train: str
) -> None:
    assert [one.path for one in open_program(f"{train}:either", given).inspection.arguments] == paths


@pytest.mark.parametrize(
    ("named", "given", "words"),
    [
        ("{train}:stpe", None, "{train} has no 'stpe'; near it: step"),
        ("{train}:trainer.stop", None, "{train}:trainer has no 'stop'; near it: step."),
        ("{train}.py:step", "makeargs", "{train}.py has no 'makeargs'; near it: make_args"),
        ("no_such:step", None, "There is no module 'no_such' to import from"),
        ("{train}.sub:step", None, "There is no module '{train}.sub' to import from"),
        ("no_such.py:step", None, "There is no file no_such.py."),
        ("{train}:step", None, "{train}:step(params, batch) needs arguments: give --args module:name"),
        (
            "{train}:either",
            "wrong",
            "unexpected keyword argument 'third'. It gives 0 positional, third=: a tuple",
        ),
        ("{train}:takes", "positional", "too many positional arguments. It gives 2 positional: a tuple"),
        (
            "{train}:either",
            "raises",
            "raises() fails: KeyError: 'nothing' ({train}.py:{line}: return {{}}[\"nothing\"])",
        ),
        ("{train}:either", "generates", "generates() gives a generator: it has to return the arguments"),
        ("{train}:either", "takes", "takes() fails: TypeError: takes() missing 1 required positional argument"),
        ("{train}:one", None, "is no function"),
        ("{swap}", "one", "--args goes with module:function, and {swap} is no function but a file."),
        ("json.py:loads", None, "json.py has the name of a module that is loaded already"),
        ("bad_import.py:f", None, "bad_import.py cannot be imported: ModuleNotFoundError: No module named 'absent' ("),
        ("bad_name:f", None, "bad_name cannot be imported: NameError: name 'y' is not defined (bad_name.py:2: x = y)"),
        ("bad_syntax:f", None, "bad_syntax cannot be imported: SyntaxError: invalid syntax (bad_syntax.py:1: x = = 1)"),
        ("script:f", None, "script cannot be imported: it ends the process (SystemExit: usage) (script.py:2: sys.exit"),
    ],
)
def test_what_is_wrong_with_a_program_is_told_in_one_line(
    named: str, given: str | None, words: str, train: str, swap: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "json": "",
        "bad_import": "import absent",
        "bad_name": "\nx = y",
        "bad_syntax": "x = = 1",
        "script": "import sys\nsys.exit('usage')",
    }
    for name, text in files.items():
        pathlib.Path(f"{name}.py").write_text(text)
    options = [] if given is None else ["--args", given]
    assert main(["inspect", named.format(train=train, swap=swap), *options]) == 1
    captured = capsys.readouterr()
    line = TRAIN.split("\n").index('    return {}["nothing"]') + 1
    assert words.format(train=train, swap=swap, line=line) in captured.err
    assert captured.err.startswith("donation-inspector: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_arrays_of_a_function_are_what_is_measured(
    train: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "step.json"
    arguments = ["measure", f"{train}:step", "--args", "make_arrays", "--runs", "1", "--json", str(written)]
    assert main(arguments) == 0
    assert "inputs: real; 1 run each" in capsys.readouterr().out
    measured = json.loads(written.read_text())["measurement"]
    assert (measured["inputs"], measured["runs"], measured["outputs_equal"]) == ("real", 1, True)
    saved = measured["variants"]["none"]["peak"] - measured["variants"]["jax"]["peak"]
    assert abs(saved - 1024 * 1024 * 4) < 1024 * 1024
