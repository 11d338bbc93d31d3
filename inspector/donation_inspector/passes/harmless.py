"""Which pipelines may run because a file names them: passes that do nothing but rewrite the module, by name.

Any pass that is installed can be named, and there are ones that run a program (xDSL's `mlir-opt`), read a file
(`apply-pdl`) or do what the module itself says (`transform-interpreter`).
"""

from __future__ import annotations

from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from donation_inspector.errors import PassError
from donation_inspector.passes.pipeline import parse

OURS = frozenset(
    {"check-donated-buffers", "donate-by-live-range", "materialize-to-aliasing-output", "reuse-donated-buffers"}
)
XDSLS = frozenset(
    {
        "jax-use-donated-arguments",
        *("canonicalize", "control-flow-hoist", "cse", "dce", "licm"),
        *("empty-tensor-to-alloc-tensor", "reconcile-unrealized-casts"),
    }
)
_LONGEST, _MOST = 4_000, 100


def is_harmless(pipeline: str) -> bool:
    """Whether each pass of a pipeline is one of these, as the product or xDSL itself brings it, with options it has."""
    if len(pipeline) > _LONGEST:
        return False
    try:
        specs = tuple(parse_pipeline(pipeline))
        # what another package calls by one of these names is looked at only after that
        if len(specs) > _MOST or not all(spec.name in OURS | XDSLS for spec in specs):
            return False
        passes = parse(pipeline)
    except (ArgSpecParseError, PassError):
        return False
    return all(type(one).__module__.startswith(("xdsl.transforms.", f"{__package__}.")) for one in passes)
