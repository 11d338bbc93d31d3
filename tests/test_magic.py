"""`%donation`: options, the one call, its arguments evaluated and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from donation_inspector.errors import CompileError, PassError
from donation_inspector.notebook.magic import MagicError, Request, call_of, evaluate, parse


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("f(x, y)", Request("f(x, y)")),
        ("p, s = f(x)", Request("p, s = f(x)")),
        ("", Request("")),
        ("--compare", Request("", compare=True)),
        ("--compare f(x)", Request("f(x)", compare=True)),
        ("--measure --compare f(x)", Request("f(x)", compare=True, measure=True)),
        ("--donate params --donate opt_state f(x)", Request("f(x)", donate=("params", "opt_state"))),
        ("""--donate "params['w 1']" f(x)""", Request("f(x)", donate=("params['w 1']",))),
        ("--keep=batch -f(x)", Request("-f(x)", keep=("batch",))),
        ("--target tpu:v5e --target=tpu:v6e f(x)", Request("f(x)", targets=("tpu:v5e", "tpu:v6e"))),
        ("--fits '24 GB' f(x)", Request("f(x)", fits="24 GB")),
        ("--pipeline 'a,b{c=1}' f(x - --y)", Request("f(x - --y)", pipeline="a,b{c=1}")),
    ],
)
def test_options_come_first_and_the_rest_is_code(line: str, expected: Request) -> None:
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--mesure f(x)", "did you mean --measure"),
        ("--donate", "--donate needs a value"),
        ("--compare=1 f(x)", "--compare takes no value"),
    ],
)
def test_a_bad_line_is_told_with_the_usage(line: str, words: str) -> None:
    with pytest.raises(MagicError, match=words) as raised:
        parse(line)
    assert "%donation [--donate PATH]" in str(raised.value)


@pytest.mark.parametrize("code", ["f(x)", "p, s = f(x)", "p: int = f(x)", "x += f(x)", "a.b[0](x)(y)"])
def test_one_call_is_found_behind_an_assignment(code: str) -> None:
    assert call_of(code).args


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("f", "is not a call"),
        ("x = 3", "is not a call"),
        ("f(x); g(y)", "2 statements"),
        ("f(x", "not Python"),
        ("def f(): pass", "is not a call"),
    ],
)
def test_what_is_no_call_is_refused(code: str, words: str) -> None:
    with pytest.raises(MagicError, match=words):
        call_of(code)


def test_arguments_are_evaluated_and_the_function_is_not_called() -> None:
    calls: list[str] = []
    namespace: dict[str, Any] = {
        "f": lambda *_args, **_kwargs: calls.append("f"),
        "make": lambda n: calls.append("make") or n,
        "xs": [1, 2],
        "options": {"b": 5},
    }
    fn, args, kwargs = evaluate(call_of("p, s = f(make(7), *xs, k={'a': xs}, **options)"), namespace)
    assert (fn, args, kwargs) == (namespace["f"], (7, 1, 2), {"k": {"a": [1, 2]}, "b": 5})
    assert calls == ["make"]
    assert set(namespace) - {"__builtins__"} == {"f", "make", "xs", "options"}


def test_an_argument_that_cannot_be_evaluated_is_one_message() -> None:
    with pytest.raises(MagicError, match=r"`f\(missing\)` cannot be evaluated: NameError: name 'missing'"):
        evaluate(call_of("f(missing)"), {"f": print})


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "donation_inspector")
    shell.run_cell("import jax.numpy as jnp\ndef double(x): return x * 2")
    yield shell
    InteractiveShell.clear_instance()


def test_the_magic_gives_an_inspection_and_assigns_nothing(shell: InteractiveShell) -> None:
    inspection = shell.run_line_magic("donation", "--donate x y = double(jnp.ones(4))")
    assert inspection.arguments[0].result == 0
    assert "y" not in shell.user_ns
    many_lines = shell.run_cell_magic("donation", "--donate x", "double(\n    jnp.ones(4),\n)")
    assert many_lines.arguments == inspection.arguments


def test_the_magic_sees_the_locals_of_a_function(shell: InteractiveShell) -> None:
    shell.run_cell(
        "def looked_at():\n"
        "    inside = jnp.ones(8)\n"
        "    return get_ipython().run_line_magic('donation', 'double(inside)')\n"
        "found = looked_at()"
    )
    assert shell.user_ns["found"].arguments[0].shape == (8,)


def test_a_pipeline_that_does_not_exist_is_told_at_once(shell: InteractiveShell) -> None:
    with pytest.raises(PassError, match="no pass 'nope'"):
        shell.run_line_magic("donation", "--pipeline nope double(jnp.ones(4))")


def test_an_amount_of_memory_compiles_and_says_what_fits(shell: InteractiveShell) -> None:
    shell.run_cell("import jax, jax.numpy as jnp; step = jax.jit(lambda w: w * 2, donate_argnums=0)")
    shell.run_cell("w = jnp.ones((64, 64))")
    inspection = shell.run_line_magic("donation", "--fits 20KB step(w)")
    assert [one.fits for one in inspection.comparison.variants.values()] == [False, True, True]


def test_a_target_that_does_not_exist_is_told(shell: InteractiveShell) -> None:
    shell.run_cell("import jax.numpy as jnp; f = lambda w: w * 2; w = jnp.ones(4)")
    with pytest.raises(CompileError, match="There is no target 'moon'"):
        shell.run_line_magic("donation", "--target moon f(w)")


def test_the_passes_own_ir_is_counted(shell: InteractiveShell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("import jax, jax.numpy as jnp; f = jax.jit(lambda w: w * 2, donate_argnums=0); w = jnp.ones(4)")
    inspection = shell.run_line_magic("donation", "--target mlir f(w)")
    table = [line.split()[:3] for line in capsys.readouterr().out.splitlines() if line]
    assert table[1:3] == [["none", "1", "0"], ["jax-use-donated-arguments", "0", "0"]]
    assert inspection.bufferization is not None
    assert len(inspection.comparisons) == 0


@pytest.mark.parametrize("taking", ["next(it)", "next(it, None)", "it.__next__()", "next(iter(it))"])
def test_what_the_line_takes_out_of_an_iterator_is_told(
    shell: InteractiveShell, taking: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("import jax.numpy as jnp; it = (jnp.ones(3) for _ in range(3))")

    shell.run_line_magic("donation", f"jnp.negative({taking})")

    assert f"{taking} was evaluated, as every argument is: what it took out of it is not" in capsys.readouterr().out
    assert len(list(shell.user_ns["it"])) == 2


@pytest.mark.parametrize("argument", ["next(iter(loader))", "loader[0]"])
def test_nothing_is_told_where_nothing_is_lost(
    shell: InteractiveShell, argument: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("import jax.numpy as jnp; loader = [jnp.ones(3)]")

    shell.run_line_magic("donation", f"jnp.negative({argument})")

    assert capsys.readouterr().out == ""
