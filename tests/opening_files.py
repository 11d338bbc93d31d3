"""In a process of its own: opens and shows one file after the other, and says of each what came of it.

    python -m opening_files SAVED.di …      names on the command line

A line of JSON for each: "path", "outcome" ("shown", the name of an error of ours, or "raw NAME: …") and by how many
bytes the process grew meanwhile at its peak. A file that ends the process has no line.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SLACK = 24 << 20
"""Bytes that any file may take besides: what is imported and kept the first time."""


@dataclass(frozen=True)
class Opened:
    """What came of one file; `grew` is None where the process ended."""

    path: pathlib.Path
    outcome: str
    grew: int | None

    @property
    def complaint(self) -> str | None:
        """What must not be, None where all is well."""
        if self.outcome.startswith(("raw", "ended")):
            return f"{self.path.name}: {self.outcome}"
        size = self.path.stat().st_size
        if self.outcome != "shown" and self.grew is not None and self.grew > 10 * size + SLACK:
            return f"{self.path.name}: {size} bytes took {self.grew}"
        return None


def opened(paths: Sequence[pathlib.Path], *, ready: pathlib.Path) -> list[Opened]:
    """Each file's outcome; after one that ends the process a new one goes on behind it.

    `ready` is a sound file that each process opens first, so that what is loaded once is there.
    """
    done: list[Opened] = []
    while len(done) < len(paths):
        rest = paths[len(done) :]
        process = subprocess.run(
            [sys.executable, __file__, str(ready), *map(str, rest)], capture_output=True, text=True, check=False
        )
        lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith('{"path"')][1:]
        done += [Opened(pathlib.Path(one["path"]), one["outcome"], one["grew"]) for one in lines]
        if len(lines) < len(rest):
            told = (process.stderr.strip().splitlines() or [""])[-1]
            done.append(Opened(rest[len(lines)], f"ended with {process.returncode}: {told[:200]}", None))
    return done


# ---- the child


def _show(path: pathlib.Path) -> None:
    from donation_inspector.capture.opening import open_file
    from donation_inspector.present import differences

    if path.suffix == ".json":
        found = differences.read(path)
        differences.between(found, found).blocks()
        return
    inspection = open_file(path)
    inspection.report()
    inspection.to_dict()
    inspection._repr_mimebundle_()


def _outcome(path: pathlib.Path) -> str:
    import donation_inspector as di

    try:
        _show(path)
    except di.DonationInspectorError as error:
        return type(error).__name__
    except BaseException as error:
        return f"raw {type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return "shown"


def _resident(field: str) -> int:
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def _lines(paths: Sequence[str]) -> Iterator[dict[str, object]]:
    for path in paths:
        before = None
        with contextlib.suppress(OSError):
            # the highest so far begins anew
            pathlib.Path("/proc/self/clear_refs").write_text("5")
            before = _resident("VmRSS")
        outcome = _outcome(pathlib.Path(path))
        grew = None if before is None else max(0, _resident("VmHWM") - before)
        yield {"path": path, "outcome": outcome, "grew": grew}


if __name__ == "__main__":
    for line in _lines(sys.argv[1:]):
        print(json.dumps(line), flush=True)
