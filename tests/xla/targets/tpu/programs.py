"""What XLA does on a TPU and nowhere else: fetch ahead into VMEM, run collectives beside other instructions."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from xla.hlo.programs import Source


def flat() -> Mesh:
    return jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


def square() -> Mesh:
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))


def array(*shape: int, dtype: Any = jnp.float32, on: Mesh | None = None, spec: Any = None) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=None if on is None else NamedSharding(on, spec))


def matmul_around_the_ring(x: Any, w: Any) -> Any:
    """Each device multiplies what it has while the next part is on its way."""

    @partial(jax.shard_map, mesh=flat(), in_specs=(P("d", None), P(None, "d")), out_specs=P(None, "d"))
    def body(x: Any, w: Any) -> Any:
        def step(i: Any, carry: Any) -> Any:
            x, out = carry
            coming = lax.ppermute(x, "d", [(k, (k + 1) % 8) for k in range(8)])
            row = ((lax.axis_index("d") - i) % 8) * x.shape[0]
            return coming, lax.dynamic_update_slice(out, x @ w, (row, 0))

        out = lax.pcast(jnp.zeros((x.shape[0] * 8, w.shape[1])), "d", to="varying")
        return lax.fori_loop(0, 8, step, (x, out))[1]

    return body(x, w)


def turned(x: Any) -> Any:
    @partial(jax.shard_map, mesh=flat(), in_specs=P("d", None), out_specs=P("d", None))
    def body(x: Any) -> Any:
        there = lax.all_to_all(x, "d", split_axis=1, concat_axis=0, tiled=True)
        return lax.all_to_all(jnp.tanh(there), "d", split_axis=0, concat_axis=1, tiled=True) + (x @ x.T).sum()

    return body(x)


def summed(x: Any, y: Any) -> Any:
    @partial(jax.shard_map, mesh=flat(), in_specs=(P("d", None), P("d", None)), out_specs=(P(), P("d", None)))
    def body(x: Any, y: Any) -> Any:
        both = lax.psum((x, y), "d")
        return both[0] + both[1], jnp.tanh(x @ y.T @ x)

    return body(x, y)


def gathered(x: Any, w: Any) -> Any:
    return jnp.tanh(jnp.tanh(x @ w) @ w.T)


def scan_of_gathered(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x, w)[0]


def sharded_gradient(w: Any, x: Any) -> Any:
    return w - jax.grad(lambda w: (scan_of_gathered(x, w) ** 2).sum())(w)


def loop_on_a_mesh(w: Any, x: Any) -> Any:
    return lax.fori_loop(0, 5, lambda _, c: jnp.tanh(c @ w) @ w.T, x)


def kernel(x: Any, y: Any) -> Any:
    """A Pallas kernel that writes into its operand."""

    def body(x: Any, y: Any, out: Any) -> None:
        out[...] = x[...] * 2 + y[...]

    block = pl.BlockSpec((256, 512), lambda i: (i, 0))
    call: Any = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(2,),
        in_specs=[block, block],
        out_specs=block,
        input_output_aliases={0: 0},
    )
    return call(jnp.sin(x), y) + 1, y


def kernel_in_loop(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, c: kernel(c, y)[0], x)


def fetched_ahead(x: Any, w: Any) -> Any:
    for i in range(4):
        x = jnp.tanh(x @ w[i])
    return x


def fetched_ahead_in_scan(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x, w)[0]


def kept_on_the_host(x: Any, y: Any) -> Any:
    host = jax.device_put(jnp.sin(x @ y), jax.memory.Space.Host)
    z = jnp.tanh(y @ y) @ y
    return jax.device_put(host, jax.memory.Space.Device) @ z


def largest(x: Any) -> Any:
    return lax.approx_max_k(x, 16)


def embedding(table: Any, i: Any) -> Any:
    return table.at[i].add(1.0), table[i]


def sources() -> dict[str, Source]:
    """Every program by name; made on demand because a mesh needs devices."""
    wide = array(1024, 1024, on=flat(), spec=P("d", None))
    layers = array(4, 1024, 1024, on=flat(), spec=P(None, "d", None))
    found = [
        Source(matmul_around_the_ring, (wide, array(1024, 1024, on=flat(), spec=P(None, "d")))),
        Source(turned, (wide,)),
        Source(summed, (array(1024, 512, on=flat(), spec=P("d", None)),) * 2),
        Source(gathered, (wide, array(1024, 1024, on=flat(), spec=P("d", None)))),
        Source(scan_of_gathered, (wide, layers)),
        Source(sharded_gradient, (layers, wide)),
        Source(
            loop_on_a_mesh,
            (array(1024, 1024, on=square(), spec=P("x", "y")), array(1024, 1024, on=square(), spec=P("x", None))),
            (1,),
        ),
        Source(kernel, (array(512, 512),) * 2),
        Source(kernel_in_loop, (array(512, 512),) * 2),
        Source(fetched_ahead, (array(256, 1024), array(4, 1024, 1024))),
        Source(fetched_ahead_in_scan, (array(256, 1024), array(4, 1024, 1024))),
        Source(kept_on_the_host, (array(1024, 1024),) * 2),
        Source(largest, (array(64, 10_000),), ()),
        Source(embedding, (array(5000, 256), array(512, dtype=jnp.int32))),
    ]
    return {source.fn.__name__: source for source in found}
