"""Files that a disk, a network or a person has spoilt: each is one error or a correct load, and little memory."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import pytest
from jax import jit

import damage
import donation_inspector as di
from donation_inspector.cli import main
from donation_inspector.files import archive
from opening_files import opened


@pytest.fixture(scope="session")
def sound(saved: tuple[di.Inspection, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One sound file of each kind."""
    folder = tmp_path_factory.mktemp("sound")
    summary, text = folder / "step.json", folder / "step.mlir"
    summary.write_text(json.dumps(saved[0].to_dict()))
    text.write_text(jit(lambda a, b: (jnp.tanh(a) @ b, b + 1)).lower(jnp.ones((8, 8)), jnp.ones((8, 8))).as_text())
    return {"di": saved[1], "json": summary, "mlir": text}


@pytest.mark.parametrize(
    "share", [0.06, pytest.param(1.0, marks=[pytest.mark.exhaustive, pytest.mark.timeout(7200)])], ids=["sample", "all"]
)
def test_what_is_damaged_is_one_error_or_a_correct_load(share: float, sound: dict[str, Path], tmp_path: Path) -> None:
    def files(kind: str, count: int, *changes: Callable[..., bytes], part: str = "") -> list[Path]:
        each = round(share * count / len(changes))
        return [path for one in changes for path in damage.written(tmp_path, sound[kind], each, one, part)]

    paths = [
        *files("di", 1000, damage.flipped),
        *files("di", 500, damage.values_changed, part="inspection.json"),
        *files("di", 200, damage.flipped, damage.cut, part="hlo/0.pb"),
        *files("di", 100, damage.cut),
        *files("json", 150, damage.flipped, damage.cut, damage.values_changed),
        *files("mlir", 150, damage.flipped, damage.cut, damage.renumbered, damage.shuffled),
    ]
    found = opened(paths, ready=sound["di"])

    assert [one.complaint for one in found if one.complaint] == []
    outcomes = {one.outcome for one in found}
    assert outcomes <= {"shown", "IRError", "SummaryError"}
    assert {"IRError", "SummaryError"} <= outcomes


def zeros(path: Path, sound: Path) -> None:
    """A module that unpacks to a hundred megabytes."""
    damage.packed(path, {**damage.parts_of(sound), "module.mlirbc": bytes(100 << 20)})


def understated(path: Path, sound: Path) -> None:
    """The same, in a file that says that it is small."""
    zeros(path, sound)
    data = path.read_bytes()
    path.write_bytes(data.replace((100 << 20).to_bytes(4, "little"), (100).to_bytes(4, "little")))


def many_parts(path: Path, sound: Path) -> None:
    damage.packed(path, {**damage.parts_of(sound), **{f"part/{number}": b"" for number in range(20_000)}})


def encrypted(path: Path, sound: Path) -> None:
    data = bytearray(sound.read_bytes())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + flags] |= 1
    path.write_bytes(data)


def deep(path: Path, sound: Path) -> None:
    parts = damage.parts_of(sound)
    damage.packed(path, {**parts, "inspection.json": b'{"format":2,"more":' + b"[" * 1_000_000})


def long_names(path: Path, sound: Path) -> None:
    state = json.loads(damage.parts_of(sound)["inspection.json"])
    for leaf in state["signature"]["arguments"]:
        leaf["path"] = "p" * 1_500_000
    damage.packed(path, {**damage.parts_of(sound), "inspection.json": json.dumps(state).encode()})


def large_tree(path: Path, sound: Path) -> None:
    state = json.loads(damage.parts_of(sound)["inspection.json"])
    state["signature"]["returned"] = "{" + ",".join(f"'{number}':0" for number in range(100_000)) + "}"
    damage.packed(path, {**damage.parts_of(sound), "inspection.json": json.dumps(state).encode()})


def folder(path: Path, sound: Path) -> None:  # noqa: ARG001
    path.mkdir()


def pipe(path: Path, sound: Path) -> None:  # noqa: ARG001
    os.mkfifo(path)


def device(path: Path, sound: Path) -> None:  # noqa: ARG001
    path.symlink_to("/dev/zero")


def loop(path: Path, sound: Path) -> None:  # noqa: ARG001
    path.symlink_to(path)


def sparse(path: Path, sound: Path) -> None:  # noqa: ARG001
    path.touch()
    os.truncate(path, 1 << 42)


@pytest.mark.parametrize("suffix", [".di", ".mlir", ".json"])
def test_what_is_no_file_of_ours_is_told(suffix: str, sound: dict[str, Path], tmp_path: Path) -> None:
    makers = [folder, pipe, device, loop, sparse]
    makers += [zeros, understated, many_parts, encrypted, deep, long_names, large_tree] if suffix == ".di" else []
    paths = [tmp_path / f"{make.__name__}{suffix}" for make in makers]
    for make, path in zip(makers, paths, strict=True):
        make(path, sound["di"])

    found = opened(paths, ready=sound["di"])

    wanted = "SummaryError" if suffix == ".json" else "IRError"
    assert {one.path.stem: one.outcome for one in found} == {path.stem: wanted for path in paths}
    assert max(one.grew or 0 for one in found) < 24 << 20


def test_a_large_file_unpacks_to_little_more_than_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "SMALL", 0)
    shapes = [jnp.zeros((4,)) for _ in range(300)]
    path = tmp_path / "many.di"
    di.inspect(lambda many: [one + 1 for one in many], shapes).save(path)
    with zipfile.ZipFile(path) as packed:
        unpacked = sum(entry.file_size for entry in packed.infolist())
    assert unpacked <= 8 * path.stat().st_size
    assert len(di.load(path).arguments) == 300


def test_diff_of_a_damaged_summary_exits_with_2(sound: dict[str, Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    summary = json.loads(sound["json"].read_text())
    summary["comparisons"][0]["variants"]["jax"]["memory"]["temp"] = "much"
    bad.write_text(json.dumps(summary))
    assert main(["diff", str(sound["json"]), str(bad)]) == 2
    assert main(["diff", str(sound["json"]), str(sound["json"])]) == 0
