"""The sentences that come first, on figures made up for each of their cases."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import donation_inspector as di
from donation_inspector.present import headline, report
from donation_inspector.questions.compare import ask as compiling
from donation_inspector.questions.compare.answer import Comparison, Variant
from donation_inspector.questions.measure.answer import MeasuredVariant, Measurement
from donation_inspector.xla.results import Memory
from donation_inspector.xla.targets import Target
from xla_in_process import InProcess

NONE = Memory(400, 300, 0, 100)


@pytest.fixture
def donated() -> di.Inspection:
    square = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    return di.inspect(jax.jit(lambda w, x: w * x.sum(), donate_argnums=0), square, jnp.ones(4))


def _answer(inspection: di.Inspection, jax_: Memory, made: Memory | None = None, missing: bool = False) -> None:
    pairs = ((0, 0),) if missing else ()
    variants = {
        "none": Variant("none", NONE, {}, 1.0, "ok", None),
        "jax": Variant("jax", jax_, {}, 1.0, "ok", None, pairs),
        "pass": Variant("pass", made or jax_, {}, 1.0, "ok", None),
    }
    here, subject = Target("cpu", "cpu"), inspection._subject
    subject.asked["cpu"] = here
    decided = inspection.arguments, inspection.results
    comparison = Comparison("cpu", inspection.pipeline, variants, True, decided)
    subject.answers.put(compiling.ComparisonOf(here, *inspection._case(None).key), comparison)


def _measure(inspection: di.Inspection, peaks: tuple[int | None, int | None], status: str = "ok") -> Measurement:
    none, other = peaks
    rows = {
        "none": MeasuredVariant("none", none, None, 800, 0.1, "ok", None),
        "jax": MeasuredVariant("jax", other, None, 500, 0.1, status, None if status == "ok" else "it broke"),
        "pass": MeasuredVariant("pass", other, None, 500, 0.1, "ok", None),
    }
    answer = Measurement("cpu", "real", 3, rows, True, devices=inspection.devices)
    inspection._subject.measurements[inspection._case(None).key] = answer
    return answer


def _text(inspection: di.Inspection, *, measured: bool = True) -> str:
    return "".join(part.text for part in headline.headline(inspection, measured=measured))


def test_before_a_compile_it_is_a_prediction(donated: di.Inspection) -> None:
    assert _text(donated) == "16.4 KB of 16.4 KB donated can be reused for results."
    assert headline.details(donated).startswith("Predicted from the program's order: at most ")


def test_a_saving_is_named_with_its_share_and_what_was_measured(donated: di.Inspection) -> None:
    _answer(donated, Memory(400, 300, 300, 100))
    assert _text(donated) == "Donation saves 300 B of 800 B (38 %), compiled for cpu."
    _measure(donated, (900, 610))
    assert _text(donated) == "Donation saves 300 B of 800 B (38 %), compiled for cpu; measured 290 B."
    assert _text(donated, measured=False) == "Donation saves 300 B of 800 B (38 %), compiled for cpu."


def test_nothing_and_less_than_nothing_are_said_as_plainly(donated: di.Inspection) -> None:
    _answer(donated, Memory(400, 300, 300, 400))
    assert _text(donated) == "Donation saves nothing of 800 B, compiled for cpu."
    _answer(donated, Memory(400, 300, 300, 500))
    assert _text(donated) == "Donation costs 100 B more, compiled for cpu."


def test_more_when_measured_is_no_saving(donated: di.Inspection) -> None:
    _answer(donated, Memory(400, 300, 300, 100))
    sentence = headline.measured_sentence(_measure(donated, (600, 750)))
    assert sentence.startswith("Measured: donation costs 150 B more at the peak; all outputs")
    assert _text(donated).endswith("; measured, it costs 150 B more.")
    _measure(donated, (600, 600))
    assert _text(donated).endswith("; measured 0 B.")


@pytest.fixture
def sharded() -> jax.ShapeDtypeStruct:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("d",))
    return jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=jax.sharding.NamedSharding(mesh, P("d")))


def test_one_devices_figures_and_those_of_all_are_told_apart(sharded: jax.ShapeDtypeStruct) -> None:
    inspection = di.inspect(jax.jit(lambda w: w * 2, donate_argnums=0, out_shardings=sharded.sharding), sharded)
    _answer(inspection, Memory(400, 300, 300, 100))
    sentence = headline.measured_sentence(_measure(inspection, (7200, 4880)))
    assert _text(inspection) == (
        "Donation saves 300 B of 800 B (38 %) on each of 8 devices, compiled for cpu; measured 2.3 KB, all 8 devices "
        "together."
    )
    assert headline.details(inspection).startswith("By XLA's totals on each of 8 devices: aliased 300 B")
    assert sentence.startswith("Measured: donation saves 2.3 KB at the peak, all 8 devices together; ")
    nothing = inspection.keep("w")
    _answer(nothing, Memory(400, 300, 0, 100))
    assert _text(nothing).endswith("It takes 800 B on each of 8 devices, compiled for cpu.")


def test_a_result_whose_sharding_is_left_to_xla_could_take_a_buffer_and_takes_one(
    sharded: jax.ShapeDtypeStruct,
) -> None:
    inspection = di.inspect(lambda w, v: w + v, sharded, sharded)
    assert [argument.path for argument in inspection.candidates] == ["w"]
    assert [argument.path for argument in inspection.attainable] == ["w"]
    assert "16.4 KB of arguments could be" in _text(inspection)


def test_the_pass_is_named_where_it_differs_and_lost_pairs_too(donated: di.Inspection) -> None:
    _answer(donated, Memory(400, 300, 300, 100), Memory(400, 300, 200, 100), missing=True)
    details = headline.details(donated)
    assert "With the pairs of the xDSL pass: saves 200 B." in details
    assert "The compiled 'jax' lacks pairs that were asked for: w with the result." in details


def test_runs_that_failed_are_named(donated: di.Inspection) -> None:
    sentence = headline.measured_sentence(_measure(donated, (900, None), status="crashed"))
    assert "jax: it broke" in sentence
    assert "saves" not in sentence
    unknown = headline.measured_sentence(_measure(donated, (None, None)))
    assert "The peak is unknown on this system" in unknown


def test_without_arrays_there_is_nothing_to_donate() -> None:
    empty = di.inspect_ir("module { func.func public @main() { return } }")
    assert "nothing to donate" in _text(empty)


def test_the_line_to_change_names_what_is_chosen_and_what_could_be() -> None:
    square = jax.ShapeDtypeStruct((64, 64), jnp.float32)

    def step(w: jax.Array, m: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return w + m * x.sum(), m * 2

    plain = di.inspect(step, square, square, jnp.ones(4))
    assert headline.fix(plain) == 'step = jax.jit(step, donate_argnames=("w", "m"))'
    assert headline.fix(plain.donate("w")) == 'step = jax.jit(step, donate_argnames=("w", "m"))'
    jitted = di.inspect(jax.jit(step, donate_argnums=(0, 1)), square, square, jnp.ones(4))
    assert headline.fix(jitted) is None


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_what_no_result_can_take_is_left_out_of_the_line() -> None:
    @functools.partial(jax.jit, donate_argnames=("w", "x"))
    def step(w: jax.Array, x: jax.Array) -> jax.Array:
        return w * x.sum()

    square = jnp.ones((64, 64))
    with pytest.raises(di.DonationError):
        di.assert_donated(step, square, jnp.ones(4))
    line = headline.fix(di.inspect(step, square, jnp.ones(4)))
    di.assert_donated(_changed(line, step), square, jnp.ones(4))


Steps = Callable[..., Any]


def sgd(params: Any, x: Any, y: Any, lr: Any) -> Any:
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p) - y) ** 2))(params)
    return params - lr * grads, loss


def autoencoder(params: Any, x: Any) -> Any:
    def loss(p: Any) -> Any:
        return jnp.mean((x @ p - x) ** 2), x @ p

    (value, reconstruction), grads = jax.value_and_grad(loss, has_aux=True)(params)
    return params - grads, reconstruction, value


def predicting(params: Any, x: Any, y: Any) -> Any:
    predicted = x @ params
    return params - 0.1 * jax.grad(lambda p: jnp.mean((x @ p - y) ** 2))(params), predicted


def scaled(state: Any, batch: Any, lr_scale: Any) -> Any:
    new, loss = sgd(state["w"], batch["x"], batch["y"], lr_scale)
    return {"w": new, "count": state["count"] + 1}, loss


SQUARE, ROWS = jnp.ones((64, 64)) / 64, jnp.ones((8, 64))


@pytest.mark.parametrize(
    ("step", "arguments", "again"),
    [
        (sgd, (SQUARE, ROWS, ROWS, jnp.float32(0.1)), ["lr"]),
        (autoencoder, (SQUARE, ROWS), ["x"]),
        (predicting, (SQUARE, ROWS, ROWS + 1), ["x"]),
        (scaled, ({"w": SQUARE, "count": 0}, {"x": ROWS, "y": ROWS}, jnp.float32(0.1)), ["lr_scale"]),
    ],
)
def test_the_line_can_be_followed_where_all_but_the_first_argument_is_passed_again(
    step: Steps, arguments: tuple[Any, ...], again: list[str]
) -> None:
    inspection = di.inspect(step, *arguments)
    changed = _changed(headline.fix(inspection), step)
    state, rest = jax.tree.map(jnp.copy, arguments[0]), arguments[1:]
    for _ in range(3):
        state = changed(state, *rest)[0]
    assert [one.path for one in inspection.unsafe] == again
    assert all(f"Perhaps unsafe to donate: {path}: " in inspection.report() for path in again)
    assert "16.4 KB of arguments could be" in _text(inspection)
    with pytest.raises(di.DonationError) as raised:
        di.assert_donated(step, *arguments)
    advised = [line for line in str(raised.value).splitlines() if line.startswith(step.__name__ + " = ")]
    assert advised == [headline.fix(inspection)]


def test_who_chooses_what_is_passed_again_donates_it() -> None:
    inspection = di.inspect(sgd, SQUARE, ROWS, ROWS, jnp.float32(0.1)).donate("lr")
    assert headline.fix(inspection) == 'sgd = jax.jit(sgd, donate_argnames=("params", "lr"))'
    assert headline.unsafe_sentences(inspection) == ()


def test_after_a_search_the_line_is_what_that_recommends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_variants", InProcess().compile_variants)

    def doubled(w: Any) -> Any:
        return w * 2

    wasted = di.inspect(sgd, SQUARE, ROWS, ROWS, jnp.float32(0.1))
    before = report.summary(wasted)
    assert wasted.recommend("cpu").code.startswith("# Nothing to change: ")
    assert "Change one line" not in wasted.report()
    # what a notebook saves stays as it is: how much a search tries depends on the time
    assert report.summary(wasted) == before
    useful = di.inspect(doubled, SQUARE)
    assert headline.fix(useful) == useful.recommend("cpu").code == headline.fix(useful)


def test_where_all_that_could_be_donated_is_passed_again_there_is_no_line() -> None:
    def loss(params: Any, targets: Any) -> Any:
        return params.sum(), (params @ params)[:8], targets.sum()

    inspection = di.inspect(loss, SQUARE, ROWS)
    assert [one.path for one in inspection.unsafe] == ["targets"]
    assert headline.fix(inspection) is None
    assert _text(inspection) == "Nothing is donated, and what could be is not safe to donate."
    with pytest.raises(di.DonationError, match="Perhaps unsafe to donate: targets: "):
        di.assert_donated(loss, SQUARE, ROWS)


def _changed(line: str | None, step: Steps) -> Steps:
    scope = {"jax": jax, step.__name__: step}
    exec(line or "", scope)
    return cast(Steps, scope[step.__name__])


def test_each_free_result_is_offered_once() -> None:
    def f(p: jax.Array, m: jax.Array, v: jax.Array, g: jax.Array) -> tuple[jax.Array, ...]:
        return p + m + v + g, v * 2, m * 3

    square = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    inspection = di.inspect(f, square, square, square, square).donate("m", "v")
    assert [one.path for one in inspection.candidates] == [one.path for one in inspection.attainable] == ["p"]
    assert headline.fix(inspection) == 'f = jax.jit(f, donate_argnames=("p", "m", "v"))'
    plain = di.inspect(f, square, square, square, square)
    assert "49.2 KB of arguments could be" in _text(plain)


@pytest.mark.parametrize("attribute", ["", " {tf.aliasing_output = 0 : i32}"])
def test_unknown_sizes_are_never_zero(attribute: str) -> None:
    inspection = di.inspect_ir(f"""
module {{
  func.func public @main(%a: tensor<?x4xf32>{attribute}) -> tensor<?x4xf32> {{
    %0 = stablehlo.add %a, %a : tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }}
}}
""")
    assert "0 B" not in _text(inspection)
    assert "unknown" in _text(inspection)
    assert "at least 0 B live at once, 2 values of unknown size left out" in headline.details(inspection)


def test_what_is_given_twice_is_in_no_line_and_said_to_be() -> None:
    def tied(params: Any, x: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf - 0.1 * x.sum(), params)

    table, x = jnp.ones((64, 64)), jnp.ones(8)
    twice = di.inspect(tied, {"embed": table, "head": table}, x)
    assert headline.fix(twice) is None
    assert "Unsafe to donate: params['embed']: it is the same array as params['head']" in twice.report()
    # JAX's own word, for the line that is not given
    with pytest.raises(Exception, match="donate the same buffer twice"):
        jax.jit(tied, donate_argnames="params")({"embed": table, "head": table}, x)
    once = di.inspect(tied, {"embed": jnp.copy(table), "head": jnp.copy(table)}, x)
    assert headline.fix(once) == 'tied = jax.jit(tied, donate_argnames=("params",))'


def test_what_a_numpy_array_looks_into_is_in_no_line() -> None:
    w, rest = jnp.ones((64, 64)), (ROWS, ROWS, jnp.float32(0.1))
    view = np.asarray(w)
    assert headline.fix(di.inspect(sgd, w, *rest)) is None
    assert "numpy view" in di.inspect(sgd, w, *rest).report()
    del view


def test_a_few_bytes_of_many_are_worth_no_line() -> None:
    def fill(index: Any, xs: Any) -> Any:
        return index + 1, xs.at[index].set(1.0)

    inspection = di.inspect(jax.jit(fill, donate_argnums=1), jnp.arange(2), jnp.zeros(1 << 16))
    assert [one.path for one in inspection.candidates] == ["index"]
    assert headline.fix(inspection) is None


def test_once_compiled_nothing_is_proposed_that_saves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_variants", InProcess().compile_variants)

    def swapped(a: Any, b: Any) -> Any:
        return b * 2, a * 3

    wasted = di.inspect(swapped, SQUARE, SQUARE + 1).donate("a", "b")
    comparison = wasted.compare("cpu")
    assert comparison.saved("jax") == 0
    assert headline.fix(wasted) is None
    nothing = wasted.keep("a", "b")
    nothing.compare("cpu")
    assert headline.fix(nothing) is None


def test_a_donor_that_no_result_has_the_bytes_of_counts_as_nothing() -> None:
    def update(params: Any, momentum: Any, x: Any) -> Any:
        momentum = 0.9 * momentum + jax.grad(lambda p: jnp.mean((x @ p) ** 2))(params)
        return (params - 0.1 * momentum).astype(jnp.bfloat16), momentum

    square = jax.ShapeDtypeStruct((1000, 1000), jnp.float32)
    step = jax.jit(update, donate_argnums=(0, 1))
    rows = jax.ShapeDtypeStruct((64, 1000), jnp.float32)
    assert _text(di.inspect(step, square, square, rows)).startswith("4.0 MB of 8.0 MB donated can be reused")
    # XLA's own word
    assert step.lower(square, square, rows).compile().memory_analysis().alias_size_in_bytes == 4_000_000
