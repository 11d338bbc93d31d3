"""The lowering of the 30 cases against the facts that JAX itself gave for them."""

from __future__ import annotations

import re
from typing import Any

import jax
import pytest

import case_loader
from donation_inspector.common.signature import Leaf
from donation_inspector.xla.lowering import Lowered
from lowered_cases import lower_case


def outcome(lowered: Lowered, leaf: Leaf) -> str:
    """In the words of the cases."""
    if leaf.position is None:
        return "dropped (unused)"
    if leaf.position in lowered.donation.aliases:
        (result,) = (
            r.index for r in lowered.signature.results if r.position == lowered.donation.aliases[leaf.position]
        )
        return f"aliased to output {result}"
    if leaf.position in lowered.donation.donors:
        return "buffer_donor"
    return "unusable" if leaf.donated else "not donated"


def facts(entries: Any) -> list[tuple[Any, ...]]:
    return [(tuple(entry["shape"]), entry["dtype"]) for entry in entries]


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_leaves_and_outcomes_are_those_of_jax(name: str) -> None:
    lowered, expected = lower_case(name), case_loader.expect(name)

    assert [(leaf.shape, leaf.dtype) for leaf in lowered.signature.arguments] == facts(expected["inputs"])
    assert [(leaf.shape, leaf.dtype) for leaf in lowered.signature.results] == facts(expected["outputs"])
    assert [leaf.donated for leaf in lowered.signature.arguments] == [i["donated"] for i in expected["inputs"]]
    assert [outcome(lowered, leaf) for leaf in lowered.signature.arguments] == [
        i["outcome"] for i in expected["inputs"]
    ]


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_jaxs_warning_is_told_with_the_paths_of_its_buffers(name: str) -> None:
    lowered, expected = lower_case(name), case_loader.expect(name)

    unusable = [note for note in lowered.warnings if note.kind == "unusable"]
    assert len(unusable) == bool(expected["warning"])
    told = [
        f"{lowered.signature.arguments[i].dtype}[{','.join(map(str, lowered.signature.arguments[i].shape))}]"
        for note in unusable
        for i in note.leaves
    ]
    assert told == expected["warning"]
    for note in unusable:
        assert all(lowered.signature.arguments[i].path in str(note) for i in note.leaves)


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_results_have_jaxs_paths(name: str) -> None:
    paths = [leaf.path for leaf in lower_case(name).signature.results]

    plain = [re.sub(r"<flat index (\d+)>", r"\1", o["path"]) or "result" for o in case_loader.expect(name)["outputs"]]
    assert paths == plain


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_a_path_is_the_whole_argument_and_the_keys_inside_it(name: str) -> None:
    lowered, expected = lower_case(name), case_loader.expect(name)

    assert len({leaf.path for leaf in lowered.signature.arguments}) == len(lowered.signature.arguments)
    for leaf, entry in zip(lowered.signature.arguments, expected["inputs"], strict=True):
        keys = re.sub(r"^\[[01]\](\[\d+\]|\['\w+'\])", "", re.sub(r"<flat index (\d+)>", r"\1", entry["path"]))
        assert leaf.path == leaf.root + keys
        assert leaf.root.isidentifier()


@pytest.mark.parametrize("name", case_loader.CASE_NAMES)
def test_bytes_are_those_of_the_arrays(name: str) -> None:
    lowered = lower_case(name)

    for leaf, value in zip(lowered.signature.arguments, lowered.inputs, strict=True):
        if isinstance(value, jax.Array):
            assert leaf.nbytes == value.nbytes
            if leaf.position is not None:
                shard = value.sharding.shard_shape(value.shape)
                assert leaf.shard_shape == shard
                assert leaf.nbytes_per_device == value.nbytes // value.size * _size(shard) if value.size else True


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for dimension in shape:
        size *= dimension
    return size


def test_typed_keys_keep_their_dtype_and_count_their_buffer() -> None:
    chains, key, *_ = lower_case("13_typed_prng_keys").signature.arguments

    assert (key.path, key.dtype, key.shape, key.nbytes) == ("state['key']", "key<fry>", (), 8)
    assert (chains.dtype, chains.shape, chains.nbytes) == ("key<fry>", (4,), 32)


def test_an_array_that_is_passed_twice_and_donated_is_told() -> None:
    lowered = lower_case("06_same_array_twice")

    (note,) = lowered.warnings
    assert (note.kind, note.leaves) == ("same array", (0, 1))
    assert "x and y are the same array, and x is donated" in str(note)
    assert lowered.shared == ((0, 1),)


def test_donation_inside_an_inner_jit_is_told() -> None:
    (note,) = lower_case("28_inner_jit_donation").notes

    assert note.kind == "inner jit"
    assert "inner, a jitted function called inside (2 calls), donates s: JAX ignores" in str(note)
    # Its second call donates what the first one returned, which is nobody's argument.
    assert note.leaves == (0,)
