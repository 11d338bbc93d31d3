"""From a program in linalg to a pass's IR, to buffers, to LLVM IR: what MLIR runs in which order, and why."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnrealizedConversionCastOp, i1
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from donation_inspector.bufferized import tools
from donation_inspector.bufferized.control_flow import to_scf
from donation_inspector.bufferized.signless import to_signless
from donation_inspector.bufferized.tools import ToolError, Tools
from donation_inspector.common.signature import Donation
from donation_inspector.errors import IRError
from donation_inspector.ir import linalg
from donation_inspector.ir.entry import entry_function
from donation_inspector.ir.importer import Imported, import_module
from donation_inspector.passes.pipeline import apply_pipeline

_UNREGISTERED = "--allow-unregistered-dialect"
# As XLA fuses: an operation for each tensor of the program would count values that nobody keeps.
_FUSE = [
    "--inline",
    "--symbol-dce",
    "--linalg-fuse-elementwise-ops",
    "--canonicalize",
    "--cse",
    "--mlir-print-op-generic",
]
_ELIMINATE = "--eliminate-empty-tensors"
_BUFFERIZE = [
    "--empty-tensor-to-alloc-tensor",
    "--one-shot-bufferize=bufferize-function-boundaries allow-return-allocs-from-loops "
    "function-boundary-type-conversion=identity-layout-map",
    "--canonicalize",
    "--cse",
    # frees each buffer behind its last use; what is returned stays with the caller
    "--buffer-deallocation",
    "--convert-bufferization-to-memref",
    "--canonicalize",
    "--cse",
]
_TO_LLVM = [
    "--llvm-request-c-wrappers",
    "--convert-linalg-to-loops",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--convert-complex-to-standard",
    "--convert-complex-to-llvm",
    # few CPUs compute in bf16, and LLVM calls functions then that are in no library here
    "--math-legalize-to-f32",
    "--arith-emulate-unsupported-floats=source-types=bf16 target-type=f32",
    "--arith-expand=include-bf16",
    "--convert-math-to-llvm",
    "--convert-math-to-libm",
    "--convert-index-to-llvm",
    "--convert-arith-to-llvm",
    "--finalize-memref-to-llvm",
    "--convert-func-to-llvm",
    "--convert-cf-to-llvm",
    "--reconcile-unrealized-casts",
]
# One-shot bufferization asks for more than malloc gives, and the padding would count as the program's.
_ALIGNMENT = re.compile(r" \{alignment = \d+ : i64\}")

# A property that jaxlib's MLIR writes and LLVM 19 does not have yet; without it the operation means the same.
_TRUNCATION = re.compile(r'("arith\.trunci"\(%\w+\)) <\{overflowFlags = #arith\.overflow<none>\}>')

# The bytes of so many elements, as LLVM 19 writes a constant; llvmlite's LLVM reads products no more.
_PRODUCT = re.compile(r"mul \(i64 ptrtoint \(ptr getelementptr \((.+?), ptr null, i32 1\) to i64\), i64 (\d+)\)")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the tools may take: `deadline` in `time.monotonic` seconds."""

    tools: Tools
    deadline: float
    cancel: threading.Event | None = None

    def opt(self, text: str, options: Sequence[str]) -> str:
        text = _TRUNCATION.sub(r"\1", text)
        return tools.run(self.tools.opt, [*options, _UNREGISTERED], text, cancel=self.cancel, deadline=self.deadline)

    def translate(self, text: str) -> str:
        return tools.run(self.tools.translate, ["--mlir-to-llvmir"], text, cancel=self.cancel, deadline=self.deadline)


@dataclass(frozen=True, slots=True)
class Buffers:
    """A bufferized program. `conflict` is what mlir-opt had against `eliminate-empty-tensors`, which was left out
    then: every value that is materialized has a buffer of its own first."""

    text: str
    conflict: str | None


def fused(text: str, limits: Limits) -> Imported:
    """Linalg with its control flow in `scf` and its elementwise operations fused, as xDSL's IR.

    Raises IRError, ToolError.
    """
    if linalg.leaves_more(text):
        program = import_module(linalg.parse(text))
        module = program.module.clone()
        to_signless(module)
        to_scf(module)
        text = linalg.text(program, module)
    return import_module(linalg.parse(limits.opt(text, _FUSE)))


def after_pipeline(program: Imported, donation: Donation, pipeline: str | Sequence[ModulePass] | None) -> str:
    """The program as the pipeline leaves it (None: no pass, and nothing is donated), ready to be bufferized.

    An argument that is not donated is not writable: bufferization would take every one for its own.

    Raises PassError, and IRError for a destination of another type.
    """
    if pipeline is None:
        module, donation = program.module.clone(), Donation()
    else:
        module = apply_pipeline(program.module, donation, pipeline)[0]
    _prepare(entry_function(module), donation)
    for op in module.walk():
        if isinstance(op, MaterializeInDestinationOp) and isinstance(op.dest.owner, UnrealizedConversionCastOp):
            raise IRError(
                f"It writes {op.source.type} into a buffer of {op.dest.owner.operands[0].type}: bufferization has no "
                "way to take a buffer for one of another type."
            )
    return linalg.text(program, module)


def _prepare(func: FuncOp, donation: Donation) -> None:
    func.sym_name = StringAttr("main")
    func.arg_attrs = ArrayAttr(
        [
            DictionaryAttr({"bufferization.writable": IntegerAttr(int(argument.index in donation.positions), i1)})
            for argument in func.args
        ]
    )


def bufferized(text: str, limits: Limits) -> Buffers:
    """One-shot bufferization; as much in place as it allows. Raises ToolError."""
    try:
        made, conflict = limits.opt(text, [_ELIMINATE, *_BUFFERIZE]), None
    except ToolError as error:
        # where it fails without that too, the second failure is told
        made, conflict = limits.opt(text, _BUFFERIZE), str(error)
    return Buffers(_ALIGNMENT.sub("", made), conflict)


def to_llvm(buffers: Buffers, limits: Limits) -> str:
    """LLVM IR, with `_mlir_ciface_main` for the caller. Raises ToolError."""
    text = limits.translate(limits.opt(buffers.text, _TO_LLVM))
    return _PRODUCT.sub(r"ptrtoint (ptr getelementptr (\1, ptr null, i64 \2) to i64)", text)
