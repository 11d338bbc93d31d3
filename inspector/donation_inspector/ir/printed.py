"""What xDSL prints, in words that jaxlib's MLIR reads and XLA compiles."""

from __future__ import annotations

import re

from donation_inspector.ir import resources
from donation_inspector.ir.dialect import VerbatimAttr, VerbatimType

_VALUE = r"%[\w.$-]+(?:#\d+)?"
_MATERIALIZE = re.compile(
    rf"bufferization\.materialize_in_destination ({_VALUE}) in (restrict )?(writable )?({_VALUE})(?=[^\n]* : )"
)
_VERBATIM = re.compile(rf'(?:#{VerbatimAttr.name}|!{VerbatimType.name})<"((?:[^"\\]|\\.)*)">')
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2}|.)")


def for_jaxlib(text: str) -> str:
    """A module's text, line by line what it was.

    jaxlib does not know the bufferization dialect: its one operation that passes here make becomes generic. What xDSL
    could not represent, and was written as text of ours, is itself again. Resources become `dense`.
    """
    text = _MATERIALIZE.sub(_generic, text) if "bufferization." in text else text
    text = _VERBATIM.sub(lambda written: _unescaped(written[1]), text) if "verbatim." in text else text
    return resources.inlined(text)


def _generic(written: re.Match[str]) -> str:
    source, *flags, destination = written.groups()
    properties = ", ".join(flag.strip() for flag in flags if flag)
    return f'"bufferization.materialize_in_destination"({source}, {destination})' + (
        f" <{{{properties}}}>" if properties else ""
    )


def _unescaped(literal: str) -> str:
    def byte(escaped: re.Match[bytes]) -> bytes:
        code = escaped[1]
        return bytes.fromhex(code.decode()) if len(code) == 2 else {b"n": b"\n", b"t": b"\t"}.get(code, code)

    return _ESCAPED.sub(byte, literal.encode()).decode()
