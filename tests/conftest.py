"""Settings that must stand before jax is first imported: the CPU platform with eight devices, which case 22 needs."""

import os
import signal

import pytest

os.environ["JAX_PLATFORMS"] = "cpu"
# Machine code is not what is tested: LLVM need not optimize it. What XLA makes of a module before is the same.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"

# A shell that starts the tests in the background has them ignore SIGINT; the tests of Ctrl-C send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Nothing is left out in silence."""
    sampled = config.getoption("markexpr") == "not exhaustive"
    return ["long sweeps: a fixed sample; `make test-exhaustive` runs the rest"] if sampled else []


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> None:
    """Each test's compiles are its own: what XLA made is else kept for as long as the process lives, by content."""
    from donation_inspector.program import answer_cache

    answer_cache.COMPILED.clear()
    answer_cache.EXECUTABLES.clear()
