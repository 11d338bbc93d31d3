"""Importing is light, and the core needs no notebook; each check in a fresh interpreter."""

import os
import subprocess
import sys
import textwrap

HEAVY = ("jax", "jaxlib", "xdsl", "numpy", "IPython", "ipywidgets", "anywidget", "jupyterlab")


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = run(f"""
        import sys
        import donation_inspector
        print(*[name for name in {HEAVY!r} if name in sys.modules])
    """)
    assert loaded.split() == []


def test_listing_the_public_names_loads_nothing_heavy() -> None:
    loaded = run(f"""
        import sys
        import donation_inspector
        assert "inspect" in dir(donation_inspector)
        print(*[name for name in {HEAVY!r} if name in sys.modules])
    """)
    assert loaded.split() == []


def test_the_core_works_where_no_notebook_is_installed() -> None:
    out = run("""
        import sys

        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {"ipywidgets", "anywidget", "IPython", "ipykernel", "jupyterlab"}:
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Absent())

        import jax
        import jax.numpy as jnp
        import donation_inspector as di

        step = jax.jit(lambda w, g: w - g, donate_argnums=0)
        inspection = di.inspect(step, jnp.ones((256, 256)), jnp.ones((256, 256)))
        applied = inspection.apply()
        comparison = inspection.compare()
        measurement = inspection.measure(runs=1)
        print(applied.pairs, sorted(comparison.variants), sorted(measurement.variants), measurement.outputs_equal)
        assert inspection.report()
    """)
    assert out.split("\n")[0] == "{0: 0} ['jax', 'none', 'pass'] ['jax', 'none', 'pass'] True"
