"""From the paths that a person writes to leaf indices, with the near names when there is no such path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import cast

from donation_inspector.common.signature import Leaf, Signature
from donation_inspector.errors import PathError


def select(signature: Signature, paths: Iterable[str]) -> frozenset[int]:
    """Leaf indices below each path: a leaf's own path or a prefix of it, as `opt_state` or `params['w']`.

    Raises:
      PathError: a path that names nothing; the message names the near ones.
    """
    chosen: set[int] = set()
    for path in paths:
        if not isinstance(cast(object, path), str):
            raise PathError(
                f"a path is text, such as 'params', and this is of type {type(path).__name__}; "
                f"the {_roots(signature.arguments)}"
            )
        found = [leaf.index for leaf in signature.arguments if is_below(leaf.path, path)]
        if not found:
            raise PathError(_unknown(signature.arguments, path))
        chosen.update(found)
    return frozenset(chosen)


def is_below(path: str, prefix: str) -> bool:
    """Whether a leaf's path is this one or one inside of it."""
    return path == prefix or (path.startswith(prefix) and path[len(prefix)] in "[.")


def _unknown(leaves: tuple[Leaf, ...], path: str) -> str:
    if not leaves:
        return f"no argument {path!r}: the function has no array arguments"
    names = dict.fromkeys(leaf.root for leaf in leaves)
    candidates = list(dict.fromkeys([*names, *(leaf.path for leaf in leaves)]))
    near = difflib.get_close_matches(path, candidates, 3, cutoff=0.5)
    if near:
        return f"no argument {path!r}; near it: {', '.join(near)}"
    return f"no argument {path!r}; the {_roots(leaves)}"


def _roots(leaves: tuple[Leaf, ...]) -> str:
    names = list(dict.fromkeys(leaf.root for leaf in leaves))
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return f"arguments are {', '.join(names[:8])}{more}"
