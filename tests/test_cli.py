"""The command line: a report or one line of error, and the exit code."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

import jax
import pytest

import donation_inspector as di
from donation_inspector.cli import main
from donation_inspector.cli.program import open_program
from donation_inspector.opening import inspect_ir

SWAP = """
module {
  func.func public @main(%arg0: tensor<8xf32> {tf.aliasing_output = 1 : i32}, %arg1: tensor<8xf32>)
      -> (tensor<8xf32>, tensor<8xf32>) {
    return %arg1, %arg0 : tensor<8xf32>, tensor<8xf32>
  }
}
"""

COMMAND = [sys.executable, "-c", "from donation_inspector.cli import main; raise SystemExit(main())"]


@pytest.fixture
def swap(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "swap.mlir"
    path.write_text(SWAP)
    return path


def test_it_prints_the_report_and_writes_the_page(
    swap: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "swap.html"
    assert main(["inspect", str(swap), "--donate", "arg1", "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "swap.mlir" in printed
    assert "jax-use-donated-arguments: 2 pairs" in printed
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.mlir"], "cannot be read"),
        (["{swap}", "-p", "no-such-pass"], "no pass 'no-such-pass'"),
        (["{swap}", "--donate", "arg7"], "no argument 'arg7'"),
        (["{swap}", "--html", "{swap}/page.html"], "cannot be written: Not a directory"),
        (
            ["{swap}", "--json", "no/such/folder.json"],
            "no/such/folder.json cannot be written: No such file or directory",
        ),
        (["{swap}", "--target", "moon"], "There is no target 'moon'"),
        (["{swap}", "--compare", "--fits", "much"], "fits='much' is no amount of memory"),
    ],
)
def test_an_error_is_one_line_and_exit_code_one(
    swap: pathlib.Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", *(one.format(swap=swap) for one in arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.startswith("donation-inspector: ")
    assert "Traceback" not in captured.err


def test_what_was_computed_is_told_where_a_file_cannot_be_written(
    swap: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(swap), "--json", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "jax-use-donated-arguments: 1 pair." in captured.out
    assert f"{tmp_path} cannot be written: Is a directory" in captured.err


def test_a_reader_that_has_seen_enough_is_no_error(swap: pathlib.Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb") as closed:
        run = subprocess.run([*COMMAND, "inspect", str(swap)], stdout=closed, stderr=subprocess.PIPE, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_xlas_own_log_stays_as_quiet_as_jax_keeps_it(swap: pathlib.Path) -> None:
    # as in a shell that JAX has not been imported in
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    run = subprocess.run([*COMMAND, "inspect", str(swap)], env=environment, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_it_compares_for_a_target_and_says_what_fits(swap: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(swap), "--compare", "--fits", "1KB"]) == 0
    printed = capsys.readouterr().out
    assert "it fits the 1.0 KB of a device" in printed
    assert printed.count(" yes\n") == 3


def test_a_file_is_measured_in_processes_of_its_own(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "double.mlir"
    path.write_text(
        "func.func public @main(%arg0: tensor<1024x1024xf32> {tf.aliasing_output = 0 : i32}) -> tensor<1024x1024xf32> "
        "{ %0 = stablehlo.add %arg0, %arg0 : tensor<1024x1024xf32> return %0 : tensor<1024x1024xf32> }"
    )
    assert main(["measure", str(path), "--runs", "1"]) == 0
    printed = capsys.readouterr().out
    assert "Donation saves 4.2 MB of 8.4 MB (50 %), compiled for cpu; measured 4." in printed
    assert "inputs: generated; 1 run each" in printed


def test_what_was_saved_is_read_as_any_file(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "step.di"
    inspect_ir(SWAP).donate("arg1").save(saved)
    assert main(["inspect", str(saved)]) == 0
    assert "jax-use-donated-arguments: 2 pairs" in capsys.readouterr().out
    broken = tmp_path / "broken.di"
    broken.write_bytes(saved.read_bytes()[:-200] + saved.read_bytes()[-100:])
    assert main(["inspect", str(broken)]) == 1
    assert "is no saved Inspection" in capsys.readouterr().err


# ---- programs of the user's own

TRAIN = """
from functools import partial
from typing import NamedTuple
import jax
import jax.numpy as jnp

@partial(jax.jit, donate_argnames=("params", "batch"))
def step(params, batch):
    return {name: value - 0.1 * batch.mean() for name, value in params.items()}

def make_args():
    return jax.eval_shape(lambda: ({"w": jnp.ones((256, 256))}, jnp.ones((8, 16))))

def make_arrays():
    return {"w": jnp.ones((1024, 1024))}, jnp.ones((8, 16))

class Trainer:
    def __init__(self, rate):
        self.rate = rate
    @partial(jax.jit, static_argnums=0, donate_argnames="params")
    def step(self, params, batch):
        return params - self.rate * batch.mean()

trainer = Trainer(0.1)

def either(first=None, second=None):
    return first, second

class Pair(NamedTuple):
    x: object
    y: object

@partial(jax.jit, donate_argnames="half")
def casts(half):
    return half.astype(jnp.float32) + 1

@partial(jax.jit, donate_argnums=(0, 1))
def drops(first, second):
    return second + 1

def nested(x):
    return drops(x, x)

@partial(jax.jit, donate_argnums=0)
def empty(x):
    return x.sum()

nothing = (jax.ShapeDtypeStruct((0,), jnp.float32),)
one = jax.ShapeDtypeStruct((4,), jnp.float32)
half = (jax.ShapeDtypeStruct((4,), jnp.bfloat16),)
positional = one, one
keywords = {"second": one}
both = (one,), {"second": one}
tree = Pair(one, one)
wrong = {"third": one}
alone = lambda: ({"w": one},)
numbered = {0: one}
array_and_dict = one, {"second": one}

def raises():
    return {}["nothing"]

def generates():
    yield one

def takes(something):
    return something
"""


@pytest.fixture
def train(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module in the current folder, a new one for each test: a module is imported once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"train_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(TRAIN)
    return name


def test_a_function_is_inspected_as_in_python(train: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", f"{train}:step", "--args", f"{train}:make_args"]) == 0
    module = sys.modules[train]
    assert capsys.readouterr().out == di.inspect(module.step, *module.make_args()).report() + "\n"


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


# ---- what a CI run asks


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--fail-on", "not-donated"], 3, "--fail-on not-donated: batch (512 B), unusable: "),
        (["--donate", "params", "--fail-on", "does-not-fit"], 1, "needs --target, or --fits"),
        (["--fits", "1MB", "--fail-on", "does-not-fit"], 0, ""),
        (["--fits", "200KB", "--fail-on", "does-not-fit"], 3, "does-not-fit: step on cpu: over by 62.7 KB of 200 KB"),
        (["--compare", "--fail-on", "does-not-fit"], 1, "step on cpu is unknown: the memory of a device is not known"),
    ],
)
def test_a_ci_run_fails_on_what_it_asks(
    options: list[str], code: int, words: str, train: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", f"{train}:step", "--args", "make_args", *options]) == code
    captured = capsys.readouterr()
    assert captured.out.startswith("step · cpu")
    assert words in captured.err
    assert bool(captured.err) == bool(words)


def test_what_jax_left_to_xla_is_asked_of_xla(train: str, capsys: pytest.CaptureFixture[str]) -> None:
    # as many elements and fewer bytes: JAX leaves it to XLA without a word, and XLA uses it for nothing
    assert main(["inspect", f"{train}:casts", "--args", "half", "--fail-on", "not-donated"]) == 3
    captured = capsys.readouterr()
    assert "half (8 B), donor: " in captured.err
    assert "XLA did not reuse it" in captured.err
    assert "compiled  argument" in captured.out


@pytest.mark.parametrize(
    ("fn", "given"),
    [("step", "make_args"), ("casts", "half"), ("drops", "positional"), ("nested", "one"), ("empty", "nothing")],
)
def test_it_fails_on_what_assert_donated_raises(
    fn: str, given: str, train: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", f"{train}:{fn}", "--args", given, "--fail-on", "not-donated"]) == 3
    lines = capsys.readouterr().err.splitlines()
    module = sys.modules[train]
    arguments = getattr(module, given)
    arguments = arguments() if callable(arguments) else arguments
    with pytest.raises(AssertionError) as raised:
        di.assert_donated(getattr(module, fn), *(arguments if isinstance(arguments, tuple) else (arguments,)))
    told = [line.split(" (")[0].strip() for line in str(raised.value).splitlines() if line.startswith("  ")]
    if told:
        assert [line.partition("not-donated: ")[2].split(" (")[0] for line in lines] == told
    else:
        assert lines == [f"donation-inspector: --fail-on not-donated: {fn} donates nothing"]


def test_nothing_donated_is_not_donated(train: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", f"{train}:takes", "--args", "one", "--fail-on", "not-donated"]) == 3
    assert capsys.readouterr().err == "donation-inspector: --fail-on not-donated: takes donates nothing\n"
    assert main(["inspect", f"{train}:trainer.step", "--args", "positional", "--fail-on", "not-donated"]) == 0


def test_a_donation_is_recommended_with_the_lines_to_paste(
    train: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "step.json"
    arguments = ["inspect", f"{train}:either", "--args", "both", "--recommend", "5", "--json", str(written)]
    assert main(arguments) == 0
    found = json.loads(written.read_text())["recommendation"]
    either, one = sys.modules[train].either, sys.modules[train].one
    stats = jax.jit(either).lower(one, second=one).compile().memory_analysis()
    assert stats is not None
    total = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
    assert (found["target"], found["baselines"]["none"]) == ("cpu", total)
    printed = capsys.readouterr().out
    assert "\n\nRecommended on cpu (compiled; " in printed
    assert printed.endswith(f"{found['code']}\n".lstrip("\n"))


def test_two_versions_are_compared_from_what_was_written(
    train: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after, found = (tmp_path / name for name in ("before.json", "after.json", "found.json"))
    for path, options in ((before, []), (after, ["--donate", "second"])):
        assert main(["inspect", f"{train}:either", "--args", "both", "--json", str(path), *options]) == 0
    capsys.readouterr()
    assert main(["diff", str(before), str(before)]) == 0
    assert capsys.readouterr().out == "either\n\nNothing is different.\n"
    assert main(["diff", str(before), str(after), "--json", str(found)]) == 1
    assert "second    not donated  aliased  16 B\n" in capsys.readouterr().out
    assert json.loads(found.read_text())["same"] is False
    assert main(["diff", str(before), str(tmp_path / "none.json")]) == 2
    assert "none.json cannot be read: No such file" in capsys.readouterr().err


def test_ctrl_c_in_the_users_code_is_no_traceback(tmp_path: pathlib.Path) -> None:
    (tmp_path / "slow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(60)")
    command = [*COMMAND, "inspect", "slow:f"]
    run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "here\n"
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=60)[1] == "donation-inspector: interrupted.\n"
    assert run.returncode == 130


@pytest.mark.parametrize("ended", ["compare", "measure"])
def test_ctrl_c_at_any_time_leaves_what_was_finished(
    ended: str, train: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compare = di.Inspection.compare

    def interrupted(self: di.Inspection, *args: Any, cancel: Any = None, **kwargs: Any) -> Any:
        if ended == "measure":
            raise KeyboardInterrupt
        answer = compare(self, *args, cancel=cancel, **kwargs)
        if cancel is None:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(di.Inspection, ended, interrupted)
    assert main(["measure", f"{train}:step", "--args", "make_args"]) == 130
    captured = capsys.readouterr()
    assert "compiled  argument  output" in captured.out
    assert captured.err == "donation-inspector: interrupted, the rest is left out.\n"
