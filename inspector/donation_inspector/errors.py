"""Everything the inspector raises on purpose.

Each message is written for the person who reads it in a notebook: what went wrong, where, the values, what to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from donation_inspector.common.visible import shown

_NAMED = 4


class DonationInspectorError(Exception):
    """Base of every error that the inspector raises on purpose."""

    def __str__(self) -> str:
        # names and messages of a program's stand in it
        return shown(super().__str__())

    def _render_traceback_(self) -> list[str]:
        # IPython asks an exception for its own rendering: the message says it all, frames of ours would bury it.
        return [f"{type(self).__name__}: {self}"]


class TraceError(DonationInspectorError):
    """The function cannot be traced or lowered, or its arguments are not what JAX takes."""


class DeletedError(TraceError):
    """Arguments whose buffers are gone, at `paths`; `arrays` are the deleted arrays, `by` tells who donated them."""

    def __init__(self, paths: Sequence[str], arrays: Sequence[object], by: str | None = None) -> None:
        self.paths, self.arrays = tuple(paths), tuple(arrays)
        named = ", ".join(self.paths[:_NAMED])
        more = f" and {len(self.paths) - _NAMED} more" if len(self.paths) > _NAMED else ""
        one = len(self.paths) == 1
        what = "this array has been deleted" if one else "these arrays have been deleted"
        because = f", because an earlier call donated {'it' if one else 'them'}. Pass what that call returned"
        told = because if by is None else f". {by}"
        super().__init__(f"{named}{more}: {what}{told.removesuffix('.')}. Or give jax.ShapeDtypeStruct(shape, dtype).")


class DonationError(DonationInspectorError, AssertionError):
    """A donation that does not hold, with each argument and the reason."""


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


class MachineError(DonationInspectorError):
    """What a child process or a temporary file needs is not to be had: descriptors, room on disk, an interpreter."""
