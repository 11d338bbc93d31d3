"""Which results are an argument's new value: never a gradient, and nothing where two could be meant."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from donation_inspector.frameworks.step import lower

PARAMS = {"b": jnp.ones(3), "w": jnp.ones((4, 3))}
ADAM = optax.adam(1e-3)
STATE = ADAM.init(PARAMS)
X = jnp.ones((2, 4))
OF_STATE = [f"state[0].{part}" for part in ("count", "mu['b']", "mu['w']", "nu['b']", "nu['w']")]
OF_PARAMS = ["params['b']", "params['w']"]


def loss(params: Any, x: Any) -> Any:
    return (x @ params["w"] + params["b"]).sum()


def train(params: Any, state: Any, x: Any) -> Any:
    value, gradients = jax.value_and_grad(loss)(params, x)
    changes, state = ADAM.update(gradients, state, params)
    params = optax.apply_updates(params, changes)
    return params, state, value


def train_to_dict(params: Any, state: Any, x: Any) -> Any:
    params, state, value = train(params, state, x)
    return {"loss": value, "a_state": state}


def train_elsewhere(params: Any, state: Any, x: Any) -> Any:
    return train(params, state, x)


def gradients_and_state(params: Any, state: Any, x: Any) -> Any:
    gradients = jax.grad(loss)(params, x)
    changes, state = ADAM.update(gradients, state, params)
    return changes, state


def state_alone(state: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf * 2, state)


def either(params: Any, state: Any, x: Any) -> Any:
    if x.shape[0] > 1:
        return params, state
    return state, params


def updates_of(fn: Any, *args: Any, **kwargs: Any) -> list[str | None]:
    return [leaf.updates for leaf in lower(fn, args, kwargs).signature.results]


def test_a_state_by_its_structure_and_parameters_by_their_name() -> None:
    assert updates_of(train, PARAMS, STATE, X) == [*OF_PARAMS, *OF_STATE, None]
    assert updates_of(jax.jit(train, donate_argnums=(0, 1)), PARAMS, x=X, state=STATE) == [*OF_PARAMS, *OF_STATE, None]


def test_paths_stay_the_places_in_what_is_returned() -> None:
    signature = lower(train, (PARAMS, STATE, X), {}).signature

    assert [leaf.path for leaf in signature.results][:3] == ["[0]['b']", "[0]['w']", "[1][0].count"]
    assert signature.results[2].title == "state[0].count, updated"
    assert signature.returned is not None


def inline(params: Any, state: Any, x: Any) -> Any:
    gradients = jax.grad(loss)(params, x)
    changes, state = ADAM.update(gradients, state, params)
    return optax.apply_updates(params, changes), state


def descended(params: Any, x: Any) -> Any:
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, x))


def descended_in_bfloat16(params: Any, x: Any) -> Any:
    return jax.jit(lambda p: jax.tree.map(lambda leaf: (leaf + x.sum()).astype(leaf.dtype), p))(params)


def swapped(params: Any, x: Any) -> Any:
    return {"b": params["b"] + x.sum(), "w": params["b"] + jnp.ones((4, 3))}


def apart(params: Any, x: Any) -> Any:
    return jax.tree.map(lambda p: p - x.mean(), params)


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (descended, OF_PARAMS),
        (descended_in_bfloat16, OF_PARAMS),
        (swapped, [None, None]),
        (apart, [None, None]),
        (lambda params, x: jax.tree.map(lambda p: p * x.sum(), params), [None, None]),
        (lambda params, x: jax.tree.map(lambda p: p + x.max() * p, params), OF_PARAMS),
        (lambda params, x: [jax.tree.map(lambda p: p + x.max(), params)] * 2, [None] * 4),
    ],
    ids=["descent", "in an inner jit", "another leaf", "a difference", "a product", "twice", "two results"],
)
def test_parameters_are_known_by_what_is_added_to_them(fn: Any, expected: list[str | None]) -> None:
    assert updates_of(fn, PARAMS, X) == expected


def test_an_array_that_something_is_added_to_says_nothing() -> None:
    assert updates_of(lambda x: x + x.sum(), X) == [None]
    assert updates_of(lambda a, b: jax.tree.map(jnp.add, a, b), PARAMS, PARAMS) == [None, None]


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (gradients_and_state, [None, None, *OF_STATE]),
        (train_elsewhere, [*OF_PARAMS, *OF_STATE, None]),
        (inline, [*OF_PARAMS, *OF_STATE]),
        (train_to_dict, [*OF_STATE, None]),
        (either, [None, None, *OF_STATE]),
    ],
    ids=["gradients", "returned by a call", "in the return statement", "a dict", "two returns"],
)
def test_parameters_without_a_name_could_be_gradients(fn: Any, expected: list[str | None]) -> None:
    assert updates_of(fn, PARAMS, STATE, X) == expected


def test_a_result_that_is_the_whole_argument() -> None:
    assert updates_of(state_alone, STATE) == OF_STATE


def test_nothing_is_said_where_two_could_be_meant() -> None:
    assert updates_of(lambda a, b: jax.tree.map(jnp.add, a, b), STATE, STATE) == [None] * 5
    assert updates_of(lambda a: (a, a), STATE) == [None] * 10


def test_other_types_are_no_update() -> None:
    halved = jax.tree.map(lambda leaf: leaf.astype(jnp.float16), STATE)

    assert updates_of(lambda state: jax.tree.map(lambda leaf: leaf.astype(jnp.float16), state), STATE) == [None] * 5
    assert updates_of(state_alone, halved) == [None] * 5


def test_bare_arrays_by_their_name_alone() -> None:
    def swapped(m: Any, count: Any) -> Any:
        m = m * 2
        return count, m

    assert updates_of(swapped, X, X) == ["count", "m"]
    assert updates_of(lambda x: x + 1, jnp.ones(3, jnp.int32)) == [None]


def test_static_arguments_and_partials_shift_nothing() -> None:
    def scaled(times: int, state: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf * times, state)

    assert updates_of(jax.jit(scaled, static_argnums=0), 2, STATE) == OF_STATE
    bound = updates_of(functools.partial(scaled, 2), STATE)
    assert [path and path.partition("[")[2] for path in bound] == [path.partition("[")[2] for path in OF_STATE]


def test_a_source_that_python_warns_about_says_nothing_again(tmp_path: Path) -> None:
    source = tmp_path / "escaping.py"
    source.write_text('def step(m):\n    """A \\d."""\n    m = m * 2\n    return m\n')
    names: dict[str, Any] = {}
    with pytest.warns((DeprecationWarning, SyntaxWarning), match="invalid escape sequence"):
        exec(compile(source.read_text(), str(source), "exec"), names)

    assert updates_of(names["step"], X) == ["m"]


def test_a_structure_that_cannot_be_compared_is_no_update() -> None:
    @jax.tree_util.register_pytree_node_class
    class Aside:
        def __init__(self, array: Any, count: Any, aside: Any) -> None:
            self.array, self.count, self.aside = array, count, aside

        def tree_flatten(self) -> Any:
            return (self.array, self.count), self.aside

        @classmethod
        def tree_unflatten(cls, aside: Any, held: Any) -> Any:
            return cls(*held, aside)

    given = Aside(X, jnp.int32(1), np.ones(3))

    assert updates_of(lambda given: Aside(given.array, given.count, np.ones(3)), given) == [None, None]
