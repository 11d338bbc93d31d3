"""Runs passes: the real `jax-use-donated-arguments` at every click, another pipeline on a copy of the whole module."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

from xdsl.context import Context
from xdsl.dialects.bufferization import MaterializeInDestinationOp
from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.transforms.jax_use_donated_arguments import JaxUseDonatedArguments
from xdsl.universe import Universe
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from donation_inspector.analysis.naming import operation_name
from donation_inspector.errors import PassError
from donation_inspector.ir.dialect import make_context
from donation_inspector.ir.entry import ALIAS, entry_function
from donation_inspector.passes.effect import Effect, read_effect
from donation_inspector.passes.flags import set_donation
from donation_inspector.passes.materialize_to_aliasing_output import MaterializeToAliasingOutput
from donation_inspector.signature import Donation

_OUTLINED = UnregisteredOp.with_name("donation_inspector.outlined")


def apply_default(func: FuncOp, donation: Donation) -> Effect:
    """What `jax-use-donated-arguments` makes of the module whose entry function is `func`, donated as `donation` says.

    The installed xDSL's own pass runs, on an outline of the module: each function that it may rewrite keeps its
    signature, attributes and return, while one opaque operation stands for all that is computed. The pass looks at
    nothing else, so it decides the same, at a cost that does not grow with the program. Nothing is changed.

    Raises PassError when the pass fails.
    """
    entry = _outline(func)
    set_donation(entry, donation)
    others = [_outline(other) for other in _other_donating_functions(func)]
    before = [outline.clone() for outline in (entry, *others)]
    module = ModuleOp([entry, *others])
    _run(JaxUseDonatedArguments(), make_context(), module)
    rewritten = [
        f"@{other.sym_name.data}"
        for other, was in zip(others, before[1:], strict=True)
        if not was.is_structurally_equivalent(other)
    ]
    return read_effect(before[0], entry, rewritten)


def apply_pipeline(
    module: ModuleOp, donation: Donation, pipeline: str | Sequence[ModulePass]
) -> tuple[ModuleOp, Effect]:
    """The module after `pipeline`, donated as `donation` says, and what that did to its entry function.

    `pipeline` is written as for `xdsl-opt -p`, or given as passes. It runs on a copy of the whole module. The effect is
    read before any `materialize-to-aliasing-output` at the end, which only writes the same decision in another way.

    Raises PassError for a pass that does not exist or does not take its options, one that fails, and one that leaves a
    module that does not verify.
    """
    passes = parse(pipeline) if isinstance(pipeline, str) else tuple(pipeline)
    deciding = len(passes)
    while deciding and isinstance(passes[deciding - 1], MaterializeToAliasingOutput):
        deciding -= 1
    before = module.clone()
    set_donation(entry_function(before), donation)
    after = before.clone()
    context = _context()
    for module_pass in passes[:deciding]:
        _run_verified(module_pass, context, after)
    effect = _read_module_effect(before, after)
    for module_pass in passes[deciding:]:
        _run_verified(module_pass, context, after)
    return after, effect


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
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if not near:
        return "`xdsl-opt --help` lists those there are."
    return f"Did you mean {' or '.join(repr(found) for found in near)}?"


def _context() -> Context:
    context = make_context()
    for name, dialect in Universe.get_multiverse().all_dialects.items():
        if name not in context.registered_dialect_names:
            context.register_dialect(name, dialect)
    return context


def _run(module_pass: ModulePass, context: Context, module: ModuleOp) -> None:
    try:
        module_pass.apply(context, module)
    except Exception as error:  # a pass is anybody's code, and its failure must not take the notebook down
        raise PassError(f"The pass '{module_pass.name}' failed: {_told(error)}") from error


def _run_verified(module_pass: ModulePass, context: Context, module: ModuleOp) -> None:
    _run(module_pass, context, module)
    try:
        module.verify()
    except Exception as error:
        raise PassError(f"The pass '{module_pass.name}' left a module that does not verify: {_told(error)}") from error


def _told(error: Exception) -> str:
    text = str(error).strip()
    return text or type(error).__name__


def _other_donating_functions(func: FuncOp) -> list[FuncOp]:
    module = func.parent_op()
    if not isinstance(module, ModuleOp):
        return []
    return [
        op
        for op in module.ops
        if isinstance(op, FuncOp)
        and op is not func
        and op.arg_attrs is not None
        and any(ALIAS in attributes.data for attributes in op.arg_attrs)
    ]


def _outline(func: FuncOp) -> FuncOp:
    """`func` with the same signature and the same values in each return, and one opaque operation a block that makes
    them. A returned value that is a materialization already stays one, because the pass leaves it alone."""
    outline = FuncOp(
        func.sym_name.data,
        func.function_type,
        Region([Block(arg_types=block.arg_types) for block in func.body.blocks]),
        func.sym_visibility,
        arg_attrs=func.arg_attrs,
        res_attrs=func.res_attrs,
    )
    values: dict[SSAValue, SSAValue] = {}
    for block, copy in zip(func.body.blocks, outline.body.blocks, strict=True):
        values.update(zip(block.args, copy.args, strict=True))
    for block, copy in zip(func.body.blocks, outline.body.blocks, strict=True):
        copy.add_ops(_outlined_operations(block, values))
    return outline


def _outlined_operations(block: Block, values: dict[SSAValue, SSAValue]) -> list[Operation]:
    terminator = block.last_op
    if not isinstance(terminator, ReturnOp):
        return [_OUTLINED.create()]
    materialized = {
        value.owner: None for value in terminator.operands if isinstance(value.owner, MaterializeInDestinationOp)
    }
    made = [value for op in materialized for value in op.operands] + [
        value for value in terminator.operands if value.owner not in materialized
    ]
    made = [value for value in dict.fromkeys(made) if value not in values]
    opaque = _OUTLINED.create(result_types=[value.type for value in made])
    values.update(zip(made, opaque.results, strict=True))
    copies = [op.clone(values) for op in materialized]
    return [opaque, *copies, ReturnOp(*[values[value] for value in terminator.operands])]


def _read_module_effect(before: ModuleOp, after: ModuleOp) -> Effect:
    entry = entry_function(before)
    name = entry.sym_name.data
    entry_after = _functions(after).get(name)
    if entry_after is None or entry_after.is_declaration:
        raise PassError(f"The pipeline removed the entry function @{name}, so there is nothing to show.")
    return read_effect(entry, entry_after, _changed_besides(entry, before, entry_after, after))


def _functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


def _changed_besides(entry: FuncOp, before: ModuleOp, entry_after: FuncOp, after: ModuleOp) -> list[str]:
    """What changed at the top of the module besides the entry function: functions by name, other operations by kind."""
    others = [op for op in before.ops if op is not entry]
    others_after = [op for op in after.ops if op is not entry_after]
    unmatched = [_label(op) for op in others_after[len(others) :]]
    for index, op in enumerate(others):
        equal = index < len(others_after) and _equal(op, others_after[index], before, after)
        if not equal:
            unmatched.append(_label(op))
    return unmatched


def _equal(op: Operation, other: Operation, before: ModuleOp, after: ModuleOp) -> bool:
    return op.is_structurally_equivalent(other, {before.body.block: after.body.block})


def _label(op: Operation) -> str:
    return f"@{op.sym_name.data}" if isinstance(op, FuncOp) else f"'{operation_name(op)}'"
