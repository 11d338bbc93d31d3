"""What stays: the first `inspect` of a tiny function however much is alive, and a kernel after reruns of one cell."""

import os
import time
from typing import Any

import jax
import jax.numpy as jnp
from jupyter_client.manager import start_new_kernel

import donation_inspector as di

ALIVE = (0, 2_000_000)
RERUNS = 20


def inspect_beside(alive: int) -> tuple[float, float]:
    """Milliseconds of process time of JAX's own trace and lower of a tiny function, and of `inspect`, beside lists."""
    held = [[one] for one in range(alive)]
    array = jnp.ones(4)

    def best(work: Any) -> float:
        seconds: list[float] = []
        for _ in range(5):
            step = jax.jit(lambda p, x: (p * x, x.sum()), donate_argnums=0)
            started = time.process_time()
            work(step)
            seconds.append(time.process_time() - started)
        return 1e3 * min(seconds)

    figures = best(lambda step: step.trace(array, array).lower()), best(lambda step: di.inspect(step, array, array))
    del held
    return figures


def reruns(setup: str, call: str) -> float:
    """Megabytes by which a kernel has grown from the first run of a cell, `%donation` and a call, to the last."""
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        printed: list[str] = []

        def keep(message: dict[str, Any]) -> None:
            printed.append(message["content"].get("text", ""))

        def run(code: str) -> str:
            printed.clear()
            client.execute_interactive(code, output_hook=keep, timeout=600)
            return "".join(printed)

        run(f"%load_ext donation_inspector\n{setup}")
        sizes: list[int] = []
        for _ in range(RERUNS):
            run(f"%donation {call}")
            sizes.append(int(run("print(open('/proc/self/statm').read().split()[1])")) * os.sysconf("SC_PAGE_SIZE"))
        return (sizes[-1] - sizes[0]) / 1e6
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def show(setup: str, call: str) -> None:
    """Print both; `setup` defines what `call`, a step of many operations, needs."""
    for alive in ALIVE:
        jax_, ours = inspect_beside(alive)
        print(f"inspect of a tiny function, {alive:,} objects alive: {ours:.0f} ms, JAX's trace + lower {jax_:.0f} ms")
    print(f"{RERUNS} reruns of %donation: the kernel grew by {reruns(setup, call):.0f} MB since the first")
