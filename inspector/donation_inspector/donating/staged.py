"""What `trace`, `lower` and `compile` give for a function with chosen pairs."""

from __future__ import annotations

from typing import Any

import jax

from donation_inspector.donating.returned import restored
from donation_inspector.donating.steps import Step

_jax: Any = jax
"""Public, partly untyped."""

_KINDS = {jax.stages.Traced: "traced", jax.stages.Lowered: "lowered", jax.stages.Compiled: "compiled"}


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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._stage, name)
