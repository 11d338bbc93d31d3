"""Programs that make XLA use every construct it lays out buffers for, each small enough to compile in a blink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

N = 128
MATRIX = jax.ShapeDtypeStruct((N, N), jnp.float32)
VECTOR = jax.ShapeDtypeStruct((N,), jnp.float32)
INTEGER = jax.ShapeDtypeStruct((), jnp.int32)


@dataclass(frozen=True)
class Source:
    """A function with its abstract arguments; compiled once with `donate`, once without."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    donate: tuple[int, ...] = (0,)
    jit: Mapping[str, Any] = field(default_factory=dict)


def gradient(w: Any, x: Any) -> Any:
    return jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w)


def sgd(w: Any, m: Any, x: Any) -> Any:
    m = 0.9 * m + gradient(w, x)
    return w - 0.1 * m, m


def elementwise(a: Any, b: Any) -> Any:
    return jnp.tanh(b) * 2, jnp.sin(a) + 1


def adam(p: Any, m: Any, v: Any, x: Any) -> Any:
    g = gradient(p, x)
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    return p - 0.1 * m / (jnp.sqrt(v) + 1e-8), m, v


def adam_swapped(p: Any, m: Any, v: Any, x: Any) -> Any:
    p, m, v = adam(p, m, v, x)
    return m, v, p


def scanned(w: Any, m: Any, x: Any) -> Any:
    def step(carry: Any, _: Any) -> Any:
        w, m = sgd(*carry, x)
        return (w, m), (w * w).sum()

    return lax.scan(step, (w, m), None, length=5)


def scan_stacks_rows(w: Any, rows: Any) -> Any:
    return lax.scan(lambda c, row: (jnp.tanh(c @ w + row), c), rows[0], rows)


def nested_scan(w: Any, x: Any) -> Any:
    def inner(c: Any, row: Any) -> Any:
        return jnp.tanh(c + row), (c * row).sum()

    def outer(c: Any, row: Any) -> Any:
        c, sums = lax.scan(inner, c, x)
        return c + row, sums

    return lax.scan(outer, w[0], w)


def gradient_of_scan(w: Any, x: Any) -> Any:
    return jax.grad(lambda w: lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=4)[0].sum())(w)


def rematerialized_scan(w: Any, x: Any) -> Any:
    step = jax.checkpoint(lambda c, w: jnp.tanh(c @ w) @ w)
    return jax.grad(lambda w: lax.scan(lambda c, _: (step(c, w), None), x, None, length=4)[0].sum())(w)


def while_of_cond(w: Any, m: Any, x: Any) -> Any:
    def body(carry: Any) -> Any:
        i, w, m = carry
        w, m = lax.cond(i % 2 == 0, lambda w, m: sgd(w, m, x), lambda w, m: (w * 0.99, m @ x), w, m)
        return i + 1, w, m

    return lax.while_loop(lambda carry: carry[0] < 4, body, (0, w, m))


def while_reads_in_condition(x: Any, tolerance: Any) -> Any:
    def body(carry: Any) -> Any:
        x, _ = carry
        new = 0.5 * (x + jnp.roll(x, 1, 0))
        return new, jnp.abs(new - x).max()

    return lax.while_loop(lambda carry: carry[1] > tolerance.max(), body, (x, jnp.float32(1)))


def while_swaps(a: Any, b: Any) -> Any:
    return lax.fori_loop(0, 5, lambda _, carry: (carry[1], carry[0] + 1), (a, b))


def while_carries_invariant(a: Any, b: Any) -> Any:
    def body(carry: Any) -> Any:
        i, a, b = carry
        return i + 1, jnp.sin(a @ b), b

    return lax.while_loop(lambda carry: carry[0] < 3, body, (0, a, b))


def two_whiles(a: Any, b: Any) -> Any:
    first = lax.fori_loop(0, 3, lambda _, c: jnp.tanh(c @ b), a)
    second = lax.fori_loop(0, 4, lambda _, c: jnp.sin(c @ a), b)
    return first + second, first @ second


def while_in_while(a: Any, b: Any) -> Any:
    def outer(i: Any, c: Any) -> Any:
        return lax.while_loop(lambda d: d.sum() < 3.0 + i, lambda d: jnp.tanh(d @ b) + 1, c)

    return lax.fori_loop(0, 3, outer, a)


def while_in_cond(i: Any, a: Any, b: Any) -> Any:
    def long(a: Any, b: Any) -> Any:
        return lax.fori_loop(0, 4, lambda _, c: jnp.tanh(c @ b), a)

    return lax.cond(i > 0, long, lambda a, b: a + b, a, b)


def cond_takes_through(i: Any, a: Any, b: Any) -> Any:
    return lax.cond(i > 0, lambda a, b: (a, b), lambda a, b: (b @ a, a), a, b)


def cond_in_cond(i: Any, a: Any, b: Any) -> Any:
    def inner(a: Any, b: Any) -> Any:
        return lax.cond(i > 5, lambda a, b: a @ b, lambda a, b: jnp.sin(b @ a), a, b)

    return lax.cond(i > 0, inner, lambda a, b: a - b, a, b)


def switch(i: Any, a: Any, b: Any) -> Any:
    branches = [lambda a, b: a @ b, lambda a, b: jnp.sin(a) @ jnp.cos(b), lambda *ab: ab[0], lambda a, b: b.T @ a]
    return lax.switch(i, branches, a, b), a.sum()


def sort_by_key(keys: Any, values: Any) -> Any:
    return lax.sort((keys, values), num_keys=1, dimension=0)


def sort_and_rank(a: Any) -> Any:
    order = jnp.argsort(a, axis=0)
    return jnp.take_along_axis(a, order, axis=0), order, jnp.median(a, axis=1)


def top_k(a: Any) -> Any:
    return lax.top_k(a, 5)


def reduce_window(a: Any) -> Any:
    pooled = lax.reduce_window(a, -jnp.inf, lax.max, (3, 3), (2, 2), "SAME")
    return pooled, jax.grad(lambda a: lax.reduce_window(a, 0.0, lax.add, (3, 3), (1, 1), "SAME").sum())(a)


def pooling_gradient(a: Any) -> Any:
    return jax.grad(lambda a: (lax.reduce_window(a, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2).sum())(a)


def reduce_several(a: Any, b: Any) -> Any:
    def smaller(x: Any, y: Any) -> Any:
        return jnp.minimum(x[0], y[0]), x[1] + y[1] * x[0]

    return lax.reduce((a, b), (jnp.float32(0), jnp.float32(0)), smaller, (0,))


def cumulative(a: Any) -> Any:
    return jnp.cumsum(a, axis=0), jnp.cumprod(a, axis=1), lax.cummax(a)


def associative_scan(a: Any) -> Any:
    return lax.associative_scan(lambda x, y: x * y + y, a)


def fft(a: Any) -> Any:
    return jnp.fft.ifft2(jnp.fft.fft2(a) * 2), jnp.fft.rfft(a)


def convolution(image: Any, kernel: Any) -> Any:
    return lax.conv_general_dilated(image[None, None], kernel[None, None, :3, :3], (1, 1), "SAME")


def positive(a: Any) -> Any:
    return a @ a.T + N * jnp.eye(N)


def cholesky(a: Any) -> Any:
    return jnp.linalg.cholesky(positive(a))


def decompositions(a: Any) -> Any:
    return jnp.linalg.qr(a), jnp.linalg.svd(a), jnp.linalg.eigh(a + a.T), jnp.linalg.slogdet(a)


def solve(a: Any, b: Any) -> Any:
    return jnp.linalg.solve(positive(a), b), jax.scipy.linalg.solve_triangular(a, b, lower=True)


def gradient_of_cholesky(a: Any) -> Any:
    return jax.grad(lambda a: cholesky(a).sum())(a)


def solve_in_loop(a: Any, b: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, c: jnp.linalg.solve(positive(a), c), b)


def random(key: Any, a: Any) -> Any:
    return a + jax.random.normal(jax.random.wrap_key_data(key), a.shape)


def random_bits(state: Any, a: Any) -> Any:
    state, bits = lax.rng_bit_generator(state, a.shape, dtype=jnp.uint32)
    return state, a * (bits % 7)


def update_slice(cache: Any, new: Any, i: Any) -> Any:
    cache = lax.dynamic_update_slice(cache, new[None], (i, 0))
    return cache, cache.sum(0)


def update_slice_keeps_old(cache: Any, new: Any, i: Any) -> Any:
    return lax.dynamic_update_slice(cache, new[None], (i, 0)), cache @ new


def scatter(table: Any, rows: Any, i: Any) -> Any:
    at = (i + jnp.arange(5)) % N
    return table.at[at].add(rows[:5]), table.at[at, at].set(1.0)


def gather(table: Any, i: Any) -> Any:
    return table[(i + jnp.arange(7)) % N], lax.dynamic_slice(table, (i, i), (8, 8))


def ring_buffer(buffer: Any, rows: Any) -> Any:
    def push(carry: Any, row: Any) -> Any:
        buffer, at = carry
        return (lax.dynamic_update_slice(buffer, row[None], (at, 0)), (at + 1) % N), buffer[at].sum()

    return lax.scan(push, (buffer, 0), rows)


def passes_through(a: Any, b: Any) -> Any:
    return a, b, a


def returns_one_value_twice(a: Any) -> Any:
    out = jnp.sin(a @ a)
    return out, out, {"sum": out.sum()}


def nothing_is_used(a: Any, b: Any) -> Any:
    del a, b
    return jnp.arange(N * N, dtype=jnp.float32).reshape(N, N)


def constants(a: Any) -> Any:
    table = jnp.asarray([[i * j % 17 for j in range(N)] for i in range(N)], jnp.float32)
    return a @ table, jnp.where(a > 0, table, a)


def callback(a: Any) -> Any:
    return jax.pure_callback(lambda x: x, a, a) + jnp.sin(a)


def barrier(a: Any, b: Any) -> Any:
    a, b = lax.optimization_barrier((jnp.sin(a), b))
    return lax.optimization_barrier(a @ b), a


def many_types(a: Any) -> Any:
    half = a.astype(jnp.bfloat16)
    return (
        (half @ half).astype(jnp.float16),
        (a > 0) & (a < 2),
        a.astype(jnp.int8),
        (a * 3).astype(jnp.uint16),
        (a + 1j) @ a,
        a.astype(jnp.float8_e4m3fn),
        (a * 5).astype(jnp.int4),
    )


def mapped(a: Any, b: Any) -> Any:
    return lax.map(lambda row: jnp.tanh(row @ b), a)


def batched_cond(a: Any, b: Any) -> Any:
    return jax.vmap(lambda x, y: lax.cond(x.sum() > 0, jnp.sin, lambda v: v * 2, y))(a, b)


def called(a: Any, b: Any) -> Any:
    layer = jax.jit(lambda x, w: jax.nn.gelu(x @ w), inline=False)
    return layer(layer(layer(a, b), b), b)


def empty(a: Any, nothing: Any) -> Any:
    return a @ a, jnp.concatenate([nothing, nothing]), jnp.zeros((0, 3))


def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.grad(lambda q, k, v: (jax.nn.softmax(q @ k.T / 8) @ v).sum(), argnums=(0, 1, 2))(q, k, v)


def sparse_solver(a: Any, b: Any) -> Any:
    return jax.scipy.sparse.linalg.cg(positive(a), b, maxiter=5)[0]


def _mesh() -> Mesh:
    return jax.make_mesh((8,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))


def _on_rows(array: Any) -> Any:
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=NamedSharding(_mesh(), PartitionSpec("d", None)))


def _whole(array: Any) -> Any:
    return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=NamedSharding(_mesh(), PartitionSpec()))


def collectives(a: Any) -> Any:
    @partial(jax.shard_map, mesh=_mesh(), in_specs=PartitionSpec("d", None), out_specs=PartitionSpec("d", None))
    def body(part: Any) -> Any:
        gathered = lax.all_gather(part, "d", tiled=True)
        scattered = lax.psum_scatter(gathered, "d", tiled=True)
        shifted = lax.ppermute(scattered, "d", [(i, (i + 1) % 8) for i in range(8)])
        turned = lax.all_to_all(shifted, "d", split_axis=1, concat_axis=0, tiled=True)
        return turned.reshape(part.shape) + lax.psum(part.sum(), "d") + lax.pmax(part, "d")

    return body(a)


def ring(a: Any, b: Any) -> Any:
    @partial(jax.shard_map, mesh=_mesh(), in_specs=PartitionSpec("d", None), out_specs=PartitionSpec("d", None))
    def body(part: Any, other: Any) -> Any:
        def step(_: Any, carry: Any) -> Any:
            part, total = carry
            return lax.ppermute(part, "d", [(i, (i + 1) % 8) for i in range(8)]), total + part * other

        return lax.fori_loop(0, 8, step, (part, jnp.zeros_like(other)))[1]

    return body(a, b)


KEY = jax.ShapeDtypeStruct((2,), jnp.uint32)
STATE = jax.ShapeDtypeStruct((4,), jnp.uint32)
NOTHING = jax.ShapeDtypeStruct((0, N), jnp.float32)


def sources() -> dict[str, Source]:
    """Every program by name; made on demand because a mesh needs devices."""
    one, two, three, four = ((MATRIX,) * n for n in range(1, 5))
    step = (0, 1)
    found = [
        Source(elementwise, two, step),
        Source(sgd, three, step),
        Source(adam, four, (0, 1, 2)),
        Source(adam_swapped, four, (0, 1, 2)),
        Source(scanned, three, step),
        Source(scan_stacks_rows, two),
        Source(nested_scan, two),
        Source(gradient_of_scan, two),
        Source(rematerialized_scan, two),
        Source(while_of_cond, three, step),
        Source(while_reads_in_condition, two),
        Source(while_swaps, two, step),
        Source(while_carries_invariant, two, step),
        Source(two_whiles, two, step),
        Source(while_in_while, two),
        Source(while_in_cond, (INTEGER, *two), (1, 2)),
        Source(cond_takes_through, (INTEGER, *two), (1, 2)),
        Source(cond_in_cond, (INTEGER, *two), (1,)),
        Source(switch, (INTEGER, *two), (1,)),
        Source(sort_by_key, two, step),
        Source(sort_and_rank, one),
        Source(top_k, one),
        Source(reduce_window, one),
        Source(pooling_gradient, one),
        Source(reduce_several, two),
        Source(cumulative, one),
        Source(associative_scan, one),
        Source(fft, one),
        Source(convolution, two),
        Source(cholesky, one),
        Source(decompositions, one),
        Source(solve, two, (1,)),
        Source(gradient_of_cholesky, one),
        Source(solve_in_loop, two, (1,)),
        Source(random, (KEY, MATRIX), (1,)),
        Source(random_bits, (STATE, MATRIX), step),
        Source(update_slice, (MATRIX, VECTOR, INTEGER)),
        Source(update_slice_keeps_old, (MATRIX, VECTOR, INTEGER)),
        Source(scatter, (MATRIX, MATRIX, INTEGER)),
        Source(gather, (MATRIX, INTEGER)),
        Source(ring_buffer, two),
        Source(passes_through, two, step),
        Source(returns_one_value_twice, one),
        Source(nothing_is_used, two, step, {"keep_unused": True}),
        Source(constants, one),
        Source(callback, one),
        Source(barrier, two),
        Source(many_types, one),
        Source(mapped, two),
        Source(batched_cond, two),
        Source(called, two),
        Source(empty, (MATRIX, NOTHING), step),
        Source(attention, three, (0, 1, 2)),
        Source(sparse_solver, (MATRIX, VECTOR), (1,)),
        Source(collectives, (_on_rows(MATRIX),)),
        Source(ring, (_on_rows(MATRIX), _on_rows(MATRIX)), step),
        Source(sgd, (_whole(MATRIX), _whole(MATRIX), _on_rows(MATRIX)), step),
        Source(scanned, (_on_rows(MATRIX), _on_rows(MATRIX), _whole(MATRIX)), step),
    ]
    named: dict[str, Source] = {}
    for source in found:
        name = source.fn.__name__
        named[f"{name}_sharded" if name in named else name] = source
    return named
