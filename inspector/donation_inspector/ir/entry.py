"""The entry function of an xDSL module: which it is, what stands there about donation, whether that can be true."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from types import MappingProxyType

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, TupleType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute

from donation_inspector.common.signature import ENTRY, Donation, Implicit, Leaf, Signature
from donation_inspector.errors import IRError
from donation_inspector.ir import sharding, size
from donation_inspector.ir.dialect import to_text
from donation_inspector.ir.location import name

ALIAS = "tf.aliasing_output"
DONOR = "jax.buffer_donor"
_NAMED = 5


def entry_function(module: ModuleOp) -> FuncOp:
    """The one that the module names as `ENTRY`, otherwise @main, otherwise the only public function.

    Raises:
      IRError: no function, none that has a body, or several public ones and no @main.
    """
    functions = [operation for operation in module.ops if isinstance(operation, FuncOp)]
    asked = module.attributes.get(ENTRY)
    return functions[
        choose_entry(
            [
                (
                    function.sym_name.data,
                    function.sym_visibility.data if function.sym_visibility else "public",
                    bool(function.body.blocks),
                )
                for function in functions
            ],
            asked.data if isinstance(asked, StringAttr) else None,
        )
    ]


def is_one_block(function: FuncOp) -> bool:
    """Whether the function is one block that returns, so that its results stand in one place."""
    blocks = function.body.blocks
    return len(blocks) == 1 and isinstance(blocks[0].last_op, ReturnOp)


def choose_entry(functions: Sequence[tuple[str, str, bool]], asked: str | None = None) -> int:
    """Index of the entry function among (name, visibility, has a body); the rule of `entry_function`."""
    if not functions:
        raise IRError("There is no function in this module, so there is nothing to inspect. Give one with a @main.")
    names = [name for name, _, _ in functions]
    public = [index for index, (_, visibility, _) in enumerate(functions) if visibility == "public"]
    if asked is not None and asked not in names:
        raise IRError(f"There is no function @{asked} in this module, but {_listed(names)}. Choose with entry=.")
    named = "main" if asked is None else asked
    chosen = [names.index(named)] if named in names else public
    if len(chosen) != 1:
        there = [names[index] for index in public] or names
        kind = "not one public function" if public else "none that is public"
        raise IRError(
            f"There is no @main in this module, and {kind} but {_listed(there)}. Choose the one to inspect with "
            f'entry="{there[0]}", in the shell --entry {there[0]}.'
        )
    name, _, has_body = functions[chosen[0]]
    if not has_body:
        raise IRError(f"@{name} is only declared here: it has no body to inspect. Give the module that defines it.")
    return chosen[0]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)}: {', '.join(f'@{name}' for name in names[:_NAMED])}{more}"


def argument_attributes(function: FuncOp) -> tuple[DictionaryAttr, ...]:
    """One dictionary for each argument, empty where there is nothing."""
    return _dictionaries(function.arg_attrs, len(function.function_type.inputs))


def result_attributes(function: FuncOp) -> tuple[DictionaryAttr, ...]:
    """One dictionary for each result, empty where there is nothing."""
    return _dictionaries(function.res_attrs, len(function.function_type.outputs))


def read_donation(function: FuncOp) -> Donation:
    """What `tf.aliasing_output` and `jax.buffer_donor` say, as it stands there, right or wrong."""
    attributes = argument_attributes(function)
    aliases = {position: result for position, entry in enumerate(attributes) if (result := _alias(entry)) is not None}
    donors = frozenset(position for position, entry in enumerate(attributes) if _is_donor(entry))
    return Donation(MappingProxyType(aliases), donors)


def read_signature(function: FuncOp) -> Signature:
    """What a module from a file takes and returns, as far as it tells.

    A leaf's path is the name in its argument's location, as JAX writes it there, `arg0` (by position) where there is
    none or another leaf has it; a result's is `jax.result_info` or `result0`. Per-device shapes are read from
    `sdy.sharding` and `mhlo.sharding`.
    """
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    named = [name(argument.location) for argument in function.args]
    shown = [_string(entry, "jax.result_info") for entry in result_attributes(function)]
    arguments, implicit_arguments = _leaves(
        inputs, argument_attributes(function), named, "arg", function, read_donation(function).positions
    )
    results, implicit_results = _leaves(outputs, result_attributes(function), shown, "result", function, frozenset())
    devices = sharding.devices(function)
    return Signature(arguments, results, implicit_arguments, implicit_results, devices)


def _leaves(
    types: Sequence[Attribute],
    attributes: Sequence[DictionaryAttr],
    names: Sequence[str | None],
    prefix: str,
    function: FuncOp,
    donated: frozenset[int],
) -> tuple[tuple[Leaf, ...], tuple[Implicit, ...]]:
    leaves: list[Leaf] = []
    implicit: list[Implicit] = []
    taken: set[str] = set()
    for position, (type, entry, named) in enumerate(zip(types, attributes, names, strict=True)):
        kind = _implicit_kind(type, entry)
        if kind is not None:
            implicit.append(Implicit(position, kind, to_text(type)))
            continue
        path = named if named and named not in taken else f"{prefix}{position}"
        taken.add(path)
        shape, dtype = size.shape_dtype(type)
        sharded = sharding.read(shape, entry, function)
        leaves.append(
            Leaf(
                index=len(leaves),
                path=path,
                shape=shape,
                dtype=dtype,
                nbytes=size.nbytes(type),
                shard_shape=sharded.shard_shape,
                nbytes_per_device=size.nbytes_of(type, sharded.shard_shape),
                position=position,
                sharding=sharded.text,
                donated=position in donated,
                root=_root(path) if prefix == "arg" else "",
                spec=sharded.spec,
                mesh=sharded.mesh,
                memory=sharded.memory,
                layout=_string(entry, "mhlo.layout_mode"),
            )
        )
    return tuple(leaves), tuple(implicit)


def _implicit_kind(type: Attribute, entry: DictionaryAttr) -> str | None:
    if size.is_token(type) or "jax.token" in entry.data:
        return "token"
    if "jax.global_constant" in entry.data:
        return "dimension"
    if "jax.const" in entry.data:
        return "constant"
    return "unknown" if isinstance(type, TupleType) else None


def _root(path: str) -> str:
    found = re.match(r"args\[\d+\]|[^\[.]+", path)
    return path if found is None else found.group()


def _string(entry: DictionaryAttr, key: str) -> str | None:
    value = entry.data.get(key)
    return value.data if isinstance(value, StringAttr) else None


def alias_problems(function: FuncOp) -> tuple[str, ...]:
    """What is wrong with the donation that stands there, one sentence each; XLA refuses or ignores such a module."""
    problems = _malformed(function)
    types = function.function_type.outputs.data
    donation = read_donation(function)
    takers: dict[int, list[int]] = {}
    for argument, result in donation.aliases.items():
        takers.setdefault(result, []).append(argument)
        if argument in donation.donors:
            problems.append(f"Argument {argument} has both {ALIAS} = {result} and {DONOR}: keep one of them.")
        if not 0 <= result < len(types):
            problems.append(
                f"Argument {argument} has {ALIAS} = {result}, but there is no result {result}: the function has "
                f"{len(types)} of them, counted from 0."
            )
        else:
            problems += _difference(argument, function.function_type.inputs.data[argument], result, types[result])
    for result, arguments in takers.items():
        if len(arguments) > 1:
            listed = ", ".join(map(str, arguments[:-1])) + f" and {arguments[-1]}"
            problems.append(
                f"Arguments {listed} all claim the buffer of result {result}: only one of them can have it."
            )
    return tuple(problems)


def _malformed(function: FuncOp) -> list[str]:
    problems: list[str] = []
    for position, entry in enumerate(argument_attributes(function)):
        for key, meaning in ((ALIAS, "the number of a result"), (DONOR, "true or false")):
            value = entry.data.get(key)
            if value is not None and _int32(value) is None:
                problems.append(f"Argument {position} has {key} = {to_text(value)}, which is not {meaning}.")
    return problems


def _difference(argument: int, mine: Attribute, result: int, theirs: Attribute) -> list[str]:
    if mine == theirs:
        return []
    sizes = size.nbytes(mine), size.nbytes(theirs)
    told = f"Argument {argument}, {to_text(mine)}, is aliased to result {result}, {to_text(theirs)}"
    if None not in sizes and sizes[0] != sizes[1]:
        return [f"{told}: {sizes[0]} and {sizes[1]} bytes. XLA refuses buffers of unequal size."]
    return [f"{told}: the types differ. XLA takes it only where both occupy the same bytes."]


def _dictionaries(attributes: Iterable[DictionaryAttr] | None, count: int) -> tuple[DictionaryAttr, ...]:
    entries = tuple(attributes) if attributes is not None else ()
    return entries if len(entries) == count else (DictionaryAttr({}),) * count


def _alias(entry: DictionaryAttr) -> int | None:
    return _int32(entry.data.get(ALIAS))


def _int32(value: Attribute | None) -> int | None:
    number = value.value.data if isinstance(value, IntegerAttr) else None
    return None if number is None or not -(1 << 31) <= number < 1 << 31 else number


def _is_donor(entry: DictionaryAttr) -> bool:
    value = entry.data.get(DONOR)
    return isinstance(value, IntegerAttr) and value.value.data != 0
