"""The rules that few compiled programs of a CPU show, on modules that XLA's own parser reads.

The expectations are those of XLA's sources: HloDataflowAnalysis, whose `Update…ValueSet` for an opcode says what it
hands on, and HloLiveRange for what runs beside other instructions.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from donation_inspector.xla.hlo.dataflow import Dataflow
from donation_inspector.xla.hlo.lifetime import lifetimes
from donation_inspector.xla.hlo.module import Module, Position
from donation_inspector.xla.hlo.proto import parse
from donation_inspector.xla.hlo.schedule import flatten
from xla.hlo.compiled import answer

# XLA's own parser of HLO text moved between versions of jaxlib
_jaxlib: Any = importlib.import_module("jaxlib._jax")
_hlo: Any = _jaxlib if hasattr(_jaxlib, "hlo_module_from_text") else importlib.import_module("jaxlib._hlo")

HANDED_ON = """
HloModule handed_on, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  p = f32[8] parameter(0)
  q = (f32[8], f32[4]) parameter(1)
  tok = token[] after-all()
  bitcast = f32[2,4] bitcast(p)
  barrier = (f32[8], f32[4]) opt-barrier(q)
  after = f32[8] add-dependency(p, tok)
  domain = f32[8] domain(p), domain={kind="sharding", entry={replicated}, exit={replicated}}
  copied = (f32[8], f32[4]) copy(q)
  part = f32[4] get-tuple-element(q), index=1
  copy-start = (f32[8], f32[8], u32[]) copy-start(p)
  copy-done = f32[8] copy-done(copy-start)
  gather-start = (f32[8], f32[64]) all-gather-start(p), dimensions={0}
  gather-done = f32[64] all-gather-done(gather-start)
  gathers-start = ((f32[8], f32[4]), (f32[64], f32[32])) all-gather-start(p, part), dimensions={0}
  gathers-done = (f32[64], f32[32]) all-gather-done(gathers-start)
  permute-start = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}
  permute-done = f32[8] collective-permute-done(permute-start)
  reduce-start = f32[8] all-reduce-start(p), to_apply=add
  reduce-done = f32[8] all-reduce-done(reduce-start)
  send = (f32[8], u32[], token[]) send(p, tok), channel_id=1
  send-done = token[] send-done(send), channel_id=1
  recv = (f32[8], u32[], token[]) recv(tok), channel_id=2
  recv-done = (f32[8], token[]) recv-done(recv), channel_id=2
  ROOT all = (f32[8], (f32[8], f32[4])) tuple(p, q)
}
"""

HANDED_ON_FROM = {
    ("bitcast", ()): ("p", ()),
    ("barrier", ()): ("q", ()),
    ("barrier", (1,)): ("q", (1,)),
    ("after", ()): ("p", ()),
    ("domain", ()): ("p", ()),
    ("copied", (0,)): ("q", (0,)),
    ("part", ()): ("q", (1,)),
    ("copy-start", (1,)): ("p", ()),
    ("copy-done", ()): ("copy-start", (0,)),
    ("gather-start", (0,)): ("p", ()),
    ("gather-done", ()): ("gather-start", (1,)),
    ("gathers-start", (0, 1)): ("q", (1,)),
    ("gathers-done", (1,)): ("gathers-start", (1, 1)),
    ("permute-start", (0,)): ("p", ()),
    ("permute-done", ()): ("permute-start", (1,)),
    ("reduce-done", ()): ("reduce-start", ()),
    ("send", (0,)): ("p", ()),
    ("recv-done", (0,)): ("recv", (0,)),
    ("all", (0,)): ("p", ()),
    ("all", (1, 0)): ("q", (0,)),
}

CALLS = """
HloModule calls, is_scheduled=true

body {
  b = (f32[8], f32[]) parameter(0)
  kept = f32[8] get-tuple-element(b), index=0
  number = f32[] get-tuple-element(b), index=1
  next = f32[] add(number, number)
  ROOT carried = (f32[8], f32[]) tuple(kept, next)
}

condition {
  c = (f32[8], f32[]) parameter(0)
  at = f32[] get-tuple-element(c), index=1
  ROOT less = pred[] compare(at, at), direction=LT
}

left {
  l = f32[8] parameter(0)
  ROOT l-out = f32[8] bitcast(l)
}

right {
  r = f32[8] parameter(0)
  ROOT r-out = f32[8] bitcast(r)
}

callee {
  x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x)
}

deep {
  d = f32[8] parameter(0)
  deep-inner = f32[8] negate(d)
  ROOT deep-out = f32[8] exponential(deep-inner)
}

beside {
  w = f32[8] parameter(0)
  inner = f32[8] negate(w)
  deeper = f32[8] call(inner), to_apply=deep
  ROOT out = f32[8] exponential(deeper)
}

ENTRY main {
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  which = pred[] parameter(2)
  zero = f32[] constant(0)
  init = (f32[8], f32[]) tuple(p, zero)
  loop = (f32[8], f32[]) while(init), condition=condition, body=body
  choice = f32[8] conditional(which, q, q), true_computation=left, false_computation=right
  called = f32[8] call(q), to_apply=callee
  start = ((f32[8]), f32[8], u32[]) async-start(p), calls=beside
  between = f32[8] negate(called)
  update = ((f32[8]), f32[8], u32[]) async-update(start)
  last = f32[8] add(between, between)
  done = f32[8] async-done(update)
  ROOT result = (f32[8], f32[8]) tuple(done, last)
}
"""

CALLS_FROM = {
    # a carry that the body hands on unchanged is one value, inside and outside
    ("b", (0,)): ("p", ()),
    ("c", (0,)): ("p", ()),
    ("kept", ()): ("p", ()),
    ("loop", (0,)): ("p", ()),
    # both branches return the same value
    ("l", ()): ("q", ()),
    ("r-out", ()): ("q", ()),
    ("choice", ()): ("q", ()),
    ("x", ()): ("q", ()),
    ("called", ()): ("y", ()),
    ("w", ()): ("p", ()),
    ("d", ()): ("inner", ()),
    ("deeper", ()): ("deep-out", ()),
    ("start", (0, 0)): ("p", ()),
    ("start", (1,)): ("out", ()),
    ("update", (0, 0)): ("p", ()),
    ("update", (1,)): ("out", ()),
    ("done", ()): ("out", ()),
}


def read(text: str) -> tuple[Module, dict[str, int]]:
    """A module of HLO text, and its instructions' ids by name."""
    hlo: Any = parse(answer("elementwise jax").proto)
    hlo.hlo_module.ParseFromString(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    module = Module(hlo.hlo_module)
    return module, {instruction.name: identifier for identifier, instruction in module.instructions.items()}


@pytest.mark.parametrize(
    ("text", "place", "origin"),
    [
        *((HANDED_ON, place, origin) for place, origin in HANDED_ON_FROM.items()),
        *((CALLS, place, origin) for place, origin in CALLS_FROM.items()),
    ],
)
def test_a_part_that_defines_nothing_holds_what_is_handed_on(
    text: str, place: tuple[str, tuple[int, ...]], origin: tuple[str, tuple[int, ...]]
) -> None:
    module, ids = read(text)
    names = sorted({*HANDED_ON_FROM.values(), *CALLS_FROM.values()})
    defined: dict[Position, int] = {
        (ids[name], index): number for number, (name, index) in enumerate(names) if name in ids
    }
    assert Dataflow(module, defined).value((ids[place[0]], place[1])) == names.index(origin)


@pytest.mark.parametrize("place", [("copied", ()), ("send", (1,)), ("recv-done", (1,)), ("all", ()), ("tok", ())])
def test_a_part_that_defines_its_own_value_takes_none(place: tuple[str, tuple[int, ...]]) -> None:
    module, ids = read(HANDED_ON)
    every = {(ids[name], ()): number for number, name in enumerate("pq")}
    assert Dataflow(module, every).value((ids[place[0]], place[1])) is None


def test_what_runs_beside_others_keeps_its_values_until_it_is_waited_for() -> None:
    module, ids = read(CALLS)
    schedule = flatten(module)
    values = ("inner", "deep-inner", "between", "y")
    defined: dict[Position, int] = {(ids[name], ()): number for number, name in enumerate(values)}
    times = lifetimes(module, schedule, Dataflow(module, defined), defined, [])
    ends = {name: schedule.order[times[number][1]] for number, name in enumerate(values)}
    assert ends == {
        "inner": ids["done"],
        "deep-inner": ids["done"],
        "between": ids["last"],
        "y": ids["between"],
    }


def test_callees_come_before_their_callers() -> None:
    module, ids = read(CALLS)
    schedule = flatten(module)
    names = [module.instructions[identifier].name for identifier in schedule.order]
    assert len(names) == len(ids)
    order = ["init", "c", "less", "b", "carried", "loop", "l", "l-out", "r", "r-out", "choice", "x", "y", "called"]
    order += ["w", "inner", "d", "deep-out", "deeper", "out", "start", "between", "update", "last", "done", "result"]
    assert [name for name in names if name in order] == order


CALLED_TWICE = """
HloModule called_twice, is_scheduled=true

callee {
  x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x)
}

ENTRY main {
  p = f32[8] parameter(0)
  first = f32[8] call(p), to_apply=callee
  ROOT second = f32[8] call(first), to_apply=callee
}
"""


def test_a_computation_has_one_time() -> None:
    """As XLA's FlattenSchedule passes by a computation that it has been through."""
    module, ids = read(CALLED_TWICE)
    schedule = flatten(module)
    assert [module.instructions[identifier].name for identifier in schedule.order] == ["p", "x", "y", "first", "second"]
    assert schedule.times[ids["y"]] == 2
