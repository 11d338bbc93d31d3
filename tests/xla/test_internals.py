"""A newer JAX lacks private names: what needs them is one error that says so, and the rest goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import pytest

from donation_inspector.xla import internals

HIDDEN = """
import importlib, sys
import jax, jax.numpy as jnp

def hide(module, *names):
    module = importlib.import_module(module)
    kind = type(module)

    class Newer(kind):
        def __getattribute__(self, asked):
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if caller.startswith("donation_inspector") and (asked in names or not names and asked[:2] != "__"):
                raise AttributeError(asked)
            return super().__getattribute__(asked)

    module.__class__ = Newer
"""

TEXT = "module { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> } }"


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HIDDEN + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_where_every_private_name_is_gone_di_jit_goes_on_and_the_rest_is_told() -> None:
    modules = sorted({module for module, _ in internals._NAMES.values()})
    out = run(f"""
        for module in {modules!r}:
            hide(module)
        for module in ("interpreters.mlir", "pjit", "compiler", "xla_bridge"):
            hide("jax._src." + module)
        import donation_inspector as di
        print(len(di.inspect_ir({TEXT!r}).report()) > 20, di.jit(lambda p: p + 1, pairs={{0: 0}})(jnp.ones(3)))
        for call in (lambda: di.inspect(jax.jit(lambda x: x + 1), jnp.ones(3)), lambda: di.watch().__enter__()):
            try:
                call()
            except di.TraceError as error:
                print(error)
    """)
    first, *errors = out.splitlines()
    assert first == "True [2. 2. 2.]"
    assert len(errors) == 2
    assert "has no jax._src." in errors[0]
    for error in errors:
        assert jax.__version__ in error
        assert f"tested with jax {internals.TESTED}" in error


def test_what_is_missing_turns_off_what_needs_it_alone() -> None:
    out = run("""
        hide("jax._src.interpreters.pxla", "create_compile_options", "_create_device_list")
        hide("jax._src.core", "ensure_no_leaks")
        hide("jax._src.pjit", "_get_fastpath_data")
        import donation_inspector as di
        inspection = di.inspect(jax.jit(lambda x: x + 1, donate_argnums=0), jnp.ones(3))
        print(inspection.apply().pairs)
        try:
            inspection.compare()
        except di.DonationInspectorError as error:
            print(jax.__version__ in str(error), error)
    """)
    pairs, error = out.splitlines()
    assert pairs == "{0: 0}"
    assert error.startswith("True")
    assert "compile a module as JAX would" in error


@pytest.mark.parametrize(("end", "pins"), [(0, "constraints-oldest.txt"), (-1, "constraints.txt")])
def test_the_versions_that_are_told_are_those_that_are_tested(end: int, pins: str) -> None:
    lines = (Path(__file__).parents[2] / pins).read_text().splitlines()
    version = next(line.removeprefix("jax==") for line in lines if line.startswith("jax=="))
    assert internals.TESTED.split(" to ")[end] == version
