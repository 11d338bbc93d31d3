"""The frames that an exception went through, JAX's own among them, and the `jax.jit` call that one of those stands for.

JAX removes its frames from what it raises, or hides them, and no public function gives a failed call back.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import CellType, CodeType, FrameType, FunctionType, TracebackType
from typing import Any, cast

import jax

from donation_inspector.xla import internals
from donation_inspector.xla.calls import Call, Jitted


@dataclass(frozen=True, eq=False)
class Frame:
    """A Python frame as it stood when the exception went through it.

    `line` and `end_line` count from 1, `column` and `end_column` are offsets in bytes: the code that was running there.
    All but `line` are None where the compiler kept no more.
    """

    frame: FrameType
    line: int
    end_line: int | None
    column: int | None
    end_column: int | None

    @property
    def package(self) -> str:
        """The package whose code it is, "__main__" for a notebook's."""
        return str(self.frame.f_globals.get("__name__", "")).partition(".")[0]

    @property
    def file(self) -> str:
        """The file as the code names it; a notebook's cell has a made-up one."""
        return self.frame.f_code.co_filename


def frames(error: BaseException) -> tuple[Frame, ...]:
    """From the outermost to the innermost; with those that JAX took out, where it kept them at all."""
    whole = error.__cause__
    # JAX has no public name for the exception that carries the traceback which it shortened.
    kept = whole if whole is not None and type(whole).__name__ == "UnfilteredStackTrace" else error
    return tuple(map(_frame, _steps(kept.__traceback__)))


def chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, then what it was raised from, without the exceptions that only carry JAX's tracebacks."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if type(current).__name__ not in ("UnfilteredStackTrace", "JaxStackTraceBeforeTransformation"):
            yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


def jit_call(frame: Frame) -> Call | None:
    """The call whose arguments a frame of JAX holds; None where it is no such frame.

    A `Lowered` that was being compiled and a `Traced` that was being lowered are calls without arguments.
    """
    held, code = frame.frame.f_locals, frame.frame.f_code
    module = str(frame.frame.f_globals.get("__name__", ""))
    if module == "jax._src.pjit" and code.co_name == "cache_miss" and {"fun", "jit_info", "args"} <= held.keys():
        return Call(Jitted(held["fun"], held["jit_info"]), tuple(held["args"]), dict(held["kwargs"]), None)
    if module == "jax._src.stages" and is_stage(held.get("self")):
        return Call(held["self"], (), {}, None)
    return None


def pmap_call(frame: FrameType) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """The function that `jax.pmap` made, and its arguments, of the frame that carries out its call; None for others.

    A frame does not know its function: what closes over the same is looked for.
    """
    held = frame.f_locals if frame.f_globals.get("__name__") == "jax._src.pmap" else {}
    if not {"infer_params", "args", "kwargs"} <= held.keys():
        return None
    cells = [one for one in gc.get_referrers(held["infer_params"]) if isinstance(one, CellType)]
    closures = [cast("tuple[Any, ...]", one) for one in gc.get_referrers(*cells) if isinstance(one, tuple)]
    made = (one for one in gc.get_referrers(*closures) if isinstance(one, FunctionType))
    found = next((one for one in made if one.__code__ is frame.f_code), None)
    if found is None:
        return None
    # what jax 0.9 remembers of a call under way it cannot give to another one yet
    with suppress(internals.MissingNameError, AttributeError):
        internals.pmap._cached_shard_map.cache_clear()
    return found, tuple(held["args"]), dict(held["kwargs"])


def _steps(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _frame(step: TracebackType) -> Frame:
    line, end, column, end_column = _position(step.tb_frame.f_code, step.tb_lasti)
    return Frame(step.tb_frame, line or step.tb_lineno, end, column, end_column)


def _position(code: CodeType, instruction: int) -> tuple[int | None, int | None, int | None, int | None]:
    # an instruction is two bytes long
    return next(itertools.islice(code.co_positions(), instruction // 2, None), (None, None, None, None))


def is_stage(function: Any) -> bool:
    """Whether what was called is a `Lowered` or a `Traced`."""
    return isinstance(function, jax.stages.Lowered | jax.stages.Traced)
