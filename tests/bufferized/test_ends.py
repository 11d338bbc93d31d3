"""However a run ends, there is an answer: crash, time-out, cancel, Ctrl-C, code that LLVM does not take."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.bufferized import measure
from donation_inspector.bufferized.values import UPSTREAM, Bufferized

MAIN = "define void @_mlir_ciface_main(ptr %0, ptr %1) {{\n{}\n}}\n"
TRAP = MAIN.format("  call void @llvm.trap()\n  unreachable") + "declare void @llvm.trap()"
ENDLESS = MAIN.format("  br label %again\nagain:\n  %1x = load volatile i8, ptr %0\n  br label %again").replace(
    "%1x", "%x"
)
UNKNOWN = MAIN.format("  call void @who_knows()\n  ret void") + "declare void @who_knows()"
NO_LLVM = "define what"
# writes one byte into its argument, which is not donated, and returns that argument
WRITES = (
    MAIN.format(
        "  %d = getelementptr i64, ptr %1, i64 1\n  %a = load ptr, ptr %d\n  store i8 1, ptr %a\n"
        "  call void @llvm.memcpy.p0.p0.i64(ptr %0, ptr %1, i64 40, i1 false)\n  ret void"
    )
    + "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
)


@pytest.fixture(scope="module")
def inspection() -> di.Inspection:
    return di.inspect(jax.jit(lambda a: a * 2, donate_argnums=0), jnp.zeros(4))


@pytest.mark.parametrize(
    ("llvm", "status", "error"),
    [
        (TRAP, "crashed", "The process was killed by SIG"),
        (ENDLESS, "timed out", "Timed out after 4 s, while it ran."),
        (NO_LLVM, "refused", "LLVM does not take it: "),
        (UNKNOWN, "refused", "LLVM does not take it: it calls who_knows, and no library here has that"),
    ],
)
def test_code_that_does_not_return(
    inspection: di.Inspection, monkeypatch: pytest.MonkeyPatch, llvm: str, status: str, error: str
) -> None:
    real = measure._Variants
    monkeypatch.setattr(
        measure, "_Variants", lambda task, reference, found, _, cancel: real(task, reference, found, 4.0, cancel)
    )
    monkeypatch.setattr(measure, "to_llvm", lambda *_: llvm)
    # nothing is donated: all three are the one program
    answer = inspection.keep("a").compare("mlir")
    for one in answer.variants.values():
        assert one.status == status
        assert one.error is not None
        assert one.error.startswith(error)
        assert (one.allocations, one.peak, one.outputs_close) == (None, None, None)
        assert "func.func public @main" in (one.ir or "")
    assert answer.rows()[0][1:] == ("unknown",) * 5 + (status,)


def test_what_writes_into_an_argument_that_is_not_donated_is_told(
    inspection: di.Inspection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "to_llvm", lambda *_: WRITES)
    one = inspection.keep("a").compare("mlir").variants["none"]
    assert one.error == "It wrote into arguments that are not donated, at position 0."
    assert one.outputs_close is False
    assert (one.allocations, one.copies, one.copied) == (0, 1, 40)


def test_ctrl_c_keeps_what_was_finished(inspection: di.Inspection) -> None:
    def stop(step: int, _steps: int, _label: str) -> None:
        if step == 2:
            raise KeyboardInterrupt

    variants = inspection.compare("mlir", progress=stop).variants
    assert variants["none"].allocations == 1
    assert [variants[name] for name in (UPSTREAM, "pass")] == [
        Bufferized(name, "cancelled", "Interrupted.") for name in (UPSTREAM, "pass")
    ]
    said: list[Any] = []
    inspection.compare("mlir", progress=lambda *told: said.append(told))
    assert [told[:2] for told in said] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_cancelled_before_it_began(inspection: di.Inspection) -> None:
    cancel = threading.Event()
    cancel.set()
    answer = inspection.compare("mlir", cancel=cancel)
    assert {(one.status, one.error) for one in answer.variants.values()} == {("cancelled", "Cancelled.")}
