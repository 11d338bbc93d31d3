"""What `trace`, `lower` and `compile` give for a function with chosen pairs."""

from __future__ import annotations

from typing import Any

import jax

from donation_inspector.donating.returned import Returned, restored
from donation_inspector.donating.steps import Step, WholeStep
from donation_inspector.errors import TraceError

_jax: Any = jax
"""Public, partly untyped."""

_KINDS = {jax.stages.Traced: "traced", jax.stages.Lowered: "lowered", jax.stages.Compiled: "compiled"}

_OF_ARGUMENTS = ("in_avals", "input_formats", "input_shardings")
"""What a stage has for each argument; `output_shardings` and the like are known by the results' own node."""
_EXPORTED = "_lowering"
"""What `jax.export` takes out of a stage."""


class Staged:
    """JAX's own stage, but for the user's arguments and results.

    JAX's own is `.traced`, `.lowered` or `.compiled`; its results are in another order, and where single leaves are
    donated its arguments are the donated leaves, then the kept ones.
    """

    def __init__(self, stage: Any, step: Step) -> None:
        self.step, self._stage = step, stage
        setattr(self, next(name for kind, name in _KINDS.items() if isinstance(stage, kind)), stage)

    def lower(self, *args: Any, **kwargs: Any) -> Staged:
        """As that of `jax.stages.Traced`."""
        return Staged(self._stage.lower(*args, **kwargs), self.step)

    def compile(self, *args: Any, **kwargs: Any) -> Staged:
        """As that of `jax.stages.Lowered`."""
        return Staged(self._stage.compile(*args, **kwargs), self.step)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it, as `jax.stages.Compiled` does: without the static arguments."""
        args, kwargs = self.step.given_compiled(args, kwargs)
        return restored(self._stage(*args, **kwargs))

    @property
    def args_info(self) -> Any:
        """What JAX knows of each argument."""
        return self.step.as_given(self._stage.args_info)

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return _jax.tree.structure(self.args_info)

    @property
    def out_info(self) -> Any:
        """The shape and dtype of each result."""
        return restored(self._stage.out_info)

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return _jax.tree.structure(self.out_info)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The flat arguments that are donated."""
        return tuple(leaf for leaf, info in enumerate(_jax.tree.leaves(self.args_info)) if info.donated)

    def __getattr__(self, name: str) -> Any:
        if name == _EXPORTED:
            self._refuse_export()
        elif name.startswith("_"):
            raise AttributeError(name)
        value = restored(getattr(self._stage, name))
        return self.step.as_given(value) if name in _OF_ARGUMENTS else value

    def _refuse_export(self) -> None:
        """Raises TraceError where the program's own arguments or results are not the user's."""
        returned = self._stage.out_info
        needed = [] if isinstance(self.step, WholeStep) else ["takes the donated leaves as arguments of their own"]
        if isinstance(returned, Returned):
            needed.append(f"returns its results in the order {', '.join(returned.order.paths)}")
        if needed:
            raise TraceError(
                "jax.export cannot export this function with chosen pairs: what it exports has the arguments and "
                "results of the program, which are not in the function's own order. Export jax.jit(f, "
                f"donate_argnums=…) of a function f that {' and '.join(needed)}: JAX then makes the same pairs."
            )
