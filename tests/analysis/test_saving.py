from typing import NamedTuple

import pytest

from donation_inspector.analysis.saving import saving_sentence


class Memory(NamedTuple):
    argument: int
    output: int
    alias: int
    temp: int


NONE = Memory(argument=400_000_000, output=300_000_000, alias=0, temp=9_000_000)


@pytest.mark.parametrize(
    ("jax", "sentence"),
    [
        (
            Memory(400_000_000, 300_000_000, 305_000_000, 9_000_000),
            "aliased 305 MB, temp unchanged: saves 305 MB of 709 MB (43 %).",
        ),
        (
            Memory(400_000_000, 300_000_000, 300_000_000, 109_000_000),
            "aliased 300 MB, temp grew by 100 MB: saves 200 MB of 709 MB (28 %).",
        ),
        (
            Memory(400_000_000, 300_000_000, 262_144, 9_262_144),
            "aliased 262 KB, temp grew by 262 KB: saves nothing of 709 MB.",
        ),
        (
            Memory(400_000_000, 300_000_000, 100_000_000, 130_000_000),
            "aliased 100 MB, temp grew by 121 MB: saves nothing and costs 21.0 MB more than 709 MB.",
        ),
        (NONE, "aliased 0 B, temp unchanged: saves nothing of 709 MB."),
        (
            Memory(400_000_100, 300_000_000, 100_000_000, 8_999_900),
            "aliased 100 MB, temp shrank by 100 B, arguments and results grew by 100 B: saves 100 MB of 709 MB (14 %).",
        ),
    ],
)
def test_the_sentence_says_what_was_saved_and_why(jax: Memory, sentence: str) -> None:
    assert saving_sentence(NONE, jax) == sentence


def test_a_program_without_memory_saves_nothing() -> None:
    assert saving_sentence(Memory(0, 0, 0, 0), Memory(0, 0, 0, 0)) == (
        "aliased 0 B, temp unchanged: saves nothing of 0 B."
    )
