"""What fills the peak: every byte once, in its class, with a place that people know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attribution.compiled import PROGRAMS, Compiled, compiled
from donation_inspector.attribution.describe import classes, sentence, where
from donation_inspector.attribution.peak import Contributor, Peak, read_peak
from donation_inspector.attribution.phase import Phase
from donation_inspector.attribution.role import Role
from donation_inspector.common.user_code import is_user_code

ALL = [f"{name} {variant}" for name in PROGRAMS for variant in ("jax", "none")]
HOLDS_NOTHING = {Role.IDLE_ARGUMENTS, Role.IDLE_RESULTS, Role.PADDING}


def peak_of(program: Compiled) -> Peak:
    found = read_peak(program.buffers, program.signature)
    assert found is not None
    return found


def find(name: str) -> tuple[Compiled, Peak]:
    program = compiled(*name.rsplit(" ", 1))
    return program, peak_of(program)


def bytes_with(peak: Peak, role: Role) -> int:
    return sum(nbytes for found, nbytes in peak.classes if found is role)


def needed_at(program: Compiled, time: int) -> int:
    """The bytes that hold a value at a time, counted one by one."""
    needed = 0
    for allocation in program.buffers.allocations:
        if allocation.kind in ("constant", "thread-local"):
            continue
        taken = np.zeros(allocation.nbytes, bool)
        for buffer in program.buffers.live_ranges:
            if buffer.allocation == allocation.index and buffer.start <= time <= buffer.end:
                taken[buffer.offset : buffer.offset + buffer.nbytes] = True
        needed += int(taken.sum())
    return needed


@pytest.mark.parametrize("name", ALL)
def test_classes_and_contributors_add_up_to_the_peak(name: str) -> None:
    program, peak = find(name)

    assert peak.nbytes == int(program.buffers.held.max())
    assert program.buffers.held[peak.at] == peak.nbytes
    assert sum(nbytes for _, nbytes in peak.classes) == peak.nbytes
    for role, nbytes in peak.classes:
        assert nbytes == sum(c.nbytes for c in peak.contributors if c.role is role)
    holding = sum(c.nbytes for c in peak.contributors if c.role not in HOLDS_NOTHING)
    assert holding == needed_at(program, peak.at)
    assert peak.fragmentation == program.memory.total - peak.nbytes


@pytest.mark.parametrize("name", ALL)
def test_contributors_are_ranked_and_live(name: str) -> None:
    _, peak = find(name)

    sizes = [c.nbytes for c in peak.contributors]
    assert sizes == sorted(sizes, reverse=True)
    for contributor in peak.contributors:
        assert contributor.nbytes > 0
        assert (contributor.buffer is None) == (contributor.role in HOLDS_NOTHING)
        if contributor.buffer is not None:
            assert contributor.buffer.start <= peak.at <= contributor.buffer.end
            assert contributor.nbytes <= contributor.buffer.nbytes


@pytest.mark.parametrize("name", ["gpt jax", "gpt none", "nnx jax", "equinox jax", "scanned steps jax"])
def test_ninety_percent_have_a_class_and_a_line_or_a_path(name: str) -> None:
    _, peak = find(name)

    named = [c for c in peak.contributors if c.role is not Role.OTHER and (c.path or c.source)]
    assert sum(c.nbytes for c in named) >= 0.9 * peak.nbytes


@pytest.mark.parametrize("name", ["gpt jax", "nnx jax", "equinox jax"])
def test_a_source_is_the_users_innermost_frame(name: str) -> None:
    _, peak = find(name)

    seen = 0
    for contributor in peak.contributors:
        users = [frame for frame in contributor.stack if is_user_code(frame.file)]
        assert contributor.source == (users[0] if users else None)
        seen += len(users) < len(contributor.stack)
    assert seen or name == "gpt jax"
    assert peak.source is not None
    assert Path(peak.source.file).name == ("gpt_train_step.py" if name == "gpt jax" else "compiled.py")


def test_parameters_and_optimizer_state_are_as_large_as_the_users_trees() -> None:
    program, peak = find("gpt none")

    sizes = dict.fromkeys(("params", "opt_state", "ids"), 0)
    for leaf in program.signature.arguments:
        sizes[leaf.root] += leaf.nbytes or 0
    arguments: dict[Role, int] = {}
    for contributor in peak.contributors:
        if contributor.buffer is not None and contributor.buffer.kind == "parameter":
            arguments[contributor.role] = arguments.get(contributor.role, 0) + contributor.nbytes
    assert arguments == {
        Role.PARAMETERS: sizes["params"],
        Role.OPTIMIZER: sizes["opt_state"],
        Role.BATCH: sizes["ids"],
    }


def activations(peak: Peak) -> Iterator[Contributor]:
    return (c for c in peak.contributors if c.role is Role.ACTIVATIONS)


def test_activations_are_the_residuals_of_the_layers() -> None:
    layer = 64 * 96 * 4
    _, peak = find("deep gradient jax")
    _, recomputed = find("deep recomputed jax")

    kept = list(activations(peak))
    assert {c.nbytes for c in kept} == {layer}
    assert {(c.source.function, c.op_name.rsplit("/", 1)[-1]) for c in kept if c.source} == {("deep", "tanh")}
    # each layer's output is its residual, and at the peak at least all but the one being used up are there
    assert 5 <= len(kept) <= 6
    assert bytes_with(recomputed, Role.ACTIVATIONS) == 0


@pytest.mark.parametrize(
    ("name", "shape", "parameters"), [("gradients alone jax", (96, 80), 2), ("deep gradient jax", (96, 96), 6)]
)
def test_gradients_are_the_parameters_own(name: str, shape: tuple[int, ...], parameters: int) -> None:
    """Each program returns one for each parameter, and the layers' own cotangents are of another shape."""
    program = compiled(*name.rsplit(" ", 1))
    roles = program.roles

    gradients = [b for b in program.buffers.live_ranges if roles.role(b) is Role.GRADIENTS]
    assert {b.shape for b in gradients} == {shape}
    assert len({roles.result(b) for b in gradients} - {None}) == parameters
    backward = [b for b in program.buffers.live_ranges if b.kind == "temp" and "transpose(" in b.op_name]
    assert all(roles.role(b) is Role.TEMPORARIES for b in backward if b.shape != shape)


def test_a_copy_of_a_donated_argument_counts_as_one() -> None:
    _, peak = find("20_read_after_update_copies jax")
    _, plain = find("20_read_after_update_copies none")

    assert bytes_with(peak, Role.COPIES) == 256 * 256 * 4
    assert {c.path for c in peak.contributors if c.role is Role.COPIES} == {"x"}
    assert bytes_with(plain, Role.COPIES) == 0


def test_a_result_that_waits_for_its_place_counts_as_a_copy() -> None:
    _, peak = find("05_reshape_donation jax")

    (waiting,) = [c for c in peak.contributors if c.role is Role.COPIES]
    assert waiting.nbytes == 256 * 256 * 4
    assert waiting.op_name.endswith("/sin")


def test_a_gradient_on_its_way_to_the_update_is_one() -> None:
    program = compiled("unnamed trees", "none")
    roles = program.roles

    temporary = [b for b in program.buffers.live_ranges if b.kind == "temp" and roles.role(b) is Role.GRADIENTS]
    assert {b.shape for b in temporary} == {(96, 80)}
    assert all("transpose(" in b.op_name for b in temporary)


def test_what_a_loop_carries_is_what_it_started_with() -> None:
    program = compiled("scanned steps", "none")
    roles = program.roles

    carried = [b for b in program.buffers.live_ranges if b.opcode == "parameter" and b.kind == "temp" and b.shape]
    found = {roles.role(b) for b in carried if b.shape == (96, 80)}
    assert found == {Role.PARAMETERS, Role.OPTIMIZER}


def test_memory_that_holds_nothing_is_its_arguments_or_results() -> None:
    _, peak = find("29_exported_call jax")

    idle = {c.path: c.nbytes for c in peak.contributors if c.role is Role.IDLE_ARGUMENTS}
    assert idle == {"state": 128 * 128 * 4}


def test_padding_is_what_a_layout_adds() -> None:
    program, peak = find("04_swapped_outputs jax")
    assert peak.padding == 0
    time = peak.at
    padded = next(b for b in program.buffers.live_ranges if b.start <= time <= b.end and b.dtype == "float32")
    halved = replace(padded, dtype="bfloat16")
    ranges = tuple(halved if b is padded else b for b in program.buffers.live_ranges)

    again = read_peak(replace(program.buffers, live_ranges=ranges), program.signature)

    assert again is not None
    assert again.padding == padded.nbytes // 2


def test_a_memory_space_that_is_not_used_has_no_peak() -> None:
    program = compiled("gpt")
    assert read_peak(program.buffers, program.signature, color=1) is None


def test_the_sentence() -> None:
    program, peak = find("gpt jax")

    at = peak.source
    assert at is not None
    assert peak.phase is Phase.BACKWARD
    assert where(peak).startswith(f"instruction {peak.at + 1:,} of {len(program.buffers.schedule):,}, backward pass, ")
    assert where(peak).endswith(f" at gpt_train_step.py:{at.line}")
    assert sentence(peak).startswith(f"At the peak ({where(peak)}): {classes(peak)[0]}, ")
    assert sentence(peak, shown=len(peak.classes)) == f"At the peak ({where(peak)}): {', '.join(classes(peak))}."
