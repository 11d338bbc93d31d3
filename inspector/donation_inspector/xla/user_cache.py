"""The user's persistent compilation cache (`jax_compilation_cache_dir`), read and written as their own process would.

A child has none of its own: JAX's settings are handed over with the job and hold for one compile, so that nothing which
a child compiles for itself, as the values of arguments, gets in there.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from donation_inspector.xla.program import Program

_config: Any = importlib.import_module("jax").config
# JAX's public compile takes only what it lowered itself, and its cache is asked nowhere else; the key is its own.
_compiler: Any = importlib.import_module("jax._src.compiler")
_cache: Any = importlib.import_module("jax._src.compilation_cache")
_client: Any = importlib.import_module("jaxlib._jax")
_backends: Any = importlib.import_module("jax.extend.backend")

_FOLDER, _ENABLED = "jax_compilation_cache_dir", "jax_enable_compilation_cache"
_NAMES = (
    _FOLDER,
    _ENABLED,
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "jax_compilation_cache_max_size",
    "jax_compilation_cache_include_metadata_in_key",
    "jax_remove_custom_partitioning_ptr_from_cache_key",
)

Settings = Mapping[str, Any]


def settings() -> Settings | None:
    """In the user's process: JAX's settings of the cache; None where there is no cache."""
    found = {name: getattr(_config, name) for name in _NAMES if hasattr(_config, name)}
    return found if found.get(_FOLDER) and found.get(_ENABLED) else None


@contextmanager
def opened(given: Settings | None) -> Generator[None]:
    """In a child: the cache with these settings, closed again afterwards."""
    if given is None:
        yield
        return
    for name, value in given.items():
        _config.update(name, value)
    _cache.reset_cache()
    try:
        yield
    finally:
        _config.update(_FOLDER, None)
        _cache.reset_cache()


class Entry:
    """The place of one module in the cache."""

    def __init__(self, module: Any, devices: Sequence[Any], options: Any) -> None:
        """`options` are those that the user's own process compiles with."""
        self._name = str(module.operation.attributes["sym_name"].value)
        self._backend, self._options, self._devices = _backends.get_backend(), options, _client.DeviceList(devices)
        array = np.empty(len(devices), object)
        array[:] = devices
        self._key: str | None = _compiler._get_cache_key(options, self._backend, module, array)

    def read(self) -> Any | None:
        """The executable, None where it is not there or cannot be loaded."""
        if self._key is None:
            return None
        return _compiler._cache_read(self._name, self._key, self._options, self._backend, self._devices)[0]

    def write(self, executable: Any, seconds: float) -> None:
        """Leave it there, by JAX's own rules of what is worth it."""
        if self._key is not None:
            _compiler._cache_write(self._key, seconds, self._name, self._backend, executable, ())


def entry(module: Any, program: Program, devices: Sequence[Any], options: Any) -> Entry | None:
    """The place of a module; None where JAX has no cache, for what JAX does not keep, and for devices elsewhere."""
    if not getattr(_config, _FOLDER) or program.callbacks or not program.target.here:
        return None
    return Entry(module, devices, options)
