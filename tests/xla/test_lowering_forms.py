"""What `lower` accepts, and the names it gives: every form against JAX's own lowering of the same call."""

from __future__ import annotations

import functools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from donation_inspector.common.signature import Implicit
from donation_inspector.errors import TraceError
from donation_inspector.xla.lowering import Lowered, decide, lower

X = jnp.ones(3)
SPEC = jax.ShapeDtypeStruct((3,), jnp.float32)


def paths(lowered: Lowered) -> list[str]:
    return [leaf.path for leaf in lowered.signature.arguments]


def results(lowered: Lowered) -> list[str]:
    return [leaf.path for leaf in lowered.signature.results]


class State(NamedTuple):
    count: Any
    mu: Any


def step(params: Any, state: State, *, scale: Any) -> Any:
    return {"w": params["w"] * scale}, State(state.count + 1, {"w": state.mu["w"]})


ARGS = ({"w": X}, State(jnp.int32(0), {"w": X}))
KWARGS = {"scale": 2.0}
PATHS = ["params['w']", "state.count", "state.mu['w']", "scale"]


def double(x: Any) -> Any:
    return x * 2


class Holder:
    def __init__(self) -> None:
        self.factor = 2.0

    @functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
    def jitted(self, x: Any) -> Any:
        return x * self.factor

    def plain(self, x: Any) -> Any:
        return x * self.factor


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "names"),
    [
        (step, ARGS, KWARGS, PATHS),
        (jax.jit(step), ARGS, KWARGS, PATHS),
        (functools.partial(step, scale=2.0), ARGS, {}, PATHS[:3]),
        (functools.partial(jax.jit(step), ARGS[0]), ARGS[1:], KWARGS, PATHS),
        (jax.jit(step).trace(*ARGS, **KWARGS), (), {}, PATHS),
        (jax.jit(step).lower(*ARGS, **KWARGS), (), {}, PATHS),
        (Holder().plain, (X,), {}, ["x"]),
        (Holder().jitted, (X,), {}, ["x"]),
        (Holder.jitted, (Holder(), X), {}, ["x"]),
        (lambda *args, **named: (args, named), (X, {"a": X}), {"z": X}, ["args[0]", "args[1]['a']", "named['z']"]),
        (jnp.sin, (X,), {}, ["x"]),
        (jax.jit(lambda n, x: x * n, static_argnums=0), (3, X), {}, ["x"]),
        (
            jax.jit(lambda n, x, mode: x * n if mode else x, static_argnames=("n", "mode")),
            (3,),
            {"x": X, "mode": "m"},
            ["x"],
        ),
        (lambda x: x, (np.ones(3, np.float32),), {}, ["x"]),
        (lambda x: x, (SPEC,), {}, ["x"]),
        (lambda x: x, (2.0,), {}, ["x"]),
    ],
)
def test_takes_every_form_and_names_the_arguments(fn: Any, args: Any, kwargs: Any, names: list[str]) -> None:
    assert paths(lower(fn, args, kwargs)) == names


@pytest.mark.parametrize(
    ("fn", "args", "name"),
    [
        (functools.partial(step, scale=2.0), ARGS, "step"),
        (functools.partial(jax.jit(double), X), (), "double"),
        (jax.jit(double).trace(X), (), "double"),
        (jax.jit(double).lower(X), (), "double"),
        (Holder().jitted, (X,), "jitted"),
        (dict, ({"a": X},), "dict"),
    ],
)
def test_it_has_the_functions_name(fn: Any, args: Any, name: str) -> None:
    assert lower(fn, args, {}).name == name


@pytest.mark.parametrize(("method", "held"), [("trace", "traced"), ("lower", "lowered")])
def test_takes_a_wrapper_that_holds_jaxs_stage(method: str, held: str) -> None:
    class Stage:
        def __init__(self, inner: Any) -> None:
            setattr(self, held, inner)

    class Wrapper:
        def stage(self, x: Any) -> Stage:
            return Stage(getattr(jax.jit(jnp.sin), method)(x))

    setattr(Wrapper, method, Wrapper.stage)

    assert paths(lower(Wrapper(), (X,), {})) == ["x"]
    assert paths(lower(Stage(getattr(jax.jit(jnp.sin), method)(X)), (), {})) == ["x"]


def test_the_jit_functions_own_options_are_honoured() -> None:
    lowered = lower(Holder().jitted, (X,), {})

    assert lowered.signature.arguments[0].donated
    assert lowered.donation.aliases == {0: 0}


def test_results_are_named_by_their_path_in_what_is_returned() -> None:
    assert results(lower(step, ARGS, KWARGS)) == ["[0]['w']", "[1].count", "[1].mu['w']"]
    assert results(lower(jnp.sin, (X,), {})) == ["result"]


def test_inputs_are_the_callers_own_arrays() -> None:
    spec = jax.ShapeDtypeStruct((3,), jnp.float32)
    args = (3, {"b": X, "a": spec})

    lowered = lower(jax.jit(lambda n, d, y: (d, y * n), static_argnums=0), (*args, 1.5), {})

    assert [leaf.path for leaf in lowered.signature.arguments] == ["d['a']", "d['b']", "y"]
    assert lowered.inputs[0] is spec
    assert lowered.inputs[1] is X
    assert lowered.inputs[2] == 1.5
    assert [value.shape for value in lower(jax.jit(jnp.sin).trace(X), (), {}).inputs] == [(3,)]


def test_nothing_runs_and_the_function_is_traced_once() -> None:
    traces: list[Any] = []

    def fn(x: Any) -> Any:
        traces.append(isinstance(x, jax.core.Tracer))
        jax.debug.callback(lambda _: traces.append("ran"), x)
        return x

    lower(fn, (X,), {})

    assert traces == [True]


def test_a_closed_over_reference_is_implicit() -> None:
    counter = jax.new_ref(jnp.zeros(4))

    def fn(x: Any) -> Any:
        counter[...] += x
        return x * 2

    lowered = lower(jax.jit(fn, donate_argnums=0), (jnp.ones(4),), {})

    assert paths(lowered) == ["x"]
    assert results(lowered) == ["result"]
    assert lowered.signature.implicit_arguments == (Implicit(1, "ref", "tensor<4xf32>"),)
    assert lowered.signature.implicit_results == (Implicit(1, "ref", "tensor<4xf32>"),)
    assert lowered.donation.aliases == {0: 0, 1: 1}
    assert lowered.values()[1] is not None
    assert counter[...].tolist() == [0, 0, 0, 0]


def test_an_ordered_effects_token_is_implicit() -> None:
    def fn(x: Any) -> Any:
        jax.debug.print("{}", x, ordered=True)
        return x * 2

    lowered = lower(jax.jit(fn, donate_argnums=0), (X,), {})

    assert lowered.signature.implicit_arguments == (Implicit(0, "token", "!stablehlo.token"),)
    assert lowered.signature.implicit_results == (Implicit(0, "token", "!stablehlo.token"),)
    assert lowered.signature.arguments[0].position == 1
    assert lowered.donation.aliases == {1: 1}
    assert lowered.values() == (None, X)


def test_constants_that_jax_hoists_are_implicit() -> None:
    table = np.arange(64.0, dtype=np.float32)
    config: Any = jax.config
    before = config.jax_use_simplified_jaxpr_constants
    try:
        config.update("jax_use_simplified_jaxpr_constants", True)
        lowered = lower(jax.jit(lambda _, y: y + jnp.asarray(table), donate_argnums=(0, 1)), (X, jnp.ones(64)), {})
        again = decide(lowered, frozenset({1}))
    finally:
        config.update("jax_use_simplified_jaxpr_constants", before)

    kinds = [implicit.kind for implicit in lowered.signature.implicit_arguments]
    assert kinds == ["constant"] * len(kinds)
    assert [leaf.position for leaf in lowered.signature.arguments] == [None, len(kinds)]
    assert again == lowered.donation


def test_a_dropped_argument_has_no_position_and_its_lost_donation_is_told() -> None:
    lowered = lower(jax.jit(lambda x, _: x * 2, donate_argnums=(0, 1)), (X, {"a": X, "b": X + 1}), {})

    assert [leaf.position for leaf in lowered.signature.arguments] == [0, None, None]
    (note,) = lowered.notes
    assert (note.kind, note.leaves) == ("dropped", (1, 2))
    assert "_['a'], _['b']" in str(note)
    assert not lowered.warnings


_TURNED_OFF = {"debug_nans": jax.debug_nans, "disable_jit": jax.disable_jit}


@pytest.mark.parametrize("setting", _TURNED_OFF)
def test_donation_that_a_setting_turns_off_is_told(setting: str) -> None:
    fn = jax.jit(lambda x: x * 2, donate_argnums=0)
    with _TURNED_OFF[setting](True):
        lowered = lower(fn, (X,), {})
        nothing_asked = lower(lambda x: x * 2, (X,), {})

    assert [note.kind for note in lowered.notes] == [setting]
    assert lowered.donation.positions == frozenset()
    assert not nothing_asked.notes


def test_a_lowering_is_compiled_and_called_as_it_is() -> None:
    given = jax.jit(lambda x: x * 2, donate_argnums=0).lower(X)
    with jax.disable_jit():
        lowered = lower(given, (), {})

    assert lowered.donation.positions == frozenset([0])
    assert not lowered.notes


@pytest.mark.parametrize("setting", _TURNED_OFF)
@pytest.mark.parametrize("options", [{"donate_argnums": (1, 2)}, {"donate_argnames": ("p", "k")}])
def test_what_a_setting_ignores_is_known_by_leaf(options: dict[str, Any], setting: str) -> None:
    def function(n: int, p: Any, k: Any, other: Any) -> Any:
        return p["a"] * n + p["b"], k + other

    args = (2, {"a": X, "b": X + 1}, X, X)
    with _TURNED_OFF[setting](True):
        signature = lower(jax.jit(function, static_argnums=0, **options), args, {}).signature
    ignored = [leaf.path for leaf in signature.arguments if leaf.ignored == setting and not leaf.donated]

    # JAX keeps what it traced under the other setting.
    jax.clear_caches()
    without = lower(jax.jit(function, static_argnums=0, **options), args, {}).signature
    assert ignored == [leaf.path for leaf in without.arguments if leaf.donated] == ["p['a']", "p['b']", "k"]


def test_what_an_inner_jit_donates_is_known_by_leaf() -> None:
    innermost = jax.jit(lambda a, b: a + b, donate_argnums=1)
    inner = jax.jit(lambda p, q: innermost(q, p["w"]) * p["b"], donate_argnums=1)

    def outer(x: Any, p: Any, y: Any) -> Any:
        looped = jax.lax.scan(lambda c, _: (innermost(y, c), None), x, None, length=2)[0]
        return inner(p, x), looped

    params = {"b": X, "w": X + 1}
    signature = lower(outer, (X, params, X), {}).signature
    assert {leaf.path: leaf.ignored for leaf in signature.arguments} == {
        "x": "inner jit",
        "p['b']": None,
        "p['w']": "inner jit",
        "y": None,
    }
    donated = lower(jax.jit(outer, donate_argnames="x"), (X, params, X), {}).signature
    assert [leaf.path for leaf in donated.arguments if leaf.ignored] == ["p['w']"]


def test_a_whole_model_that_is_given_twice_or_donated_inside_is_told_in_short() -> None:
    params = {f"w{i:02}": jnp.full(2, i) for i in range(20)}

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, ema: Any) -> Any:
        return jax.tree.map(lambda p: p + 1, params), jax.tree.map(lambda p, e: p + e, params, ema)

    told = lower(step, (params, params), {}).warnings
    assert [note.kind for note in told] == ["same array"] * 4
    assert {leaf for note in told for leaf in note.leaves} == set(range(40))
    assert str(told[2]).startswith("params['w02'] and ema['w02'] are the same array")
    assert str(told[3]) == "So it is with 17 more arrays, the first of them params['w03'] and ema['w03']."

    (inner,) = lower(lambda p, e: step(p, e), (params, jax.tree.map(jnp.copy, params)), {}).notes
    assert " donates params['w00'], params['w01'], params['w02'] and 37 more: JAX ignores donation" in str(inner)
    assert inner.leaves == tuple(range(40))


def test_side_effects_are_told() -> None:
    kept: list[Any] = []

    def fn(x: Any) -> Any:
        kept.append(x * 2)
        jax.debug.print("{}", x)
        return x

    lowered = lower(fn, (X,), {})

    assert [note.kind for note in lowered.notes] == ["effect", "leak"]
    assert "jax.debug.print" in str(lowered.notes[0])
    assert "stored traced values" in str(lowered.notes[1])


def test_jaxs_other_warnings_are_caught_and_kept() -> None:
    def fn(x: Any) -> Any:
        warnings.warn("take care", stacklevel=1)
        return x

    assert [(note.kind, str(note)) for note in lower(fn, (X,), {}).warnings] == [("jax", "take care")]


def test_jaxs_donation_warning_is_told_even_where_jax_gave_it_before() -> None:
    fn = jax.jit(lambda x, y: x.sum() + y, donate_argnums=(0, 1))
    args = (jnp.ones((2, 2)), jnp.float32(1))
    with pytest.warns(UserWarning, match="Some donated buffers were not usable"):
        fn.lower(*args)

    for _ in range(2):
        (note,) = lower(fn, args, {}).warnings
        assert str(note).startswith("Some donated buffers were not usable: x float32[2,2].")
        assert note.leaves == (0,)


def test_sizes_under_a_mesh_are_global_and_per_device() -> None:
    mesh = jax.make_mesh((4, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("a", None))
    spec = jax.ShapeDtypeStruct((8, 6), jnp.bfloat16, sharding=split)

    lowered = lower(lambda x: (x + 1, x.sum()), (spec,), {})

    (leaf,) = lowered.signature.arguments
    assert (leaf.nbytes, leaf.shard_shape, leaf.nbytes_per_device) == (96, (2, 6), 24)
    assert leaf.sharding == "P('a', None) over (a: 4, b: 2)"
    chosen, scalar = lowered.signature.results
    assert (chosen.nbytes, chosen.shard_shape, chosen.nbytes_per_device) == (96, (None, None), None)
    assert (scalar.shard_shape, scalar.nbytes_per_device) == ((), 2)


def test_the_jaxpr_is_there_where_jax_gives_one() -> None:
    assert lower(jnp.sin, (X,), {}).jaxpr() == str(jax.jit(jnp.sin).trace(X).jaxpr)
    assert lower(jax.jit(jnp.sin).lower(X), (), {}).jaxpr() is None


def test_a_lowering_of_a_plain_function_is_the_lowering_of_its_jit() -> None:
    module = lower(step, ARGS, KWARGS).module

    assert str(module) == str(jax.jit(step).lower(*ARGS, **KWARGS).compiler_ir())


def raising(x: Any) -> Any:
    return x.reshape(7)


def branching(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def yielding(x: Any) -> Any:
    yield x


def deleted() -> Any:
    array = jnp.ones(3)
    array.delete()
    return array


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "message"),
    [
        (3, (), {}, r"^3 \(int\) is no function"),
        (jnp.ones((2, 2)), (), {}, r"\(ArrayImpl\) is no function"),
        ("step", (X,), {}, r"^'step' \(str\) is no function"),
        (yielding, (X,), {}, r"^yielding cannot be traced: TypeError: .*generator function"),
        (jax.jit(jnp.sin).trace(X), (X,), {}, "already holds its arguments"),
        (jax.jit(jnp.sin).lower(X), (), {"x": X}, "already holds its arguments"),
        (jax.jit(jnp.sin).lower(X).compile(), (), {}, "compiled function no longer holds its program"),
        (lambda: (), (), {}, "takes and returns no arrays"),
        (raising, (X,), {}, r"raising cannot be traced: TypeError: .*reshape.*\n.*forms.py:\d+: return x.reshape\(7\)"),
        (branching, (X,), {}, r"TracerBoolConversionError: .*\n.*return x if x.sum\(\) > 0 else -x\nUse jnp.where"),
        (jax.jit(branching), (X,), {}, r"TracerBoolConversionError"),
        (raising, (X, X), {}, r"takes 1 positional argument.*\nIt is called as raising\(x: "),
        (raising, (), {"y": X}, r"unexpected keyword argument 'y'"),
        (lambda x: x, (iter([X]),), {}, r"its argument x is a list_iterator, which is no array for JAX"),
        (lambda x, _: x, (X, (v for v in [X])), {}, r"its argument _ is a generator, which is no array for JAX"),
        (lambda x: x, ("text",), {}, r"its argument x is a str"),
        (lambda x, _: x, (X, {"k": deleted()}), {}, r"^_\['k'\]: this array has been deleted"),
    ],
)
def test_bad_input_is_one_clear_message(fn: Any, args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message) as raised:
        lower(fn, args, kwargs)

    assert len(str(raised.value)) < 800
    assert lower(jnp.sin, (X,), {}).donation is not None


def test_a_wrapper_that_holds_no_stage_is_refused() -> None:
    class Wrapper:
        def trace(self, x: Any) -> Any:
            return x

        def __call__(self, x: Any) -> Any:
            return x

    with pytest.raises(TraceError, match=r"holds no jax\.stages\.Traced or Lowered"):
        lower(Wrapper(), (X,), {})


def test_an_error_that_cannot_be_shown_is_told_all_the_same() -> None:
    class Unshown(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def broken(_: Any) -> Any:
        raise Unshown

    with pytest.raises(TraceError, match=r"broken cannot be traced: Unshown: \(its str\(\) raises RuntimeError\)"):
        lower(broken, (X,), {})


def test_an_object_that_cannot_be_shown_is_told_all_the_same() -> None:
    class Unshown:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    with pytest.raises(TraceError, match=r"\(its repr\(\) raises RuntimeError\) \(Unshown\) is no function"):
        lower(Unshown(), (X,), {})
