"""What donation saved in the end, in one sentence: aliased bytes are no saving while temporaries grow as much."""

from __future__ import annotations

from typing import Protocol

from donation_inspector.common.units import format_bytes


class DeviceMemory(Protocol):
    """XLA's figures for one compiled program, in bytes on one device (`CompiledMemoryStats`)."""

    @property
    def argument(self) -> int: ...
    @property
    def output(self) -> int: ...
    @property
    def alias(self) -> int: ...
    @property
    def temp(self) -> int: ...


def saving_sentence(none: DeviceMemory, jax: DeviceMemory) -> str:
    """What the donation in `jax` saves against `none`, which donates nothing, and where it comes from.

    The saving is the difference of the totals, argument + output − alias + temp.
    """
    before, after = _total(none), _total(jax)
    aliased, grown = jax.alias - none.alias, jax.temp - none.temp
    rest = (jax.argument + jax.output) - (none.argument + none.output)
    saved = before - after
    account = [f"aliased {format_bytes(aliased)}", _change("temp", grown)]
    if rest:
        account.append(_change("arguments and results", rest))
    parts = ", ".join(account)
    if saved > 0:
        return f"{parts}: saves {format_bytes(saved)} of {format_bytes(before)} ({100 * saved / before:.0f} %)."
    if saved == 0:
        return f"{parts}: saves nothing of {format_bytes(before)}."
    return f"{parts}: saves nothing and costs {format_bytes(-saved)} more than {format_bytes(before)}."


def _change(what: str, by: int) -> str:
    if by == 0:
        return f"{what} unchanged"
    return f"{what} {'grew' if by > 0 else 'shrank'} by {format_bytes(abs(by))}"


def _total(memory: DeviceMemory) -> int:
    return memory.argument + memory.output - memory.alias + memory.temp
