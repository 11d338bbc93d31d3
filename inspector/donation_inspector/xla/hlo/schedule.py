"""Logical time: all computations that run one after another, in one order.

As XLA's HloLiveRange flattens them (xla/hlo/utils/hlo_live_range.cc, `FlattenSchedule`).
"""

from __future__ import annotations

from dataclasses import dataclass

from donation_inspector.xla.hlo.module import Module


@dataclass(frozen=True, slots=True)
class Schedule:
    """`order[time]` is the id of the instruction that runs at `time`, `times` is the other way round.

    `spans` gives the (start, end) of a computation, what it calls included, `end` excluded. A computation that runs
    inside one instruction (a fusion's, a reducer, a comparator) has no time of its own and is in neither.
    `async_done` maps a computation that runs beside others to the instruction that waits for it.
    """

    order: tuple[int, ...]
    times: dict[int, int]
    spans: dict[int, tuple[int, int]]
    async_done: dict[int, int]

    @property
    def end(self) -> int:
        """The time after the last instruction."""
        return len(self.order)


def flatten(module: Module) -> Schedule:
    """The schedule of the whole module: a callee before its caller, a while's condition before its body."""
    sequences = module.proto.schedule.sequences
    order: list[int] = []
    times: dict[int, int] = {}
    spans: dict[int, tuple[int, int]] = {}
    # the computation that runs beside others when one runs: itself, or the one that calls it
    beside: dict[int, int] = {}
    started: dict[int, int] = {}
    done: dict[int, int] = {}

    def walk(computation: int, asynchronous: int | None) -> None:
        if computation in spans or computation not in sequences:
            return
        start = len(order)
        if asynchronous is not None:
            beside[computation] = asynchronous
        for identifier in sequences[computation].instruction_ids:
            instruction = module.instructions[identifier]
            called = instruction.called_computation_ids
            match instruction.opcode:
                case "call" | "conditional":
                    for callee in called:
                        walk(callee, asynchronous)
                case "while":
                    body, condition = called
                    walk(condition, asynchronous)
                    walk(body, asynchronous)
                case "async-start":
                    walk(called[0], called[0])
                    started[identifier] = called[0]
                case "async-update":
                    started[identifier] = started[instruction.operand_ids[0]]
                case "async-done":
                    done[started[instruction.operand_ids[0]]] = identifier
                case _:
                    pass
            times[identifier] = len(order)
            order.append(identifier)
        spans[computation] = (start, len(order))

    walk(module.proto.entry_computation_id, None)
    return Schedule(tuple(order), times, spans, {inner: done[outer] for inner, outer in beside.items()})
