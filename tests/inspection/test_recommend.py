"""`recommend`: what it finds on cases whose best is known, what it says, and how it ends."""

from __future__ import annotations

import dataclasses
import signal
import threading
import warnings
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import case_loader
import donation_inspector as di
from donation_inspector.common.signature import Donation
from donation_inspector.common.units import format_bytes
from donation_inspector.ir.exporter import with_donation
from donation_inspector.program.origins import FromFunction
from donation_inspector.questions.compare import ask as compiling
from donation_inspector.xla.program import Program
from donation_inspector.xla.results import Compiled
from small_programs import TWO_FOR_ONE_RESULT
from xla_in_process import QUICKLY, InProcess

SIDE = 64
ARRAY = SIDE * SIDE * 4
FUSED_OTHERWISE = {"03_kv_cache_batch_ints", "33_bcoo_sparse", "34_custom_vjp_remat_trainstate"}
"""Cases in which XLA fuses other operations when it is to be quick, so that the best is another."""
KNOWN_BEST = [name for name in case_loader.CASE_NAMES if "best" in case_loader.expect(name)]


def adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    """As people write it, returned in an order in which first in, first out copies."""
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return m, v, p - 1e-3 * m / (jnp.sqrt(v) + 1e-8)


def inspection(function: Any = adam, *, donate: Any = (0, 1, 2), count: int = 4) -> di.Inspection:
    array = jax.ShapeDtypeStruct((SIDE, SIDE), jnp.float32)
    return di.inspect(jax.jit(function, donate_argnums=donate, compiler_options=QUICKLY), *[array] * count)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> InProcess:
    xla = InProcess()
    monkeypatch.setattr(compiling, "compile_variants", xla.compile_variants)
    return xla


# ---- what it finds


def test_a_step_that_donates_in_part_is_searched_from_what_may_be_donated(in_process: InProcess) -> None:
    del in_process

    def update(p: Any, m: Any, v: Any, x: Any) -> Any:
        grads = jax.grad(lambda p: jnp.mean((x @ p) ** 2))(p)
        m, v = 0.9 * m + grads, 0.99 * v + grads**2
        return p - 0.1 * m / (1e-8 + jnp.sqrt(v)), m, v

    arrays = [*[jax.ShapeDtypeStruct((128, 128), jnp.float32)] * 3, jax.ShapeDtypeStruct((16, 128), jnp.float32)]
    totals: list[int] = []
    for donate in ((0,), (0, 1, 2)):
        memory = di.inspect(jax.jit(update, donate_argnums=donate), *arrays).compare("cpu").variants["jax"].memory
        assert memory is not None
        totals.append(memory.total)
    partly = di.inspect(jax.jit(update, donate_argnums=0), *arrays)
    found = partly.recommend("cpu", compiles=4)
    assert found.total is not None
    assert found.total <= totals[1] < totals[0]
    chosen = partly.keep("p").donate("m").recommend("cpu", compiles=4)
    assert chosen.donated <= {1}


def test_for_less_than_a_hundredth_nothing_is_to_be_changed(in_process: InProcess) -> None:
    del in_process

    def fill(index: Any, xs: Any) -> Any:
        return index + 1, xs.at[index].set(1.0)

    found = di.inspect(jax.jit(fill, donate_argnums=1), jnp.arange(2), jnp.zeros(1 << 16)).recommend("cpu")
    assert found.name == "now"
    assert found.code.startswith("# Nothing to change: fill already donates xs")
    assert "what is donated now" in found.sentence


@pytest.mark.parametrize("name", KNOWN_BEST)
def test_the_best_that_a_search_of_all_pairings_found_is_reached(name: str, in_process: InProcess) -> None:
    case, best = case_loader.load(name).make(), case_loader.expect(name)["best"]
    options = None if name in FUSED_OTHERWISE else QUICKLY
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX's own, of donation that is not usable
        jitted = jax.jit(case["fn"], **case["jit_kwargs"], compiler_options=options)
        step = di.inspect(jitted, *case["args"], **case["kwargs"])
    found = step.recommend("cpu", budget=600, compiles=24)
    # where nothing is donated, what could be is searched
    known = best["same_donated_set" if step.donated_by_function else "any_donated_set"]
    searched = min(one.total for one in found.variants if one.total is not None)
    # in the order in which the code hands it over XLA makes another schedule
    assert found.total <= searched
    if jax.__version__ == case_loader.expect(name)["jax"]:
        assert searched == known["total"] <= best["same_donated_set"]["total"]
    else:
        assert searched <= _total(in_process, FromFunction(jitted, case["args"], case["kwargs"]), known["pairs"])


def _total(xla: InProcess, origin: FromFunction, pairs: Mapping[int, int]) -> int:
    """XLA's total of pairs by flat index."""
    arguments, results = origin.signature.arguments, origin.signature.results
    aliases = {arguments[argument].position: results[result].position for argument, result in pairs.items()}
    compiled = xla.compile(origin.program(with_donation(origin.module, Donation(aliases)), None))  # pyright: ignore[reportArgumentType]
    assert compiled.memory is not None
    return compiled.memory.total


@pytest.mark.usefixtures("in_process")
def test_pairs_baselines_and_words() -> None:
    step, labels = inspection(), list[str]()
    found = step.recommend(progress=lambda _done, _all, label: labels.append(label))
    assert found.total == found.baselines["none"] - 3 * ARRAY  # every donated buffer is taken over without a copy
    assert dict(found.pairs) == {0: 2, 1: 0, 2: 1}
    assert found.donated == {0, 1, 2}
    assert found.baselines["jax"] > found.total
    assert (found.tried, found.exhaustive, found.searched) == (32, True, "best of all 34")
    assert [one.name for one in found.variants][:3] == ["none", "jax", "donate-by-live-range"]
    assert {*(one.name for one in found.variants), "as handed over"} == set(labels)
    assert len(labels) == len(found.variants) + 1 == 35
    assert (found.saved, found.saved_over_jax) == (3 * ARRAY, found.baselines["jax"] - found.total)
    assert "best of all 34" in repr(found)
    assert step.recommendation is found
    assert step.keep("m").recommendation is None
    assert found.sentence == (
        f"Recommended on cpu (compiled; best of all 34): 3 pairs, which save {format_bytes(3 * ARRAY)} of "
        f"{format_bytes(found.baselines['none'])} ({300 * ARRAY / found.baselines['none']:.0f} %) a device, "
        f"{format_bytes(found.saved_over_jax)} more than JAX's own pairing."
    )
    assert repr(found) in step.report()


@pytest.mark.usefixtures("in_process")
def test_a_line_to_change_is_said_to_be_one() -> None:
    found = inspection(lambda a, b: (a + 1, b), donate=(), count=2).recommend()
    assert found.name == "jax"
    assert found.sentence.endswith("a device.")
    one_line = dataclasses.replace(found, code="step = jax.jit(step)")
    assert repr(one_line).endswith("\nChange one line: step = jax.jit(step)")
    assert one_line._repr_html_().endswith("a device.</p><pre>Change one line: step = jax.jit(step)</pre>")
    hostile = dataclasses.replace(found, target="<b>", code="<script>")._repr_html_()
    assert "<script>" not in hostile
    assert "<b>" not in hostile
    several = dataclasses.replace(found, code="# as it is:\nstep = jax.jit(step)")
    assert repr(several).endswith("\n# as it is:\nstep = jax.jit(step)")


@pytest.mark.usefixtures("in_process")
def test_whether_it_fits_and_what_donation_has_to_do_with_that() -> None:
    step = inspection()
    unknown = step.recommend()
    best, (none, jax) = unknown.total, (unknown.baselines[name] for name in ("none", "jax"))
    assert best < jax < none
    assert (unknown.capacity, unknown.fits) == (None, None)
    said = {fits: step.recommend(fits=fits).sentence.rpartition("; ")[2] for fits in (best - 24, best, jax, none)}
    assert said == {
        best - 24: f"it does not fit: {format_bytes(24)} over the {format_bytes(best - 24)} of a device.",
        best: f"it fits the {format_bytes(best)} of a device, and JAX's own pairing does not.",
        jax: f"it fits the {format_bytes(jax)} of a device, and only with donation.",
        none: f"it fits the {format_bytes(none)} of a device.",
    }
    assert (step.recommendation.capacity, step.recommendation.fits) == (none, True)


@pytest.mark.usefixtures("in_process")
def test_some_leaves_donated_are_searched_alone() -> None:
    found = inspection(donate=()).donate("m", "v").recommend()
    assert found.donated <= {1, 2}
    assert found.searched == "best of all 13"  # none, six single pairs, six of two


@pytest.mark.usefixtures("in_process")
def test_where_nothing_is_donated_what_comes_back_is_searched() -> None:
    found = inspection(donate=()).recommend(compiles=8)
    assert dict(found.pairs) == {0: 2, 1: 0, 2: 1}
    # each result is offered to the argument that it is the new value of: nobody thinks of the gradient
    assert found.unsafe == ()


@pytest.mark.usefixtures("in_process")
def test_a_tie_goes_to_what_stands_there() -> None:
    def needs_both(a: Any, b: Any) -> Any:
        return b @ a, a @ b

    donated, kept = (inspection(needs_both, donate=given, count=2).recommend() for given in ((0, 1), ()))
    assert donated.total == donated.baselines["none"] == donated.baselines["jax"] == kept.total
    assert donated.name == "jax"
    assert (kept.name, kept.donated, dict(kept.pairs)) == ("none", frozenset(), {})
    assert kept.sentence.endswith(f"no donation, {format_bytes(kept.total)} a device, as much as JAX's own pairing.")
    assert donated.sentence.endswith(f"JAX's own pairing, {format_bytes(kept.total)} a device, as much as no donation.")


# ---- what the code takes


def some_leaves(s: Any, g: Any) -> Any:
    return {"q": (s["q"] @ g) + s["p"], "bf": s["bf"] + 1, "extra": s["p"].sum()}, g.T


def turned(states: Any, g: Any) -> Any:
    return [states[(5 * place + 3) % 12] @ g for place in range(12)]


def crossed(a: Any, b: Any, c: Any) -> Any:
    return c + 1, a @ b, b * 2


def mixed() -> tuple[Any, Any]:
    square = jax.ShapeDtypeStruct((256, 256), jnp.float32)
    return {"p": square, "q": square, "bf": jax.ShapeDtypeStruct((256, 256), jnp.bfloat16)}, square


def squares(side: int, count: int) -> list[Any]:
    return [jax.ShapeDtypeStruct((side, side), jnp.float32)] * count


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("function", "arguments", "donated"),
    [
        (some_leaves, mixed(), ("s",)),
        (turned, (squares(64, 12), *squares(64, 1)), ("states",)),
        (crossed, squares(256, 3), ("a", "b", "c")),
        (adam, squares(64, 4), ("p", "m", "v")),
    ],
)
def test_what_is_said_to_be_saved_is_what_the_code_saves(function: Any, arguments: Any, donated: Any) -> None:
    step = di.inspect(function, *arguments).donate(*donated)
    found = step.recommend("cpu", compiles=8)
    scope: dict[str, Any] = {"jax": jax, function.__name__: function}
    exec(found.code, scope)
    memory = scope[function.__name__].lower(*arguments).compile().memory_analysis()
    taken = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    assert found.total == taken - memory.alias_size_in_bytes
    assert found.saved == found.baselines["none"] - found.total
    assert found.total <= min(found.baselines.values())


# ---- what is compiled, and when it ends


@pytest.mark.usefixtures("in_process")
def test_nothing_is_compiled_twice(in_process: InProcess) -> None:
    step = inspection()
    step.recommend(compiles=8)
    assert len(in_process.made) == 11  # none, JAX's own, what is handed over
    assert step.recommend(compiles=8).tried == 8
    assert len(in_process.made) == 11
    step.compare()  # the real pass pairs as JAX does
    assert len(in_process.made) == 11


def test_a_comparison_has_the_buffers_of_what_the_search_compiled_for_its_total() -> None:
    step = inspection().with_pipeline("donate-by-live-range")
    found = step.recommend(compiles=1)
    assert found.searched == "best of 1 tried"
    variant = step.compare().variants["pass"]
    assert variant.memory is not None
    assert variant.memory.total == found.variants[-1].total
    assert variant.buffers is not None


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("compiles", [0, 1, 5, 12])
def test_no_more_is_compiled_than_asked_for(in_process: InProcess, compiles: int) -> None:
    found = inspection().recommend(compiles=compiles)
    assert found.tried == compiles == len(in_process.made) - 2 - (found.name not in found.baselines)
    assert found.total <= min(found.baselines.values())
    assert not found.exhaustive
    assert found.searched == (f"best of {compiles} tried" if compiles else "not searched: no candidate was asked for")


class Slow(InProcess):
    """Says of every compile that it takes 40 seconds."""

    def compile_variants(self, *given: Any, **options: Any) -> dict[str, Compiled]:
        made = super().compile_variants(*given, **options)
        return {name: dataclasses.replace(result, seconds=40.0) for name, result in made.items()}


def test_where_one_compile_is_too_long_nothing_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_variants", Slow().compile_variants)
    found = inspection().recommend(budget=30)
    assert found.searched == "not searched: one compile takes 40 s"
    assert found.total == min(found.baselines.values())
    assert found.tried == 0


def test_the_budget_ends_a_compile_that_is_at_work() -> None:
    found = inspection().recommend(budget=0.7)
    assert found.total is not None
    assert found.total <= min(found.baselines.values())
    assert "0.7 s are over" in found.searched


def test_cancelled_before_it_starts_it_keeps_what_stands_there() -> None:
    cancel = threading.Event()
    cancel.set()
    found = inspection().recommend(cancel=cancel)
    assert (found.total, dict(found.baselines), found.tried) == (None, {"none": None, "jax": None}, 0)
    assert dict(found.pairs) == {0: 0, 1: 1, 2: 2}
    assert found.searched == "not searched: cancelled"
    # Nothing is recommended, and so is nothing to paste.
    assert found.code == ""
    assert "not known" in repr(found)


@pytest.mark.parametrize("how", ["cancelled", "interrupted"])
def test_what_was_compiled_until_it_is_ended_gives_the_answer(how: str) -> None:
    cancel, step = threading.Event(), inspection()

    def end(done: int, steps: int, label: str) -> None:  # noqa: ARG001
        if done == 5:
            cancel.set() if how == "cancelled" else signal.raise_signal(signal.SIGINT)

    found = step.recommend(progress=end, cancel=cancel)
    assert 3 <= found.tried < 32
    assert found.searched == f"best of {found.tried} tried, {how}"
    assert found.total is not None
    assert found.total <= min(found.baselines.values())
    assert found.tried == len(found.variants) - 2
    assert step.recommendation is found
    # the next one goes on
    assert step.recommend(compiles=found.tried + 2, budget=600).tried == found.tried + 2


class Refusing(InProcess):
    """Refuses one module, kills the process at another, by the order in which they come."""

    def __init__(self, ends: Mapping[int, Compiled]) -> None:
        super().__init__()
        self._ends, self._seen = ends, dict[bytes, int]()

    def compile(self, program: Program) -> Compiled:
        number = self._seen.setdefault(program.bytecode, len(self._seen))
        return self._ends.get(number) or super().compile(program)


def test_a_candidate_that_xla_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {2: Compiled("refused", error="no"), 4: Compiled("crashed", error="gone")}
    monkeypatch.setattr(compiling, "compile_variants", Refusing(ends).compile_variants)
    found = inspection().recommend()
    assert [one.total for one in found.variants].count(None) == 2
    assert (found.tried, found.exhaustive) == (32, True)
    assert found.total == min(one.total for one in found.variants if one.total is not None)


# ---- every kind of program and target


@pytest.mark.usefixtures("in_process")
def test_a_file_whose_own_donation_is_refused() -> None:
    found = di.inspect_ir(TWO_FOR_ONE_RESULT).recommend()
    assert found.baselines["jax"] is None
    assert (found.total, found.baselines["none"]) == (64, 96)
    assert found.searched == "best of all 4"


@pytest.mark.usefixtures("in_process")
def test_of_several_blocks_none_and_jax_are_compiled() -> None:
    blocks = """
module {
  func.func public @main(%a: tensor<8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8xf32> {
    cf.br ^next(%a : tensor<8xf32>)
  ^next(%b: tensor<8xf32>):
    return %b : tensor<8xf32>
  }
}
"""
    found = di.inspect_ir(blocks).recommend()
    assert found.searched == "not searched: the function is not one block that returns"
    assert found.tried == 0


@pytest.mark.usefixtures("in_process")
def test_a_large_class_is_not_searched_for_ever() -> None:
    def decay(params: list[Any]) -> list[Any]:
        return [one * 0.9 for one in params]

    leaves = [jax.ShapeDtypeStruct((8,), jnp.float32)] * 60
    found = di.inspect(jax.jit(decay, donate_argnums=0), leaves).recommend(budget=600)
    assert (found.name, found.total) == ("jax", 60 * 8 * 4 + 60 * 8)  # the arrays, and the table of the results
    assert found.tried == 20
    assert found.searched == "best of 20 tried"


@pytest.mark.usefixtures("in_process")
def test_other_types_are_told_and_never_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    def bits(x: Any) -> Any:
        return jax.lax.bitcast_convert_type(x * 2, jnp.int32)

    step = inspection(bits, count=1, donate=0)
    plain = step.recommend()
    assert plain.more is None  # on a CPU XLA saves nothing by it

    def saving(donation: Any) -> int:
        return 10 if donation.aliases else 100

    monkeypatch.setattr("donation_inspector.advice.searching.Search.total", lambda _self, donation: saving(donation))
    found = inspection(bits, count=1, donate=0).recommend()
    assert dict(found.pairs) == {}
    assert found.more is not None
    assert "90 B less" in found.more
    assert "x → result" in found.more


@pytest.mark.parametrize("wrong", [{"budget": -1}, {"budget": float("nan")}, {"budget": "60"}, {"compiles": -1}])
def test_numbers_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(di.CompileError, match=f"{next(iter(wrong))}="):
        inspection().recommend(**wrong)


def test_what_xla_does_not_compile_for() -> None:
    inspection = di.inspect(jax.jit(lambda a: a + 1, donate_argnums=0), jnp.ones(4))
    for ask in (inspection.recommend, lambda target: inspection.sweep({"a": [2]}, target=target)):
        with pytest.raises(di.CompileError, match=r"ask for it alone, compare\('mlir'\)"):
            ask("mlir")
