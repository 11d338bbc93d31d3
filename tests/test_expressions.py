"""What an expression stands for, read without running anything of the user's."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from donation_inspector.capture.expressions import NotReadable, items, keywords, read


class Pair(NamedTuple):
    first: Any
    second: Any


RAN: list[str] = []


def ran(what: str) -> int:
    RAN.append(what)
    return 0


class Computed:
    held = None

    @property
    def batch(self) -> int:
        return ran("computed")

    @functools.cached_property
    def kept(self) -> int:
        return ran("computed")

    def __getattr__(self, name: str) -> int:
        return ran(name)

    def __getitem__(self, index: int) -> int:
        return ran(str(index))

    def method(self) -> str:
        return "bound"


class Missing(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return ran(key)


SCOPE: dict[str, Any] = {
    "x": jnp.ones((4, 3)),
    "host": np.arange(12).reshape(3, 4),
    "params": {"w": [1, 2, 3], 5: "five"},
    "pair": Pair("a", {"b": 7}),
    "computed": Computed(),
    "missing": Missing(there=1),
    "made": defaultdict(lambda: ran("made")),
    "state": SimpleNamespace(step=3, nothing=None),
    "f": lambda *_: ran("f"),
    "i": 1,
}


def node(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


@pytest.mark.parametrize(
    "code",
    [
        "params",
        "params['w'][i]",
        "params['w'][-1]",
        "params['w'][:2]",
        "params[5]",
        "pair.second['b']",
        "pair[0]",
        "state.step",
        "state.nothing",
        "missing['there']",
        "(i, [state.step, 'text'], {'a': params})",
        "host[1, ::2].tolist",
        "-2.5",
        "1 << 4",
        "2 * i + state.step // 2",
        "computed.held",
    ],
)
def test_it_is_what_python_makes_of_it(code: str) -> None:
    found, wanted = read(node(code), SCOPE), eval(code, {}, SCOPE)
    assert (found() == wanted()) if callable(wanted) else found == wanted


def test_a_method_is_bound() -> None:
    assert read(node("computed.method"), SCOPE)() == "bound"


def test_an_item_of_an_array_on_the_device_is_a_shape() -> None:
    for code in ("x[0]", "x[:2]", "x[..., None]", "x[i, 1:]"):
        wanted = eval(code, {}, SCOPE)
        found = read(node(code), SCOPE)
        assert isinstance(found, jax.ShapeDtypeStruct)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)


@pytest.mark.parametrize(
    "code",
    [
        "jnp.ones(3)",
        "jnp.zeros((2, i), dtype=jnp.bfloat16)",
        "jnp.full_like(x, 2)",
        "jnp.asarray([1, 2])",
        "jax.random.normal(jax.random.key(0), (4, i))",
    ],
)
def test_what_jax_would_make_is_a_shape(code: str) -> None:
    wanted = eval(code, {"jax": jax, "jnp": jnp}, SCOPE)
    found = read(node(code), {**SCOPE, "jax": jax, "jnp": jnp})
    assert isinstance(found, jax.ShapeDtypeStruct)
    assert (found.shape, found.dtype, found.weak_type) == (wanted.shape, wanted.dtype, wanted.weak_type)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("f(x)", "f(x)"),
        ("jnp.load('file')", "jnp.load('file')"),
        ("jnp.ones(f(x))", "f(x)"),
        ("jnp.full(3, f)", "jnp.full(3, f)"),
        ("jnp.asarray(computed)", "jnp.asarray(computed)"),
        ("(i, f(x))", "f(x)"),
        ("x + 1", "x + 1"),
        ("computed * 2", "computed * 2"),
        ("1 / 0", "1 / 0"),
        ("absent", "absent"),
        ("computed.batch", "computed.batch"),
        ("computed.kept", "computed.kept"),
        ("computed.absent", "computed.absent"),
        ("computed[0]", "computed[0]"),
        ("missing['gone']", "missing['gone']"),
        ("made['gone']", "made['gone']"),
        ("params['gone']", "params['gone']"),
        ("params['w'][9]", "params['w'][9]"),
        ("x[x]", "x[x]"),
        ("lambda: i", "lambda: i"),
        ("[one for one in params]", "[one for one in params]"),
        ("{i: 1}", "{i: 1}"),
        ("{**params}", "{**params}"),
        ("-i", "-i"),
    ],
)
def test_what_would_have_to_be_run_is_not_read(code: str, part: str) -> None:
    with pytest.raises(NotReadable) as raised:
        read(node(code), {**SCOPE, "jnp": jnp})
    assert raised.value.code == part
    assert RAN == []


def test_arguments_are_laid_open() -> None:
    call = cast("ast.Call", node("f(i, *params['w'], *pair, a=i, **pair.second)"))
    assert items(call.args, SCOPE) == [1, 1, 2, 3, "a", {"b": 7}]
    assert keywords(call.keywords, SCOPE) == {"a": 1, "b": 7}
    for code in ("f(*x)", "f(**x)", "f(*f(1))"):
        unread = cast("ast.Call", node(code))
        with pytest.raises(NotReadable):
            [*items(unread.args, SCOPE), keywords(unread.keywords, SCOPE)]
