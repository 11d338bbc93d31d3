"""What the system says about memory, on made-up kernel files and on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from donation_inspector.xla import memory


def lay(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


MEMINFO = "MemTotal:       2000 kB\nMemFree:         100 kB\nMemAvailable:   1000 kB\n"


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("", {}, 1_024_000),
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/b/memory.current": "5\n"}, 1_024_000),
        ("0::/a/b\n", {"a/b/memory.max": "500000\n", "a/b/memory.current": "100000\n"}, 400_000),
        # a limit further up counts too, and what the kernel can drop does not
        (
            "0::/a/b\n",
            {
                "a/memory.max": "300000\n",
                "a/memory.current": "100000\n",
                "a/memory.stat": "anon 1\ninactive_file 50000\n",
                "a/b/memory.max": "max\n",
            },
            250_000,
        ),
        # inside a container the path of the host does not exist, its limit stands at the root
        ("0::/docker/1\n", {"memory.max": "200000\n", "memory.current": "300000\n"}, 0),
        (
            "3:cpu:/x\n2:memory:/a\n",
            {"memory/a/memory.limit_in_bytes": "90000\n", "memory/a/memory.usage_in_bytes": "10000\n"},
            80_000,
        ),
    ],
)
def test_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, files: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(memory, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "cgroup")
    lay(tmp_path / "proc", {"meminfo": MEMINFO, "self/cgroup": groups})
    lay(tmp_path / "cgroup", files)
    assert memory.available() == expected


def test_unknown_where_the_kernel_offers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_PROC", tmp_path)
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path)
    assert memory.available() is None
    assert memory.resident() is None
    assert memory.peak() is None
    assert memory.out_of_memory_kills() is None


def test_the_peak_of_this_process_can_be_reset() -> None:
    block = bytearray(64 << 20)
    block[::4096] = b"x" * len(block[::4096])
    del block
    assert memory.reset_peak()
    low, now = memory.peak(), memory.resident()
    assert low is not None
    assert now is not None
    assert abs(low - now) < 8 << 20
    block = bytearray(64 << 20)
    block[::4096] = b"x" * len(block[::4096])
    high = memory.peak()
    assert high is not None
    assert high - low > 60 << 20
