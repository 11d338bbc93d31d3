"""XLA in this process in place of a child's: many small programs in the time that one child takes to start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from donation_inspector.xla.buffers import Runner
from donation_inspector.xla.executable import compile_program, prepare
from donation_inspector.xla.program import Program
from donation_inspector.xla.results import Compiled

QUICKLY = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
"""Compiler options that make slow machine code fast. Few programs are fused otherwise; that buffers are shared and
copied as in those that the default options fuse alike was seen on every case but three."""


class InProcess:
    """Stands for `xla.compile.compile_variants`, and keeps what it compiled: `made` by the bytes of the module."""

    def __init__(self) -> None:
        self.made: dict[bytes, tuple[Compiled, Any]] = {}

    def compile_variants(
        self,
        programs: Mapping[str, Program],
        *,
        progress: Callable[[int, int, str], None] | None = None,
        cancel: threading.Event | None = None,
        timeout: float | None = None,  # noqa: ARG002  # what is small takes no time
        **_: Any,  # totals alone, nothing is kept
    ) -> dict[str, Compiled]:
        done: dict[str, Compiled] = {}
        for name, program in programs.items():
            if cancel is not None and cancel.is_set():
                done[name] = Compiled("cancelled", error="Cancelled.")
                continue
            done[name] = self.compile(program)
            if progress is not None:
                progress(len(done), len(programs), name)
        return done

    def compile(self, program: Program) -> Compiled:
        if program.bytecode not in self.made:
            prepare(program)
            self.made[program.bytecode] = compile_program(program)
        return self.made[program.bytecode][0]

    def hashes(self, program: Program) -> tuple[str, ...]:
        """What a program returns for generated arguments, bit by bit."""
        self.compile(program)
        runner = Runner(program, self.made[program.bytecode][1], [None] * len(program.inputs), None)
        return runner.hashes(runner.call(runner.inputs()))
