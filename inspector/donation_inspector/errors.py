"""Everything the inspector raises on purpose.

Each message is written for the person who reads it in a notebook: what went wrong, where, the values, what to do.
"""


class DonationInspectorError(Exception):
    """Base of every error that the inspector raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks an exception for its own rendering: the message says it all, frames of ours would bury it.
        return [f"{type(self).__name__}: {self}"]


class TraceError(DonationInspectorError):
    """The function cannot be traced or lowered, or its arguments are not what JAX takes."""


class PathError(DonationInspectorError):
    """An argument path that does not exist; the message names the near ones."""


class IRError(DonationInspectorError):
    """Text or bytecode that is no MLIR module, or a module that cannot be analysed."""


class PassError(DonationInspectorError):
    """A pipeline that does not exist, does not parse, or fails on this module."""


class CompileError(DonationInspectorError):
    """XLA refused a module, or the compiling process died."""


class MeasureError(DonationInspectorError):
    """A variant cannot be run here, with the reason."""
