"""The code that is handed over runs, and the program that it makes has the pairs it was asked for."""

from __future__ import annotations

import functools
import re
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import donation_inspector as di
from donation_inspector.advice.donation_code import code_for
from donation_inspector.frameworks.call_site import CallSite
from donation_inspector.program.origins import FromFunction
from donation_inspector.program.subject import Subject

Tree = Any
NATURAL = {0: 4, 1: 5, 2: 0, 3: 1, 4: 2, 5: 3}
IN_ORDER = {i: i for i in range(6)}


def adam(p: Tree, m: Tree, v: Tree, g: Tree, n: int = 1) -> Tree:
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g * n, m, g)
    v = jax.tree.map(lambda v, g: 0.9 * v + 0.1 * g * g, v, g)
    return m, v, jax.tree.map(lambda p, m, v: p - m / (jnp.sqrt(v) + 1e-8), p, m, v)


def tree() -> Tree:
    return {"b": jax.ShapeDtypeStruct((4,), jnp.float32), "w": jax.ShapeDtypeStruct((4, 4), jnp.float32)}


TREES = (tree(), tree(), tree(), tree())


def code(
    fn: Any,
    pairs: dict[int, int],
    *args: Any,
    donated: frozenset[int] | None = None,
    site: CallSite | None = None,
) -> str:
    there = CallSite({getattr(fn, "__name__", "step"): fn}) if site is None else site
    subject = Subject(FromFunction(fn, args, {}, there))
    return code_for(subject, frozenset(pairs) if donated is None else donated, pairs)


def made(text: str, fn: Any, *args: Any, name: str = "adam") -> dict[int, int]:
    """The pairs in the lowered program of what `name` is once the text has run."""
    scope: dict[str, Any] = {name: fn, "jax": jax, "nnx": nnx, "eqx": eqx, "functools": functools, "di": di}
    exec(text, scope)
    return pairs_in(di.inspect(scope[name], *args))


def pairs_in(inspection: di.Inspection) -> dict[int, int]:
    return {one.index: one.result for one in inspection.arguments if one.result is not None}


def by_path(inspection: di.Inspection) -> dict[str, str]:
    """The pairs by path: equinox hands what is donated over first."""
    results = inspection.results
    return {inspection.arguments[a].path: results[r].path for a, r in pairs_in(inspection).items()}


@pytest.mark.parametrize(
    ("fn", "args"),
    [(adam, TREES), (jax.jit(adam), TREES), (jax.jit(adam, static_argnums=4), (*TREES, 3)),
     (jax.jit(adam, donate_argnums=(0, 3)), TREES)],
)  # fmt: skip
@pytest.mark.parametrize("pairs", [NATURAL, IN_ORDER, {0: 0, 1: 1}, {1: 5, 3: 1}, {0: 2, 2: 0, 3: 1}])
def test_the_lines_make_the_pairs(fn: Any, args: tuple[Any, ...], pairs: dict[int, int]) -> None:
    assert made(code(fn, pairs, *args), fn, *args) == pairs


def test_whole_arguments_in_jaxs_own_order_need_jax_alone() -> None:
    assert code(adam, IN_ORDER, *TREES) == 'adam = jax.jit(adam, donate_argnames=("p", "m", "v"))'
    # What no result takes over makes no difference.
    assert code(adam, IN_ORDER, *TREES, donated=frozenset(range(8))) == code(adam, IN_ORDER, *TREES)


def test_another_order_of_the_results_is_told_where_it_makes_the_pairs() -> None:
    text = code(adam, NATURAL, *TREES)
    assert "where adam returns its results in the order [2], [0], [1]" in text
    assert text.endswith('adam = di.jit(adam, pairs={"p": "[2]", "m": "[0]", "v": "[1]"})')
    line = re.search(r"^#     (adam = jax.*)$", text, re.MULTILINE).group(1)

    def reordered(p: Tree, m: Tree, v: Tree, g: Tree) -> Tree:
        returned = adam(p, m, v, g)
        return returned[2], returned[0], returned[1]

    assert made(line, reordered, *TREES) == IN_ORDER
    # No order of the three makes these.
    assert "returns its results" not in code(adam, {0: 4, 1: 1, 2: 0, 3: 5}, *TREES)


def test_other_pairs_of_di_jit_replace_its_own() -> None:
    fn = di.jit(adam, pairs=NATURAL)
    assert made(code(fn, IN_ORDER, *TREES), fn, *TREES) == IN_ORDER
    swapped = {0: 4, 1: 5, 2: 2, 3: 3, 4: 0, 5: 1}
    assert made(code(fn, swapped, *TREES), fn, *TREES) == swapped


@pytest.mark.parametrize(
    ("fn", "pairs", "said"),
    [
        (jax.jit(adam, donate_argnums=(0, 1, 2)), IN_ORDER, "adam already donates p, m, v"),
        (adam, {}, "no donation makes the program smaller"),
        (di.jit(adam, pairs=NATURAL), NATURAL, "adam already donates p, m, v"),
    ],
)
def test_where_nothing_is_to_change_a_comment_says_so(fn: Any, pairs: dict[int, int], said: str) -> None:
    text = code(fn, pairs, *TREES)
    assert text.startswith("# Nothing to change: ")
    assert said in text
    assert "\n" not in text


def test_to_donate_nothing_any_more() -> None:
    fn = jax.jit(adam, donate_argnums=0)
    assert made(code(fn, {}, *TREES), fn, *TREES) == {}


def positional(p: Any, q: Any, /) -> Any:
    return p + 1, q + 1


def test_arguments_that_have_a_number_alone() -> None:
    x = jax.ShapeDtypeStruct((8,), jnp.float32)
    text = code(positional, {1: 0}, x, x)
    assert text == "positional = jax.jit(positional, donate_argnums=(1,))"
    assert made(text, positional, x, x, name="positional") == {1: 0}
    text = code(starred, {1: 1}, x, x, x)
    assert text == "starred = jax.jit(starred, donate_argnums=(1,))"
    assert made(text, starred, x, x, x, name="starred") == {1: 1}


def starred(a: Any, *bs: Any) -> Any:
    return a.sum(), bs[0] * 2, bs[1].sum()


class Trainer:
    def step(self, p: Tree, m: Tree, v: Tree, g: Tree) -> Tree:
        return adam(p, m, v, g)


@pytest.mark.parametrize("pairs", [NATURAL, IN_ORDER])
@pytest.mark.parametrize("jitted", [False, True])
def test_a_method_is_told_what_to_stand_above_its_def(pairs: dict[int, int], jitted: bool) -> None:
    class Own(Trainer):
        step = jax.jit(Trainer.step, static_argnums=0) if jitted else Trainer.step

    site = CallSite()  # one that is nowhere to be assigned to
    text = code(Own().step, pairs, *TREES, site=site)
    assert "Own.step is a method, which no assignment replaces" in text
    assert all(line.startswith("#") for line in text.splitlines())
    decorator = re.findall(r"^#     @(.*)$", text, re.MULTILINE)[-1]
    Own.step = eval(decorator, {"functools": functools, "jax": jax, "di": di})(Trainer.step)
    assert pairs_in(di.inspect(Own().step, *TREES)) == pairs


@pytest.mark.parametrize("fn", [functools.partial(adam, n=2), lambda p, m, v, g: adam(p, m, v, g)])
def test_what_has_no_name_is_told_where_it_is_made(fn: Any) -> None:
    text = code(fn, NATURAL, *TREES)
    assert "no name that an assignment could replace" in text
    partial = re.findall(r"^#     (functools.*)$", text, re.MULTILINE)[-1]
    assert pairs_in(di.inspect(eval(partial, {"functools": functools, "di": di})(fn), *TREES)) == NATURAL


def test_a_jit_with_shardings_of_its_own_is_not_wrapped_in_another() -> None:
    mesh = jax.make_mesh((8,), ("x",))
    over = NamedSharding(mesh, P())
    fn = jax.jit(adam, out_shardings=over)
    text = code(fn, IN_ORDER, *TREES)
    assert text.splitlines()[0].startswith("# The jit of adam has options that another one around it would not have")
    told = re.search(r"^#     (donate.*)$", text, re.MULTILINE).group(1)
    donating = eval(f"functools.partial(jax.jit, {told})", {"functools": functools, "jax": jax})
    assert pairs_in(di.inspect(donating(adam, out_shardings=over), *TREES)) == IN_ORDER


# ---- equinox, nnx, files


def descend(model: Tree, state: Tree, x: Any) -> Tree:
    moved = jax.tree.map(lambda w: w * x.sum(), model)
    return jax.tree.map(lambda w, d: w - d, model, moved), jax.tree.map(lambda s, d: s + d, state, moved)


@pytest.mark.parametrize(
    ("paths", "word"), [(("model", "state"), "all"), (("state",), "all-except-first"), (("model",), None)]
)
@pytest.mark.parametrize("donates", ["none", "warn"])
def test_equinox_is_told_in_its_own_words(paths: tuple[str, ...], word: str | None, donates: Any) -> None:
    step, args = eqx.filter_jit(descend, donate=donates), (tree(), tree(), jax.ShapeDtypeStruct((3,), jnp.float32))
    wanted = di.inspect(eqx.filter_jit(descend), *args).donate(*paths)
    pairs = pairs_in(wanted)
    text = code(step, pairs, *args)
    if donates == "warn" and word == "all":
        assert text.startswith("# Nothing to change")
    elif word is not None:
        assert text.splitlines() == [
            "# x: donated with the rest, and alive afterwards, as no result fits.",
            f'descend = eqx.filter_jit(descend.__wrapped__, donate="{word}")',
        ]
        scope: dict[str, Any] = {"descend": step, "eqx": eqx}
        exec(text, scope)
        assert by_path(di.inspect(scope["descend"], *args)) == by_path(wanted)
        if word == "all":
            # model to the second result of the two, state to the first.
            text = code(step, dict(zip(pairs, (3, 4, 1, 2), strict=True)), *args)
            assert "where descend returns its results in the order [1], [0]:" in text
            text = code(step, dict(zip(pairs, (3, 2, 1, 4), strict=True)), *args)
            assert text.startswith("# eqx.filter_jit pairs what it donates in its order, and cannot")
    else:
        assert "put what is kept into the first argument, as a tuple (state, x,)" in text


@nnx.jit
def shift(model: nnx.Linear, x: Any) -> Any:
    model.kernel[...] += x.sum()
    return x.sum()


def test_nnx_keeps_its_own_jit() -> None:
    model, x = nnx.Linear(4, 4, rngs=nnx.Rngs(0)), jnp.ones(3)
    wanted = di.inspect(shift, model, x).donate("model")
    pairs = pairs_in(wanted)
    text = code(shift, pairs, model, x)
    assert text == 'shift = nnx.jit(shift.__wrapped__, donate_argnames=("model",))'
    assert made(text, shift, model, x, name="shift") == pairs != {}


def test_nnx_cannot_be_told_other_pairs() -> None:
    @nnx.jit
    def both(one: nnx.Linear, other: nnx.Linear) -> None:
        one.kernel[...] += 1.0
        other.kernel[...] += 1.0

    models = [nnx.Linear(4, 4, use_bias=False, rngs=nnx.Rngs(0)) for _ in range(2)]
    natural = di.inspect(both, *models).donate("one", "other")
    pairs = pairs_in(natural)
    (a, b), (r, s) = pairs.keys(), pairs.values()
    text = code(both, {a: s, b: r}, *models)
    assert text.splitlines()[0].startswith("# nnx.jit pairs what the step changes in its own order")
    assert text.splitlines()[-1] == 'both = nnx.jit(both.__wrapped__, donate_argnames=("one", "other"))'


def test_nnx_cannot_leave_out_a_part_of_an_argument() -> None:
    model, x = nnx.Linear(4, 4, rngs=nnx.Rngs(0)), jnp.ones(3)

    @nnx.jit
    def moved(model: nnx.Linear, x: Any) -> None:
        model.kernel[...] += x.sum()
        model.bias[...] += x.sum()

    pairs = pairs_in(di.inspect(moved, model, x).donate("model.kernel"))
    text = code(moved, pairs, model, x)
    assert text.splitlines() == [
        "# nnx.jit donates whole arguments, and not all of one but model.bias. The nearest to it here:",
        'moved = nnx.jit(moved.__wrapped__, donate_argnames=("model",))',
    ]


def test_a_file_has_no_call_and_a_saved_function_still_has_its_own(tmp_path: Any) -> None:
    jitted = jax.jit(adam)
    subject = Subject(FromFunction(jitted, TREES, {}, CallSite({"adam": jitted})))
    di.Inspection(subject).save(tmp_path / "adam.di")
    loaded = di.load(tmp_path / "adam.di")
    expected = code(jitted, NATURAL, *TREES)
    assert code_for(loaded._subject, frozenset(NATURAL), NATURAL) == expected
    text = code_for(di.inspect_ir(jax.jit(adam).lower(*TREES).as_text())._subject, frozenset(NATURAL), NATURAL)
    assert text.startswith("# A file has no call to rewrite")
    assert all(line.startswith("#") for line in text.splitlines())


def test_many_pairs_are_one_to_a_line_and_paths_with_quotes_stay_paths() -> None:
    def both(p: Tree, q: Tree) -> Tree:
        return jax.tree.map(jnp.sin, q), jax.tree.map(jnp.cos, p)

    names = [*(f"layer {i}" for i in range(6)), "it's", 'a "b"', "c\\d"]
    trees = [{name: jax.ShapeDtypeStruct((4,), np.float32) for name in names} for _ in range(2)]
    pairs = {i: 17 - i for i in range(9)}
    text = code(both, pairs, *trees)
    assert text.count("\n    ") == 9
    assert made(text, both, *trees, name="both") == pairs
