"""What the words in an argument's path say it is; None where they say nothing."""

from __future__ import annotations

import re
from enum import Enum

from donation_inspector.attribution.role import Role

Keys = tuple[str, ...]
"""A path taken apart: `params['blocks'][0].w` is ("params", "blocks", "0", "w")."""

_KEY = re.compile(r"\[\s*(['\"]?)(.*?)\1\s*\]|([^.\[\]]+)")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_PARAMETERS = frozenset({"params", "param", "parameters", "weights", "variables"})
_MODELS = frozenset({"model", "net", "network", "module", "backbone", "encoder", "decoder"})
_OPTIMIZERS = frozenset({"opt", "optim", "optimizer", "optimiser", "adam", "adamw", "sgd", "momentum", "velocity"})
_GRADIENTS = frozenset({"grads", "grad", "gradients", "gradient"})
_BATCHES = frozenset(
    {
        "batch",
        "batches",
        "inputs",
        "input",
        "tokens",
        "token",
        "ids",
        "labels",
        "targets",
        "images",
        "image",
        "data",
        "examples",
    }
)
_WEAK = {
    Role.PARAMETERS: frozenset({"w", "b", "p", "theta", "weight", "bias", "kernel"}),
    Role.OPTIMIZER: frozenset({"m", "v", "mu", "nu", "trace"}),
    Role.BATCH: frozenset({"x", "y", "xs", "ys", "target", "mask"}),
}


class Certainty(Enum):
    """How far a name can be trusted: PLAIN alone, LIKELY until structure says otherwise, WEAK in company alone."""

    PLAIN = 3
    LIKELY = 2
    WEAK = 1


def keys(path: str) -> Keys:
    """A path's parts, outermost first."""
    return tuple(quoted or bare for _, quoted, bare in _KEY.findall(path))


def is_batch(path: str) -> bool:
    """Whether a path's words name a batch."""
    name = read_name(keys(path))
    return name is not None and name[0] is Role.BATCH


def read_name(path: Keys) -> tuple[Role, Certainty] | None:
    """The class that a path's words name, the outermost word first, and how sure that is."""
    words = [frozenset(_CAMEL.sub("_", key).lower().split("_")) for key in path]
    for at in words:
        if at & _PARAMETERS:
            return Role.PARAMETERS, Certainty.PLAIN
        if at & _OPTIMIZERS:
            return Role.OPTIMIZER, Certainty.PLAIN
        if at & _GRADIENTS:
            return Role.GRADIENTS, Certainty.PLAIN
    for at in words:
        if at & _MODELS:
            return Role.PARAMETERS, Certainty.LIKELY
    if words and words[0] & _BATCHES:
        return Role.BATCH, Certainty.PLAIN
    for role, weak in _WEAK.items():
        if words and words[0] & weak:
            return role, Certainty.WEAK
    return None
