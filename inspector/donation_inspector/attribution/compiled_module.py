"""One module as XLA compiled it: its buffers and what they are for, each read once and shared by all who ask.

Reading takes protobuf, which need not be installed where nobody asks for buffers: hence the imports inside. XLA changes
what it writes without a word, so whatever goes wrong in reading is one CompileError: the totals hold without it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import TYPE_CHECKING

from donation_inspector.errors import CompileError, DonationInspectorError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from donation_inspector.attribution.links import Links
    from donation_inspector.attribution.outcomes import AliasOutcome
    from donation_inspector.attribution.peak import Peak
    from donation_inspector.attribution.roles import Roles
    from donation_inspector.attribution.waiting import Waiting
    from donation_inspector.common.signature import Signature
    from donation_inspector.xla.hlo.buffers import Buffers
    from donation_inspector.xla.results import Memory


@contextmanager
def _reading() -> Generator[None]:
    try:
        yield
    except DonationInspectorError:
        raise
    except Exception as error:
        raise CompileError(
            f"XLA's buffers cannot be read ({type(error).__name__}: {error}); the totals hold without them."
        ) from error


class CompiledModule:
    """A serialized HloProto with the user's names of what the program takes and returns.

    `memory` is what XLA says of the executable, None where it made none.
    """

    def __init__(self, hlo: bytes, signature: Signature, memory: Memory | None) -> None:
        self.hlo = hlo
        self.signature = signature
        self._memory = memory
        # each space once, for as long as this module lives
        self.peak_in = cache(self._peak_in)
        self._links: Links | None = None

    @cached_property
    def buffers(self) -> Buffers:
        """XLA's own buffers. Raises CompileError where they cannot be read."""
        from donation_inspector.xla.hlo.buffers import read_buffers

        with _reading():
            buffers = read_buffers(self.hlo)
            if self._memory is None or 0 not in buffers.spaces:
                return buffers
            # On a TPU the buffer assignment keeps 16 KB for each tuple's table, of which XLA's total knows nothing.
            main = dataclasses.replace(buffers.spaces[0], reserved=self._memory.total)
            return dataclasses.replace(buffers, spaces={**buffers.spaces, 0: main})

    @cached_property
    def roles(self) -> Roles:
        """What each buffer is for. Raises CompileError as `buffers` does."""
        from donation_inspector.attribution.flow import Flow
        from donation_inspector.attribution.roles import Roles

        with _reading():
            return Roles(Flow(self.buffers), self.signature)

    def links(self, names: Sequence[str], lines: Sequence[int], columns: Sequence[int]) -> Links:
        """It joined with the operations of the StableHLO that it was compiled from, which are always the same.

        Raises CompileError as `buffers` does.
        """
        from donation_inspector.attribution.links import Links

        if self._links is None:
            self._links = Links(self.roles.flow, names, lines, columns)
        return self._links

    def outcomes(self, none: CompiledModule) -> Mapping[int, AliasOutcome]:
        """What aliasing saves, by flat argument, held against the same program without donation.

        Raises CompileError as `buffers` does.
        """
        from donation_inspector.attribution.outcomes import explain_aliases

        grown = None
        if self._memory is not None and none._memory is not None:
            grown = self._memory.temp - none._memory.temp
        with _reading():
            return explain_aliases(none.buffers, self.buffers, self.signature, grown).outcomes

    def waiting(self) -> tuple[Waiting, ...]:
        """Donated buffers that lie empty at the peak of the main memory. Raises CompileError as `buffers` does."""
        from donation_inspector.attribution.waiting import find_waiting

        peak = self.peak_in(0)
        with _reading():
            return () if peak is None else find_waiting(self.roles.flow, peak, self.signature)

    def _peak_in(self, color: int) -> Peak | None:
        """The peak of a memory space; None where nothing is laid there. Raises CompileError as `buffers` does."""
        from donation_inspector.attribution.peak import find_peak

        with _reading():
            return find_peak(self.roles, self.signature, color)
