"""Fusions that only copy or name anew, as an accelerator's compiler makes them: written by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from donation_inspector.attribution.fusions import Fusions


def instruction(
    identifier: int, opcode: str, operands: tuple[int, ...] = (), *, number: int = 0, called: int = 0
) -> Any:
    return SimpleNamespace(
        id=identifier,
        opcode=opcode,
        operand_ids=operands,
        parameter_number=number,
        called_computation_ids=(called,) if called else (),
        metadata=SimpleNamespace(op_name=f"jit(f)/{opcode}"),
    )


def fusions(**computations: list[Any]) -> Fusions:
    """Computations c1, c2, …, each with its root last."""
    by_id = {
        int(name[1:]): SimpleNamespace(id=int(name[1:]), instructions=body, root_id=body[-1].id)
        for name, body in computations.items()
    }
    instructions = {i.id: i for computation in by_id.values() for i in computation.instructions}
    module: Any = SimpleNamespace(instructions=instructions, computations=by_id)
    return Fusions(module)


def test_parts_of_a_fusion_that_are_copies() -> None:
    """(copy of the second operand, sine of the first)"""
    inside = fusions(
        c1=[
            instruction(1, "parameter", number=0),
            instruction(2, "parameter", number=1),
            instruction(3, "bitcast", (2,)),
            instruction(4, "copy", (3,)),
            instruction(5, "sine", (1,)),
            instruction(6, "tuple", (4, 5)),
        ]
    )
    fusion = instruction(9, "fusion", (70, 71), called=1)

    assert inside.copied(fusion, (0,)) == 71
    assert inside.copied(fusion, (1,)) is None


def test_a_bitcast_is_no_copy() -> None:
    inside = fusions(c1=[instruction(1, "parameter"), instruction(2, "bitcast", (1,))])

    assert inside.copied(instruction(9, "fusion", (70,), called=1), ()) is None


def test_readers_behind_a_fusion_that_only_names_anew() -> None:
    inside = fusions(
        c1=[instruction(1, "parameter"), instruction(2, "bitcast", (1,))],
        c2=[instruction(3, "parameter"), instruction(4, "fusion", (3,), called=1), instruction(5, "convolution", (4,))],
    )

    assert [reader.opcode for reader in inside.readers(2)[0]] == ["convolution"]


def test_readers_in_a_fusion_of_a_fusion() -> None:
    inside = fusions(
        c1=[instruction(1, "parameter"), instruction(2, "cosine", (1,))],
        c2=[instruction(3, "parameter"), instruction(4, "fusion", (3,), called=1), instruction(5, "add", (4, 3))],
    )

    assert [reader.opcode for reader in inside.readers(2)[0]] == ["cosine", "add"]
