"""What is advised about shardings is followed, and JAX lowers again: it must pair what the advice says.

The oracle is `tf.aliasing_output` in JAX's own second lowering, whose `out_shardings` are the code in the sentence.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from donation_inspector.analysis.donation import Argument, Result, Verdict, verdicts
from donation_inspector.analysis.out_shardings import advise, left_to_xla, out_shardings_code
from donation_inspector.common.signature import Leaf, Signature
from donation_inspector.xla.attributes import read_donation
from donation_inspector.xla.leaves import mesh_text, sharding_text, spec_text
from donation_inspector.xla.lowering import Lowered, lower

DEVICES = np.array(jax.devices()[:8])
GRID = Mesh(DEVICES.reshape(4, 2), ("x", "y"))
ROW = Mesh(DEVICES, ("d",))
EXPLICIT = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

_CODE = re.compile(r"jax\.jit\(\.\.\., out_shardings=(.+)\) pairs")


class Case(NamedTuple):
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    mesh: Mesh = GRID


def array(*spec: Any, shape: tuple[int, ...] = (16, 8), mesh: Any = GRID, memory: str | None = None) -> Any:
    sharding = NamedSharding(mesh, P(*spec)) if memory is None else NamedSharding(mesh, P(*spec), memory_kind=memory)
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)


def on(*spec: Any) -> NamedSharding:
    return NamedSharding(GRID, P(*spec))


def lowered(case: Case, **other: Any) -> Lowered:
    return lower(jax.jit(case.function, **{**case.options, **other}), case.arguments, {})


def decided(of: Lowered) -> tuple[tuple[Argument, ...], tuple[Result, ...]]:
    donated = frozenset(leaf.index for leaf in of.signature.arguments if leaf.donated)
    return verdicts(of.signature, of.donation, donated=donated, warned=donated)


def follow(case: Case, reason: str) -> dict[int, int]:
    """The pairs that JAX makes with the `out_shardings` of a sentence."""
    found = _CODE.search(reason)
    assert found is not None, reason
    return follow_code(case, found.group(1))


def follow_code(case: Case, code: str) -> dict[int, int]:
    names = {"NamedSharding": NamedSharding, "P": P, "mesh": case.mesh, "mesh_x4_y2": GRID, "mesh_d8": ROW}
    options = {**case.options, "out_shardings": eval(code, names)}
    return dict(read_donation(jax.jit(case.function, **options).lower(*case.arguments).compiler_ir()).aliases)


def unspecified(w: Any, v: Any) -> Any:
    return w + v.sum(), v * 2


FIRST = {"donate_argnums": 0}
BOTH = {"donate_argnums": (0, 1)}

HELPED: dict[str, tuple[Case, dict[int, int]]] = {
    "out_shardings unspecified": (Case(unspecified, (array("x", None), array(None, "y")), BOTH), {0: 0, 1: 1}),
    "results in another order": (
        Case(lambda w, v: (v * 2, w + 1), (array("x"), array("x", shape=(8, 8))), BOTH),
        {0: 1, 1: 0},
    ),
    "one of two is told": (
        Case(unspecified, (array("x"), array("x")), {**BOTH, "out_shardings": (on("x"), None)}),
        {0: 0, 1: 1},
    ),
    "the second waits for the first": (Case(unspecified, (array("x"), array("x")), BOTH), {0: 0, 1: 1}),
    "as many bytes, split otherwise": (
        Case(lambda w: w + 1, (array("x", shape=(16, 16)),), {**FIRST, "out_shardings": on(None, "x")}),
        {0: 0},
    ),
    "the result replicated": (Case(lambda w: w + 1, (array("x"),), {**FIRST, "out_shardings": on()}), {0: 0}),
    "the argument replicated": (Case(lambda w: w + 1, (array(),), {**FIRST, "out_shardings": on("x")}), {0: 0}),
    "the argument replicated, the result left": (Case(lambda w: w + 1, (array(),), FIRST), {0: 0}),
    "a result left to XLA stands before the one that fits": (
        Case(lambda w: (w + 1, w * 2), (array(),), {**FIRST, "out_shardings": (None, on())}),
        {0: 0},
    ),
    "constrained inside": (
        Case(lambda w: jax.lax.with_sharding_constraint(w + 1, on("x")), (array("x"),), FIRST),
        {0: 0},
    ),
    "two axes on one dimension": (Case(lambda w: w + 1, (array(("x", "y")),), FIRST), {0: 0}),
    "a dict in a tuple beside None": (
        Case(
            lambda p: ({"w": p["w"] * 2, "b": p["b"] + 1}, None, p["b"].sum()),
            ({"w": array("x"), "b": array()},),
            FIRST,
        ),
        {0: 0, 1: 1},
    ),
    "shard_map that gathers": (
        Case(
            jax.shard_map(
                lambda w: jax.lax.all_gather(w, "x", tiled=True),
                mesh=GRID,
                in_specs=P("x"),
                out_specs=P(),
                check_vma=False,
            ),
            (array("x"),),
            FIRST,
        ),
        {0: 0},
    ),
    "shard_map that keeps": (
        Case(jax.shard_map(lambda w: w + 1, mesh=GRID, in_specs=P("x"), out_specs=P("x")), (array("x"),), FIRST),
        {0: 0},
    ),
    "other names of axes": (Case(lambda w: w + 1, (array("d", mesh=ROW),), FIRST, ROW), {0: 0}),
    "two meshes": (
        Case(unspecified, (array("x"), array("d", mesh=ROW)), BOTH),
        {0: 0, 1: 1},
    ),
    "explicit axes": (
        Case(lambda w: w.T, (array("x", shape=(8, 8), mesh=EXPLICIT),), FIRST, EXPLICIT),
        {0: 0},
    ),
    "a scalar": (Case(lambda s, w: (s + 1, w * s), (array(shape=()), array("x")), BOTH), {0: 0, 1: 1}),
}


@pytest.mark.parametrize("name", HELPED)
def test_jax_pairs_what_the_sentence_advises(name: str) -> None:
    case, pairs = HELPED[name]
    before = lowered(case)
    arguments, _ = decided(before)
    waiting = [one for one in arguments if one.donated and one.verdict is not Verdict.ALIASED]
    assert waiting
    for argument in waiting:
        assert follow(case, argument.reason) == pairs
        assert argument.path in argument.reason
        assert str(argument.spec) in argument.reason
        assert "×".join(map(str, argument.shard_shape)) in argument.reason


def test_both_specs_and_one_devices_shapes_are_told() -> None:
    case, _ = HELPED["as many bytes, split otherwise"]
    ((argument,), (result,)) = decided(lowered(case))
    assert (argument.verdict, argument.spec, result.spec) == (Verdict.DONOR, "P('x')", "P(None, 'x')")
    assert argument.reason == (
        "left to XLA: w is float32[16,16], P('x'), 4×16 a device; the result is float32[16,16], P(None, 'x'), 16×4 a "
        "device: as many bytes, so XLA may use the buffer for it; if the result may be sharded like it, "
        "jax.jit(..., out_shardings=NamedSharding(mesh, P('x'))) pairs them"
    )


def test_one_spec_where_the_result_is_left_to_xla() -> None:
    case = Case(lambda w: (w + 1, w.sum()), (array("x", None),), FIRST)
    ((argument,), results) = decided(lowered(case))
    assert [result.spec for result in results] == [None, None]
    assert argument.reason == (
        "left to XLA: w is float32[16,8], P('x', None), 4×8 a device; result [0] has its sharding left to XLA, so JAX "
        "pairs nothing; jax.jit(..., out_shardings=(NamedSharding(mesh, P('x', None)), None)) pairs them"
    )


def test_the_meshes_are_told_apart() -> None:
    case, _ = HELPED["two meshes"]
    reason = decided(lowered(case))[0][1].reason
    assert "P('d') over (d: 8)" in reason
    assert "(NamedSharding(mesh_x4_y2, P('x')), NamedSharding(mesh_d8, P('d')))" in reason


NOTHING_HELPS: dict[str, tuple[Case, str]] = {
    "the only result is taken": (
        Case(lambda w, v: w + v, (array("x"), array("x")), {**BOTH, "out_shardings": on("x")}),
        "is taken by w",
    ),
    "another dtype": (Case(lambda w: w.astype(jnp.bfloat16), (array("x"),), FIRST), "differs in dtype"),
    "in host memory": (
        Case(lambda w: w + 1, (array("x", memory="pinned_host"),), FIRST),
        "P('x') in pinned_host, 4×8 a device",
    ),
    "in host memory beside another result left to XLA": (
        Case(lambda w: (w + 1, w.sum()), (array("x", memory="pinned_host"),), FIRST),
        "P('x') in pinned_host, 4×8 a device",
    ),
    "from host memory to the device": (
        Case(
            lambda w: jax.device_put(w, on("x")) + 1,
            (array("x", memory="pinned_host"),),
            {**FIRST, "out_shardings": NamedSharding(GRID, P("x"), memory_kind="device")},
        ),
        "w lies in pinned_host and the result in device memory",
    ),
    "the argument left to XLA too": (
        Case(lambda w, v: (w + 1, v), (jax.ShapeDtypeStruct((16, 8), jnp.float32), array("x", shape=(8, 8))), FIRST),
        "its sharding left to XLA, and so is that of result [0]",
    ),
}


@pytest.mark.parametrize("name", NOTHING_HELPS)
def test_no_code_where_none_is_known_to_help(name: str) -> None:
    case, told = NOTHING_HELPS[name]
    arguments, _ = decided(lowered(case))
    reasons = [one.reason for one in arguments if one.donated and one.verdict is not Verdict.ALIASED]
    assert reasons
    assert all(told in reason and "out_shardings=" not in reason for reason in reasons)


def test_a_constraint_inside_the_function_tells_jax_nothing() -> None:
    """The sentence names out_shardings alone, because this is so."""
    case, _ = HELPED["constrained inside"]
    assert not lowered(case).donation.aliases


def test_a_mesh_of_one_device_is_one_device() -> None:
    case = Case(lambda w: w + 1, (array("d", mesh=Mesh(DEVICES[:1], ("d",))),), FIRST)
    ((argument,), (result,)) = decided(lowered(case))
    assert (argument.verdict, argument.spec, argument.sharding, result.spec) == (Verdict.ALIASED, None, None, None)


def test_a_mesh_without_devices_is_named_like_any_other() -> None:
    abstract = NamedSharding(AbstractMesh((4, 2), ("x", "y")), P("x", None))
    concrete = on("x", None)
    assert (sharding_text(abstract), spec_text(abstract)) == (sharding_text(concrete), "P('x', None)")
    assert mesh_text(abstract) == "x: 4, y: 2"


def test_a_large_tree_names_the_sharding_of_each_result_alone() -> None:
    specs = [("x",), ("y",), (None, "x"), (None, "y"), ("x", "y"), ("y", "x"), ()]
    given = {f"w{i}": array(*spec) for i, spec in enumerate(specs)}
    case = Case(lambda p: ({k: v + 1 for k, v in p.items()}, 0.0), (given,), FIRST)
    before = lowered(case)
    arguments, _ = decided(before)
    assert arguments[3].reason.endswith(
        "; NamedSharding(mesh, P(None, 'y')) for result [0]['w3'] in jax.jit(..., out_shardings=...), with the like "
        "for 6 others, pairs them"
    )
    code = out_shardings_code(before.signature, advise(before.signature, frozenset(range(7))).given)
    assert follow_code(case, str(code)) == {i: i for i in range(7)}


def test_a_container_of_another_kind_has_no_code_but_where_all_of_it_is_alike() -> None:
    class Pair(NamedTuple):
        one: Any
        other: Any

    alike = Case(lambda p: (Pair(p.one + 1, p.other + 2), 0), (Pair(array("x"), array("x")),), FIRST)
    before = lowered(alike)
    assert before.signature.returned == "({0, 1}, 2)"
    assert follow(alike, decided(before)[0][0].reason) == {0: 0, 1: 1}
    mixed = Case(lambda p: (Pair(p.one + 1, p.other + 2), 0), (Pair(array("x"), array("y")),), FIRST)
    assert decided(lowered(mixed))[0][1].reason.endswith(
        "; NamedSharding(mesh, P('y')) for result [0].other in jax.jit(..., out_shardings=...), with the like for "
        "1 other, pairs them"
    )


def test_a_file_names_the_sharding_but_not_the_tree() -> None:
    signature = Signature(
        (Leaf(0, "w", (8,), "float32", 32, (4,), 16, 0, "P('d') over (d: 2)", True, "w", "P('d')", "d: 2"),),
        (Leaf(0, "out", (8,), "float32", 32, (None,), None, 0),),
    )
    advice = advise(signature, frozenset({0}))
    assert (advice.pairs, set(advice.given)) == ({0: 0}, {0})
    assert out_shardings_code(signature, advice.given) is None


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("seed", range(40))
def test_on_programs_made_at_random_every_advice_is_true(seed: int) -> None:
    """Shapes and specs from few, so that keys meet; results told, told otherwise, or left; some not donated."""
    rng = random.Random(seed)
    specs: list[tuple[Any, ...]] = [("x",), (None, "x"), ("x", "y"), (), (("x", "y"),)]
    shapes = [(16, 16), (8, 32), (32, 8)]
    arguments = {f"a{i}": array(*rng.choice(specs), shape=rng.choice(shapes)) for i in range(5)}
    back = [f"a{rng.randrange(5)}" for _ in range(4)]
    out = tuple(rng.choice([None, None, on(*rng.choice(specs))]) for _ in back)
    donated = tuple(name for name in arguments if rng.random() < 0.8)

    def function(**given: Any) -> Any:
        total = sum(jnp.sum(one) for one in given.values())
        return tuple(given[name] + total for name in back)

    def jitted(shardings: Any) -> Any:
        return jax.jit(function, donate_argnames=donated, out_shardings=shardings)

    before = lower(jitted(out), (), arguments)
    asked = frozenset(leaf.index for leaf in before.signature.arguments if leaf.donated)
    advice = advise(before.signature, asked)
    if not advice.given:
        positions = {leaf.index: leaf.position for leaf in before.signature.arguments}
        assert {positions[argument]: result for argument, result in advice.pairs.items()} == before.donation.aliases
        return
    code = out_shardings_code(before.signature, advice.given)
    names = {"NamedSharding": NamedSharding, "P": P, "mesh": GRID}
    module = jitted(eval(str(code), names)).lower(**arguments).compiler_ir()
    assert dict(read_donation(module).aliases) == advice.pairs
    assert all(argument.index in advice.pairs for argument in advice.given.values())


def test_the_returned_tree_is_a_literal_of_it() -> None:
    def function(w: Any) -> Any:
        return {"a": (w, [w + 1, None]), "b": (), "c": (w,)}

    tree = lower(function, (jnp.ones(2),), {}).signature.returned
    assert tree is not None
    structure = jax.tree.structure(jax.eval_shape(function, jnp.ones(2)))
    assert ast.literal_eval(tree) == jax.tree.unflatten(structure, range(structure.num_leaves))


def test_what_is_left_to_xla() -> None:
    told = Leaf(0, "w", (8,), "float32", 32, (4,), 16, 0, "P('d') over (d: 2)", spec="P('d')", mesh="d: 2")
    assert not left_to_xla(told)
    assert left_to_xla(Leaf(0, "w", (8,), "float32", 32, (None,), None, 0))
    open_ = Leaf(0, "w", (8,), "float32", 32, (4,), 16, 0, "P(…) over (d: 2)", spec="P(P.UNCONSTRAINED)", mesh="d: 2")
    assert left_to_xla(open_)
