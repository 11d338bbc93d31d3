"""Runs passes: the real `jax-use-donated-arguments` at every click, another pipeline on a copy of the whole module."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.transforms.jax_use_donated_arguments import JaxUseDonatedArguments
from xdsl.universe import Universe
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from donation_inspector.common.signature import Donation
from donation_inspector.errors import PassError
from donation_inspector.ir.dialect import make_context
from donation_inspector.ir.entry import entry_function
from donation_inspector.passes.effect import Effect
from donation_inspector.passes.flags import set_donation
from donation_inspector.passes.materialize_to_aliasing_output import MaterializeToAliasingOutput
from donation_inspector.passes.module_effect import read_module_effect
from donation_inspector.passes.outline import outline
from donation_inspector.passes.stages import PassRun, run_pass, run_passes


def apply_default(func: FuncOp, donation: Donation) -> Effect:
    """What `jax-use-donated-arguments` makes of the module whose entry function is `func`, donated as `donation` says.

    The installed xDSL's own pass runs, on an outline of the module: each function that it may rewrite keeps its
    signature, attributes and return, while one opaque operation stands for all that is computed. The pass looks at
    nothing else, so it decides the same, at a cost that does not grow with the program. Nothing is changed.

    Raises PassError when the pass fails.
    """
    # two outlines: xDSL's clone costs the square of a block's arguments
    before, after = outline(func), outline(func)
    for module in (before, after):
        set_donation(entry_function(module), donation)
    run_pass(JaxUseDonatedArguments(), make_context(), after)
    return read_module_effect(before, after)


class PipelineRun(NamedTuple):
    """The module after a pipeline, what that did to its entry function, and what each pass did."""

    module: ModuleOp
    effect: Effect
    passes: Sequence[PassRun]


def apply_pipeline(module: ModuleOp, donation: Donation, pipeline: str | Sequence[ModulePass]) -> PipelineRun:
    """`pipeline` on a copy of the whole module, donated as `donation` says.

    It is written as for `xdsl-opt -p`, or given as passes. The effect is read before any
    `materialize-to-aliasing-output` at the end, which only writes the same decision in another way.

    Raises PassError for a pass that does not exist or does not take its options, one that fails, and one that leaves a
    module that does not verify.
    """
    passes = parse(pipeline) if isinstance(pipeline, str) else tuple(pipeline)
    deciding = len(passes)
    while deciding and isinstance(passes[deciding - 1], MaterializeToAliasingOutput):
        deciding -= 1
    before = module.clone()
    set_donation(entry_function(before), donation)
    runs = run_passes(passes, _context(), before)
    modules = [before, *(run.after for run in runs)]
    return PipelineRun(modules[-1], read_module_effect(before, modules[deciding]), runs)


def parse(pipeline: str) -> tuple[ModulePass, ...]:
    """The passes of a pipeline as for `xdsl-opt -p`: names with commas between, options as `name{option=value}`.

    Raises PassError when it does not parse, names a pass that does not exist, or gives one options that it lacks.
    """
    try:
        specs = tuple(parse_pipeline(pipeline))
    except ArgSpecParseError as error:
        raise PassError(f"The pipeline {pipeline!r} cannot be read: {error}") from error
    if not specs:
        raise PassError("The pipeline is empty. Name at least one pass, such as 'jax-use-donated-arguments'.")
    known = available()
    passes: list[ModulePass] = []
    for spec in specs:
        if spec.name not in known:
            raise PassError(f"There is no pass '{spec.name}'. {_near(spec.name, known)}")
        pass_class = known[spec.name]()
        try:
            passes.append(pass_class.from_spec(spec))
        except ValueError as error:
            raise PassError(f"The options of '{spec.name}' are wrong: {error}.") from error
    return tuple(passes)


def available() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass that `xdsl-opt` knows here, by name: xDSL's own, ours and those of other installed packages."""
    return dict(Universe.get_multiverse().all_passes)


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.65)
    if not near:
        return "`xdsl-opt --help` lists those there are."
    return f"Did you mean {' or '.join(repr(found) for found in near)}?"


def _context() -> Context:
    context = make_context()
    for name, dialect in Universe.get_multiverse().all_dialects.items():
        if name not in context.registered_dialect_names:
            context.register_dialect(name, dialect)
    return context
