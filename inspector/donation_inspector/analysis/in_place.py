"""What operations do with the buffers of their operands: facts about StableHLO, linalg, arith and the like, by name.

An operation may write a result over an operand when it reads each element of the operand before it writes that place,
and never again. Of an operation that is not named here nothing is known, so it writes over nothing, has effects and
keeps its place in the program.
"""

from __future__ import annotations

import re
from typing import Any, cast

from xdsl.dialects.builtin import AffineMapAttr, AnyFloat, ArrayAttr, IndexType, IntegerType, TensorType, UnregisteredOp
from xdsl.ir import Attribute, Operation
from xdsl.traits import is_side_effect_free

from donation_inspector.analysis.naming import operation_name
from donation_inspector.ir.dialect import to_text
from donation_inspector.ir.size import nbytes, shape_dtype

PURE_DIALECTS = frozenset({"stablehlo", "chlo", "mhlo", "sdy", "arith", "math", "linalg", "tensor", "shape", "complex"})
_WITH_EFFECTS = frozenset({"custom_call", "infeed", "outfeed", "send", "recv", "rng", "create_token", "after_all"})
_ELEMENTWISE = re.compile(
    r"abs|acos|acosh|add|and|asin|asinh|atan|atan2|atanh|bitcast_convert|cbrt|ceil|clamp|compare|complex"
    r"|convert|cosh|cosine|count_leading_zeros|digamma|divide|erf|erf_inv|exponential|exponential_minus_one"
    r"|floor|imag|is_finite|is_inf|lgamma|log|log_plus_one|logistic|maximum|minimum|multiply|negate|next_after"
    r"|not|or|popcnt|power|real|reduce_precision|remainder|round_nearest_afz|round_nearest_even|rsqrt|select"
    r"|shift_left|shift_right_arithmetic|shift_right_logical|sign|sine|sinh|sqrt|square|subtract|tan|tanh|xor"
)
_VIEWS = re.compile(
    r"builtin\.unrealized_conversion_cast|mhlo\.reshape|sdy\.sharding_constraint|stablehlo\.optimization_barrier"
    r"|stablehlo\.reshape|tensor\.bitcast|tensor\.cast|tensor\.collapse_shape|tensor\.expand_shape"
    r"|tensor\.extract_slice|tensor\.reshape"
)
_MOVES = re.compile(r"broadcast_in_dim|concatenate|dynamic_slice|gather|iota|pad|reverse|slice|transpose")
_CARRIES = frozenset({"stablehlo.while", "scf.while"})
_CONTROL = frozenset({"while", "if", "case", "manual_computation", "named_computation"})
SCALARS = (IntegerType, IndexType, AnyFloat)
_INSERTS = frozenset({"tensor.insert_slice", "tensor.insert"})
_TENSORS = frozenset({"empty", "insert", "insert_slice", "dim", "extract"})
_ALIAS = re.compile(r"output_tuple_indices = \[(\d*)[^\]]*\], operand_index = (\d+)")
_ELEMENTWISE_LINALG = re.compile(
    r"linalg\.abs|linalg\.add|linalg\.copy|linalg\.div|linalg\.exp|linalg\.log|linalg\.map|linalg\.max|linalg\.min"
    r"|linalg\.mul|linalg\.negf|linalg\.rsqrt|linalg\.select|linalg\.sqrt|linalg\.square|linalg\.sub|linalg\.tanh"
)


def is_elementwise(op: Operation) -> bool:
    """Whether every element of the results depends on the elements of the operands at the same index alone."""
    dialect, _, name = operation_name(op).partition(".")
    if dialect in {"stablehlo", "chlo", "mhlo"}:
        return _ELEMENTWISE.fullmatch(name) is not None
    if dialect in {"arith", "math"}:
        return bool(op.operands) and not is_choice(op)
    return name == "generic" and all(_same_index(op, operand, 0) for operand in range(_inputs(op)))


def is_view(op: Operation) -> bool:
    """Whether the results are the operands' bytes under another type: no buffer of their own."""
    return _VIEWS.fullmatch(operation_name(op)) is not None


def is_choice(op: Operation) -> bool:
    """Whether the result is one of two operands as a whole: `arith.select` of tensors by one condition."""
    return (
        operation_name(op) == "arith.select"
        and isinstance(op.results[0].type, TensorType)
        and not isinstance(op.operands[0].type, TensorType)
    )


def is_known(op: Operation) -> bool:
    """Whether it is known what the operation does: no result of it is an operand as it is, but for views."""
    dialect, _, name = operation_name(op).partition(".")
    if dialect not in PURE_DIALECTS or (op.regions and name in _CONTROL):
        return False
    return dialect != "tensor" or name in _TENSORS


def destination(op: Operation, result: int) -> int | None:
    """The number of the operand that `op` updates to make result number `result`: in its buffer, or in a copy of it.

    So it is for what a loop carries, updates, scatters and insertions, linalg's `outs`, and what a custom call says.
    """
    name = operation_name(op)
    dialect, _, short = name.partition(".")
    if name in _CARRIES:
        return result
    if short == "dynamic_update_slice":
        return 0
    if short == "scatter" and dialect in {"stablehlo", "mhlo"}:
        return result
    if name in _INSERTS:
        return 1
    if dialect == "linalg" and _inputs(op) >= 0:
        return _inputs(op) + result
    return operand_aliases(op).get(result) if short == "custom_call" else None


def operand_aliases(op: Operation) -> dict[int, int]:
    """For each result of a custom call that `output_operand_aliases` ties to an operand, the number of that."""
    said = op.get_attr_or_prop("output_operand_aliases")
    found = _ALIAS.findall("" if said is None else to_text(said))
    return {int(result or 0): int(operand) for result, operand in found}


def lives_in(op: Operation, result: int) -> int | None:
    """The number of the operand whose buffer holds result number `result`; None where it has one of its own.

    So it is for views, for what a loop carries, and for what an operation on tensors writes into a destination, unless
    that is a `tensor.empty`, which is no buffer yet.
    """
    name = operation_name(op)
    if name in _CARRIES:
        return result
    if is_view(op):
        return min(result, len(op.operands) - 1)
    if name in _INSERTS:
        return 1
    if name.startswith("linalg.") and _inputs(op) >= 0:
        destination = op.operands[_inputs(op) + result].owner
        is_empty = isinstance(destination, Operation) and operation_name(destination) == "tensor.empty"
        return None if is_empty else _inputs(op) + result
    return None


def has_own_buffers(op: Operation) -> bool:
    """Whether the operation itself writes its results, each into a buffer that could be any: no constant, no view, no
    call or branch, which gives what others have written."""
    dialect, _, name = operation_name(op).partition(".")
    if op.regions and (dialect not in PURE_DIALECTS or name in _CONTROL):
        return False
    given = is_choice(op) or name in {"constant", "call", "empty", "materialize_in_destination", "get_tuple_element"}
    return not given and all(lives_in(op, result) is None for result in range(len(op.results)))


def is_fusible(op: Operation) -> bool:
    """Whether XLA computes the operation inside those that use it, so that it may never be written to memory."""
    dialect, _, name = operation_name(op).partition(".")
    return (
        is_elementwise(op)
        or is_view(op)
        or is_choice(op)
        or (dialect in PURE_DIALECTS and (name == "constant" or _MOVES.fullmatch(name) is not None))
    )


def has_effects(op: Operation) -> bool:
    """Whether the operation may do more than give its results, so that it keeps its place among others of this kind."""
    dialect, _, name = operation_name(op).partition(".")
    if dialect not in PURE_DIALECTS:
        return isinstance(op, UnregisteredOp) or not is_side_effect_free(op)
    if name == "custom_call":
        flag = op.get_attr_or_prop("has_side_effect")
        return flag is not None and bool(cast(Any, flag).value.data)
    return name in _WITH_EFFECTS


def writes_over(op: Operation, operand: int, result: int) -> bool:
    """Whether `op` may write result number `result` into the buffer of operand number `operand` while it reads that.

    Both must take the same bytes per element; that the buffers are equally large is for the caller to know.
    """
    if operand >= len(op.operands):
        return False
    name = operation_name(op)
    dialect, _, short = name.partition(".")
    if destination(op, result) == operand:
        return True
    if short in {"optimization_barrier", "sort", "all_reduce"}:
        return operand == result
    if name == "bufferization.materialize_in_destination":
        return operand == 1
    if dialect == "linalg":
        return _linalg_writes_over(op, operand, result)
    if is_view(op):
        return operand == 0 and name != "tensor.extract_slice"
    return is_elementwise(op) and _alike(op.operands[operand].type, op.results[result].type)


def goes_along(op: Operation, operand: int, result: int) -> bool:
    """Whether `op` needs, for an element of the result, the element of the operand at the same index and no other."""
    if (is_elementwise(op) or is_choice(op)) and operand < len(op.operands):
        return shape_dtype(op.operands[operand].type)[0] == shape_dtype(op.results[result].type)[0]
    return writes_over(op, operand, result)


def _alike(mine: Attribute, theirs: Attribute) -> bool:
    if mine == theirs:
        return True
    size = nbytes(mine)
    return size is not None and size == nbytes(theirs) and shape_dtype(mine)[0] == shape_dtype(theirs)[0]


def _inputs(op: Operation) -> int:
    """How many operands of a linalg operation on tensors are inputs: one destination a result follows them."""
    return len(op.operands) - len(op.results)


def _linalg_writes_over(op: Operation, operand: int, result: int) -> bool:
    if operand >= _inputs(op):
        return False
    if operation_name(op) == "linalg.generic":
        return _same_index(op, operand, result)
    elementwise = _ELEMENTWISE_LINALG.fullmatch(operation_name(op)) is not None
    return elementwise and op.operands[operand].type == op.results[result].type


def _same_index(op: Operation, operand: int, result: int) -> bool:
    """Whether a `linalg.generic` reads the operand at no other index than the one that it is writing."""
    maps, iterators = op.get_attr_or_prop("indexing_maps"), op.get_attr_or_prop("iterator_types")
    if not isinstance(maps, ArrayAttr) or not isinstance(iterators, ArrayAttr):
        return False
    read, written = (cast(ArrayAttr[Attribute], maps).data[number] for number in (operand, _inputs(op) + result))
    if not isinstance(written, AffineMapAttr) or read != written:
        return False
    parallel = all("parallel" in to_text(kind) for kind in cast(ArrayAttr[Attribute], iterators).data)
    one_to_one = written.data.num_dims == len(written.data.results)
    return parallel and one_to_one and _alike(op.operands[operand].type, op.results[result].type)
