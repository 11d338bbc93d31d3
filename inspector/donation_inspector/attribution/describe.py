"""The peak in plain sentences."""

from __future__ import annotations

from donation_inspector.attribution.peak import Peak
from donation_inspector.common.units import format_bytes
from donation_inspector.common.user_code import place
from donation_inspector.xla.hlo.source import Frame


def where(peak: Peak) -> str:
    """When the peak is: "instruction 812 of 1,530, backward pass, dot_general at train.py:41"."""
    parts = [f"instruction {peak.at + 1:,} of {peak.length:,}"]
    if peak.phase:
        parts.append(str(peak.phase))
    running = f"at {at(peak.source)}" if peak.source else ""
    parts.append(" ".join(word for word in (primitive(peak.op_name), running) if word))
    return ", ".join(part for part in parts if part)


def primitive(op_name: str) -> str:
    """JAX's primitive in an op_name: "jit(step)/transpose(jvp())/dot_general" is "dot_general"."""
    return op_name.split(";", 1)[0].rsplit("/", 1)[-1]


def at(source: Frame | None) -> str:
    """The place of a frame, "train.py:41"; empty where there is none."""
    return place(source.file, source.line) if source else ""


def classes(peak: Peak) -> tuple[str, ...]:
    """What fills it, most bytes first: "parameters 113 MB", "optimizer state 226 MB"."""
    return tuple(f"{role} {format_bytes(nbytes)}" for role, nbytes in peak.classes)


def sentence(peak: Peak, shown: int = 5) -> str:
    """Where and what in one sentence, the smallest classes summed up."""
    named, rest = peak.classes[:shown], peak.classes[shown:]
    parts = [f"{role} {format_bytes(nbytes)}" for role, nbytes in named]
    if rest:
        parts.append(f"the rest {format_bytes(sum(nbytes for _, nbytes in rest))}")
    return f"At the peak ({where(peak)}): {', '.join(parts)}."
