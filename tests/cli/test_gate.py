"""--fail-on: what a CI run asks, and that it is what `assert_donated` raises on."""

from __future__ import annotations

import sys

import pytest

import donation_inspector as di
from donation_inspector.cli import main


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
