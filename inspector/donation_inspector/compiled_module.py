"""One module as XLA compiled it: its buffers and what they are for, each read once and shared by all who ask.

Reading takes protobuf, which need not be installed where nobody asks for buffers: hence the imports inside.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from donation_inspector.attribution.links import Links
    from donation_inspector.attribution.peak import Peak
    from donation_inspector.attribution.roles import Roles
    from donation_inspector.signature import Signature
    from donation_inspector.xla.hlo.buffers import Buffers


class CompiledModule:
    """A serialized HloProto with the user's names of what the program takes and returns."""

    def __init__(self, hlo: bytes, signature: Signature) -> None:
        self.hlo = hlo
        self.signature = signature
        # each space once, for as long as this module lives
        self.peak_in = cache(self._peak_in)
        self._links: Links | None = None

    @cached_property
    def buffers(self) -> Buffers:
        """XLA's own buffers. Raises CompileError where XLA gave the module without its buffer assignment."""
        from donation_inspector.xla.hlo.buffers import read_buffers

        return read_buffers(self.hlo)

    @cached_property
    def roles(self) -> Roles:
        """What each buffer is for. Raises CompileError as `buffers` does."""
        from donation_inspector.attribution.flow import Flow
        from donation_inspector.attribution.roles import Roles

        return Roles(Flow(self.buffers), self.signature)

    def links(self, names: Sequence[str], lines: Sequence[int], columns: Sequence[int]) -> Links:
        """It joined with the operations of the StableHLO that it was compiled from, which are always the same.

        Raises CompileError as `buffers` does.
        """
        from donation_inspector.attribution.links import Links

        if self._links is None:
            self._links = Links(self.roles.flow, names, lines, columns)
        return self._links

    def _peak_in(self, color: int) -> Peak | None:
        """The peak of a memory space; None where nothing is laid there. Raises CompileError as `buffers` does."""
        from donation_inspector.attribution.peak import find_peak

        return find_peak(self.roles, self.signature, color)
