"""Two summaries of one step, of two versions of the code or of JAX: what is different, most bytes first.

Made from what `summary` wrote, so that nothing has to be traced, compiled or installed again.
"""

from __future__ import annotations

import pathlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from donation_inspector.common.labels import type_label
from donation_inspector.common.tables import Table
from donation_inspector.common.units import format_bytes
from donation_inspector.errors import IRError
from donation_inspector.present import summary_format
from donation_inspector.present.summary import FORMAT
from donation_inspector.program import reading

Json = Mapping[str, Any]
_SHOWN = 20


class SummaryError(IRError):
    """A file that is no summary."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it was.

    `kind` is one of `KINDS`; `what` names the target, argument or buffer. `before` and `after` are bytes or words, None
    where there is none or it is unknown. `nbytes` is by how many bytes more it is now, or how many the change is about;
    None where that is no number.
    """

    kind: str
    what: str
    before: int | str | None
    after: int | str | None
    nbytes: int | None = None


@dataclass(frozen=True)
class Differences:
    """Everything that is different, by kind and then most bytes first.

    `context` are (name, before, after) of what the two were made with or for where that differs: it is told, and is no
    difference by itself. `notes` say what could not be compared.
    """

    program: str
    found: tuple[Difference, ...]
    context: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether nothing is different."""
        return not self.found

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; what is unknown is null."""
        return {
            "same": self.same,
            "program": self.program,
            "context": [{"what": what, "before": before, "after": after} for what, before, after in self.context],
            "differences": [asdict(one) for one in self.found],
            "notes": list(self.notes),
        }

    def blocks(self) -> list[str | Table]:
        """Lines and tables for people."""
        made_with = ", ".join(f"{what} {before} → {after}" for what, before, after in self.context)
        blocks: list[str | Table] = [f"{self.program}{f' · {made_with}' if made_with else ''}", ""]
        if self.same:
            blocks.append("Nothing is different.")
        for kind in KINDS:
            rows = [one for one in self.found if one.kind == kind]
            if rows:
                header = (kind, "before", "after", "change")
                blocks += [Table(header, [_row(one) for one in rows[:_SHOWN]])]
                blocks += [f"and {len(rows) - _SHOWN} more"] if len(rows) > _SHOWN else []
                blocks.append("")
        return [*blocks, *(f"note: {note}" for note in self.notes)] if self.notes or self.same else blocks[:-1]


def read(path: pathlib.Path) -> Json:
    """A summary that `--json` or `Inspection.to_dict` made, as far as it is compared. Raises SummaryError."""
    try:
        data = reading.read(path, _WANTED)
        number = summary_format.format_of(data)
        if number != FORMAT:
            raise SummaryError(f"{path} has format {number}, and this one reads {FORMAT}. {_WANTED}")
        return summary_format.decode(data)
    except msgspec.ValidationError as error:
        raise SummaryError(f"{path} is JSON of another kind, or a damaged summary: {error}. {_WANTED}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SummaryError(f"{path} is no JSON ({error}). {_WANTED}") from None
    except IRError as error:
        raise SummaryError(str(error)) from None


_WANTED = "Give what `donation-inspector inspect … --json FILE` wrote."


def between(before: Json, after: Json) -> Differences:
    """What is different in `after`."""
    found = [one for finder in _FINDERS for one in finder(before, after)]
    rank = {kind: number for number, kind in enumerate(KINDS)}
    found.sort(key=lambda one: (rank[one.kind], -abs(one.nbytes or 0)))
    return Differences(
        str(after["program"]), tuple(found), tuple(_context(before, after)), tuple(_notes(before, after))
    )


# ---- what is compared


def _context(before: Json, after: Json) -> Iterator[tuple[str, str, str]]:
    for name in ("program", "platform", "devices", "pipeline"):
        if before[name] != after[name]:
            yield name, str(before[name]), str(after[name])
    for name in sorted({*before["versions"], *after["versions"]}):
        old, new = before["versions"].get(name, "unknown"), after["versions"].get(name, "unknown")
        if old != new:
            yield name, old, new


def _notes(before: Json, after: Json) -> Iterator[str]:
    old, new = _targets(before), _targets(after)
    for target in [*old, *(one for one in new if one not in old)]:
        if (target in old) != (target in new):
            yield f"{target} is compiled in {'the first' if target in old else 'the second'} alone: not compared."
    if (before["measurement"] is None) != (after["measurement"] is None):
        yield f"Only {'the second' if before['measurement'] is None else 'the first'} is measured: not compared."


def _memory(before: Json, after: Json) -> Iterator[Difference]:
    peaks = [one["program_memory"]["peak"] for one in (before, after)]
    yield from _size("total", "live at once, predicted in program order", *peaks)
    jax: tuple[Json, Json] | None = None
    for target, variant, old, new in _variants(before, after):
        name = f"{target}, {variant}"
        yield from _words("outcome", name, old["status"], new["status"])
        yield from _words("device", f"{name}: fits", _fits(old), _fits(new))
        memory = (old["memory"], new["memory"])
        if None not in memory and memory != jax:
            yield from _size("total", name, memory[0]["total"], memory[1]["total"])
            for part in ("argument", "output", "alias", "temp"):
                yield from _size("part", f"{name}: {part}", memory[0][part], memory[1][part])
        if variant == "jax":
            # where the pass pairs as JAX does it is one program, told once
            jax = memory


def _devices(before: Json, after: Json) -> Iterator[Difference]:
    for target, old, new in _both(_targets(before), _targets(after)):
        yield from _size("device", f"{target}: memory", _capacity(old), _capacity(new))


def _measured(before: Json, after: Json) -> Iterator[Difference]:
    old, new = before["measurement"], after["measurement"]
    if old is None or new is None:
        return
    for name, one, other in _both(old["variants"], new["variants"]):
        if one["spread"] is None or other["spread"] is None:
            continue
        # runs of one program differ too
        if one["spread"][1] < other["spread"][0] or other["spread"][1] < one["spread"][0]:
            yield from _size("measured", f"{new['target']}, {name}: peak", one["peak"], other["peak"])


def _arguments(before: Json, after: Json) -> Iterator[Difference]:
    old, new = _by_path(before), _by_path(after)
    # what XLA says of them can be compared where both asked for one target alone
    compiled = [(name, _said(one), _said(other)) for name, one, other in _both(_targets(before), _targets(after))]
    for path in [*old, *(path for path in new if path not in old)]:
        one, other = old.get(path), new.get(path)
        if one is None or other is None:
            known = one or other or {}
            verdicts = [None if made is None else str(made["verdict"]) for made in (one, other)]
            yield Difference("argument", path, verdicts[0], verdicts[1], known["nbytes"])
            continue
        if (one["dtype"], one["shape"]) != (other["dtype"], other["shape"]):
            types = [type_label(made["dtype"], tuple(made["shape"])) for made in (one, other)]
            yield from _words("argument", f"{path}: type", types[0], types[1], _more(one["nbytes"], other["nbytes"]))
        if one["verdict"] != other["verdict"]:
            yield Difference("argument", path, one["verdict"], other["verdict"], other["nbytes"])
            continue
        for target, first, second in compiled:
            said = [by_path.get(path, one["verdict"]) for by_path in (first, second)]
            yield from _words("argument", f"{path} ({target})", said[0], said[1], other["nbytes"])


def _contributors(before: Json, after: Json) -> Iterator[Difference]:
    for target, variant, one, other in _variants(before, after):
        if variant != "jax" or one["peak"] is None or other["peak"] is None:
            continue
        yield from _size("peak", f"{target}, all that is held", one["peak"]["nbytes"], other["peak"]["nbytes"])
        old, new = _by_place(one["peak"]), _by_place(other["peak"])
        for name in dict.fromkeys([*old, *new]):
            yield from _size("peak", f"{target}, {name}", old.get(name, 0), new.get(name, 0))


def _diagnostics(before: Json, after: Json) -> Iterator[Difference]:
    old, new = (Counter(_told(one) for one in made["applied"]["diagnostics"]) for made in (before, after))
    for text in old - new:
        yield Difference("diagnostic", text, "told", None)
    for text in new - old:
        yield Difference("diagnostic", text, None, "told")


KINDS = ("outcome", "device", "total", "part", "measured", "argument", "peak", "diagnostic")
_FINDERS: tuple[Callable[[Json, Json], Iterable[Difference]], ...] = (
    _memory,
    _devices,
    _measured,
    _arguments,
    _contributors,
    _diagnostics,
)


# ---- parts of a summary


def _targets(summary: Json) -> dict[str, Json]:
    return {one["target"]: one for one in summary["comparisons"]}


def _variants(before: Json, after: Json) -> Iterator[tuple[str, str, Json, Json]]:
    """(target, variant, before, after) of what both compiled."""
    for target, old, new in _both(_targets(before), _targets(after)):
        for variant, one, other in _both(old["variants"], new["variants"]):
            yield target, variant, one, other


def _both(old: Json, new: Json) -> Iterator[tuple[str, Json, Json]]:
    return ((name, old[name], new[name]) for name in old if name in new)


def _by_path(summary: Json) -> dict[str, Json]:
    """Arguments by path; the second of one path has its number."""
    seen: Counter[str] = Counter()
    found: dict[str, Json] = {}
    for one in summary["arguments"]:
        seen[one["path"]] += 1
        number = seen[one["path"]]
        found[one["path"] if number == 1 else f"{one['path']} (number {number})"] = one
    return found


def _said(answer: Json) -> dict[str, str]:
    """The verdicts of one comparison that are not JAX's own."""
    return {one["path"]: one["verdict"] for one in answer["arguments"]}


def _by_place(peak: Json) -> dict[str, int]:
    """Bytes at the peak by what is the same in another version: the path, or the primitive; lines move."""
    sums: defaultdict[str, int] = defaultdict(int)
    for one in peak["contributors"]:
        what = one["path"] or (one["op_name"] or "").split(";", 1)[0].rsplit("/", 1)[-1]
        sums[f"{one['role']} {what}".strip()] += one["nbytes"]
    return dict(sums)


def _fits(variant: Json) -> str | None:
    return None if variant["fits"] is None else "yes" if variant["fits"] else "no"


def _capacity(answer: Json) -> int | None:
    return next((one["capacity"] for one in answer["variants"].values() if one["capacity"] is not None), None)


def _told(diagnostic: Json) -> str:
    return f"{diagnostic['severity']}: {diagnostic['message']}"


def _more(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _size(kind: str, what: str, before: int | None, after: int | None) -> Iterator[Difference]:
    if before != after:
        yield Difference(kind, what, before, after, _more(before, after))


def _words(
    kind: str, what: str, before: str | None, after: str | None, nbytes: int | None = None
) -> Iterator[Difference]:
    if before != after:
        yield Difference(kind, what, before, after, nbytes)


# ---- for people


def _row(one: Difference) -> tuple[str, str, str, str]:
    number = isinstance(one.before, int) or isinstance(one.after, int)
    change = "" if one.nbytes is None else format_bytes(one.nbytes)
    return (
        one.what,
        _cell(one.before, number),
        _cell(one.after, number),
        f"+{change}" if number and one.nbytes is not None and one.nbytes > 0 else change,
    )


def _cell(value: int | str | None, number: bool) -> str:
    if isinstance(value, str):
        return value
    return format_bytes(value) if number else "-"
