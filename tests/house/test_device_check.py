"""scripts/device_check.py, as it is run on a machine that has jax, numpy and xdsl alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

ALONE = """
import runpy, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"google", "IPython", "anywidget", "ipywidgets", "graphviz", "optax", "flax"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
sys.argv = ["device_check.py", "--pair", "1024", "--adam", "1024", "--gpt", "64", "--runs", "1"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_it_measures_three_programs_with_jax_numpy_and_xdsl_alone() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE],
        cwd=ROOT / "scripts",
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout)
    assert answer["platform"] == "cpu"
    pair, adam, gpt = answer["programs"]
    matrix = 1024 * 1024 * 4
    # Two matrices overwritten in place, and three of Adam's four: the saving is known without XLA.
    assert (pair["compiled_saved"], adam["compiled_saved"]) == (2 * matrix, 3 * matrix)
    assert abs(pair["measured_saved"] - 2 * matrix) < matrix / 10
    assert gpt["compiled_saved"] > 0
    for program in answer["programs"]:
        assert program["predicted_peak_in_program_order"] > 0
        assert program["outputs_equal"] is True
        for variant in program["variants"].values():
            assert variant["measured_error"] is None
            assert variant["measured_peak"] > 0
