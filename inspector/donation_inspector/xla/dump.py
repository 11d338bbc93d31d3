"""The HloProto that XLA writes while it compiles: the one place where its buffer assignment comes out whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def ask(options: Any, folder: str) -> None:
    """Make a `CompileOptions` of the client's write the compiled module into `folder`, this compile alone."""
    # what the user asks XLA to write, by XLA_FLAGS or a compiler option, would go there too, a file for each pass
    options.env_option_overrides = [
        option for option in options.env_option_overrides if not option[0].startswith("xla_dump")
    ]
    debug = options.executable_build_options.debug_options
    debug.xla_dump_hlo_pass_re = ""
    debug.xla_dump_hlo_as_text = debug.xla_dump_hlo_as_dot = debug.xla_dump_hlo_as_html = False
    debug.xla_dump_hlo_snapshots = debug.xla_dump_compress_protos = False
    debug.xla_dump_hlo_as_proto = True
    debug.xla_dump_to = folder


def take(folder: str | None) -> bytes | None:
    """The serialized HloProto in `folder`, None where XLA did not get that far; empties the folder."""
    if folder is None:
        return None
    files = [path for path in Path(folder).iterdir() if path.is_file()]
    # the program's own is the largest: a constant that is folded may be compiled by itself
    compiled = [path.read_bytes() for path in files if path.name.endswith("after_optimizations.hlo.pb")]
    for path in files:
        path.unlink()
    return max(compiled, key=len, default=None)
