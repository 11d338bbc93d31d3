"""xDSL modules from text, and the real pass run by xDSL alone: what our outline is held to."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.bufferization import Bufferization, MaterializeInDestinationOp
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func, FuncOp
from xdsl.dialects.test import Test
from xdsl.ir import BlockArgument
from xdsl.parser import Parser
from xdsl.transforms.jax_use_donated_arguments import JaxUseDonatedArguments

from donation_inspector.common.signature import Donation, Leaf, Signature
from donation_inspector.ir.entry import entry_function, read_donation


def parse(text: str) -> ModuleOp:
    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, Bufferization, Test):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def parse_entry(text: str) -> tuple[FuncOp, Donation]:
    """The entry function, and the donation that stands there."""
    func = entry_function(parse(text))
    return func, read_donation(func)


def xdsl_pairs(module: ModuleOp) -> tuple[tuple[int, int], ...]:
    """(argument, result) as xDSL's own pass leaves them in a whole module, one-to-one. It changes the module."""
    JaxUseDonatedArguments().apply(Context(), module)
    func = entry_function(module)
    pairs: dict[int, int] = {}
    for block in func.body.blocks:
        assert block.last_op is not None
        for position, value in enumerate(block.last_op.operands):
            if isinstance(value.owner, MaterializeInDestinationOp):
                assert isinstance(value.owner.dest, BlockArgument)
                pairs.setdefault(value.owner.dest.index, position)
    return tuple(sorted(pairs.items(), key=lambda pair: pair[1]))


def named(arguments: str, results: str, sizes: tuple[dict[str, int], dict[str, int]] = ({}, {})) -> Signature:
    """Leaves of these names at positions 0, 1, …, with the sizes on one device that are given."""

    def leaves(names: str, known: dict[str, int]) -> tuple[Leaf, ...]:
        return tuple(
            Leaf(index, name, (2,), "float32", 8, (2,), known.get(name, 8), index, root=name)
            for index, name in enumerate(names.split())
        )

    return Signature(leaves(arguments, sizes[0]), leaves(results, sizes[1]))
