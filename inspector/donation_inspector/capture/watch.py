"""`with di.watch() as watched:` — the next real call of a jitted function inside, however deep a class hides it."""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from donation_inspector.capture import opening
from donation_inspector.common.visible import repr_of
from donation_inspector.errors import DonationInspectorError, TraceError
from donation_inspector.frameworks import wrappers
from donation_inspector.inspection import Inspection
from donation_inspector.xla import calls

_JAX = frozenset({"jax", "jaxlib"})
_FRAMEWORKS = frozenset({"flax", "equinox", "optax", "chex", "orbax", "haiku", "jaxtyping", "diffrax", "lineax"})
_UNUSABLE = "Some donated buffers were not usable"


class Watched:
    """What `watch` caught: an Inspection, and never the arguments of the call."""

    def __init__(self, catcher: _Catcher) -> None:
        self._catcher = catcher

    @property
    def inspection(self) -> Inspection:
        """The call that was caught.

        Raises:
          TraceError: none was; the message names the jitted functions that were called. Or it could not be inspected.
        """
        return self._catcher.caught()

    def __repr__(self) -> str:
        return f"<Watched: {self._catcher.inspection or 'nothing caught'}>"


@contextmanager
def watch(name: str | None = None) -> Generator[Watched]:
    """Inspect the next real call of a jitted function inside the block, just before it runs: `Watched.inspection`.

    `with di.watch() as watched: trainer.fit_one()`. The call then runs as it would have, and those after it are not
    touched. Caught is the next call of a function that is not JAX's own (as `jnp.ones`), nor one of a framework (flax,
    equinox, optax) that the framework itself calls. `name` waits for the function of that name, as "train_step" or
    "Trainer.step", where another comes first, such as an initialisation. Behind `nnx.jit` and `eqx.filter_jit` it is
    inspected as `di.inspect` would. Only calls of the thread that entered are seen, and none inside a transformation.

    Raises:
      TraceError: this JAX dispatches calls in a way that is not known here; a `name` that is no name.
    """
    if not isinstance(cast(object, name), str | None):
        raise TraceError(f"watch waits for a function by its name, as watch('train_step'); {repr_of(name)} is none.")
    catcher = _Catcher(name)

    def hear(call: calls.Call) -> None:
        if catcher.takes(call):
            stop()

    with calls.heard(hear) as stop:
        yield Watched(catcher)


class _Catcher:
    """Waits for one call and inspects it."""

    def __init__(self, name: str | None) -> None:
        self.inspection: Inspection | None = None
        self._name = name
        self._failure: str | None = None
        self._passed: Counter[str] = Counter()

    def takes(self, call: calls.Call) -> bool:
        """Inspect a call if it is the one; whether it is."""
        made = wrappers.outermost(call.function, call.args, call.kwargs, call.frame)
        function = inspect.unwrap(made.function)
        name, qualified = _names(function, made.function)
        wanted = _is_users(function, made.caller) if self._name is None else self._name in (name, qualified)
        if wanted:
            self._inspect(made)
        elif _package(function) not in _JAX:
            self._passed[name] += 1
        return wanted

    def caught(self) -> Inspection:
        """The Inspection. Raises TraceError where there is none."""
        if self.inspection is None:
            raise TraceError(self._failure or self._nothing())
        return self.inspection

    def _inspect(self, made: wrappers.MadeCall) -> None:
        try:
            self.inspection = opening.inspect(made.function, *made.args, **made.kwargs)
        except DonationInspectorError as error:
            # the error itself would hold the caller's arrays, by the frames that it went through
            self._failure = str(error)
        except Exception as error:
            self._failure = f"The call was caught, but cannot be inspected: {type(error).__name__}: {error}"
        else:
            # JAX warns when it lowers, and what is lowered now it will not lower again for the call
            for note in self.inspection.notes:
                if note.startswith(_UNUSABLE):
                    warnings.warn(note, stacklevel=2)

    def _nothing(self) -> str:
        wanted = "a jitted function of yours" if self._name is None else f"a jitted function named {self._name}"
        if self._passed:
            seen = ", ".join(f"{name} ({count}×)" if count > 1 else name for name, count in self._passed.items())
            return (
                f"di.watch() caught no call of {wanted}. Called were: {seen}; name one, as in di.watch({_first(seen)})."
            )
        return (
            f"di.watch() caught no call of {wanted}. It has to be made inside the block, by the same thread, outside "
            "other jitted functions and transformations; calls under jax.disable_jit() or of what .compile() returned "
            "are not seen."
        )


def _first(names: str) -> str:
    return repr(names.split(", ")[0].split(" (")[0])


def _names(function: Any, jitted: Any) -> tuple[str, str]:
    name = str(getattr(function, "__name__", None) or getattr(jitted, "__name__", None) or type(function).__name__)
    return name, str(getattr(function, "__qualname__", name)).rpartition("<locals>.")[2]


def _package(function: Any) -> str:
    return str(getattr(function, "__module__", "") or "").partition(".")[0]


def _is_users(function: Any, caller: str) -> bool:
    package = _package(function)
    if package in _JAX:
        return False
    return package not in _FRAMEWORKS or caller.partition(".")[0] not in _FRAMEWORKS | _JAX
