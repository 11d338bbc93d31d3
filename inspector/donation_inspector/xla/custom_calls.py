"""The custom calls of a module: which are host callbacks, and which XLA itself answers for."""

from __future__ import annotations

import re
from typing import Any

from donation_inspector.xla.attributes import operations

# What JAX's lowering calls and XLA rewrites, or has a kernel of its own for; jaxlib's linear algebra, whose handlers
# hold shapes and types against each other before they touch a buffer. Not here: what runs code that the call brings
# (Mosaic GPU, Triton by jaxlib), and what calls back into Python by an address or a number.
_OWN = re.compile(
    r"Sharding|SPMDFullToShardShape|SPMDShardToFullShape|LayoutConstraint|AllocateBuffer|annotate_device_placement"
    r"|MoveToHost|MoveToDevice|X64SplitHigh|X64SplitLow|X64Combine|TopK|ApproxTopK|PartialReduce|ragged_all_to_all"
    r"|Qr|Eigh|LuDecomposition|ProductOfElementaryHouseholderReflectors"
    r"|xla\.sdy\.\w+|mhlo\.\w+|stablehlo\.\w+|shape_assertion"
    r"|lapack_\w+_ffi|tridiagonal_solve_perturbed_ffi|dce_sink"
    r"|(?:cusolver|cusparse|cublas|hipsolver|hipsparse|hipblas|cu|hip)_\w+_ffi"
    r"|__cudnn\$\w+|__gpu\$xla\.gpu\.triton|tpu_custom_call"
)


def targets(module: Any) -> tuple[str, ...]:
    """The target of each custom call in the module, as often as it is called, whichever dialect calls it."""
    return tuple(
        str(getattr(op.attributes["call_target_name"], "value", op.attributes["call_target_name"]))
        for op in operations(module.operation)
        if "call_target_name" in op.attributes
    )


def is_callback(target: str) -> bool:
    """Whether a custom call calls back into the Python process that traced the program."""
    return "python" in target and "callback" in target


def is_xlas_own(target: str) -> bool:
    """Whether XLA, or jaxlib, answers for what the call runs."""
    return _OWN.fullmatch(target) is not None
