"""A widget asks from other threads than the one that made the module; nothing depends on a context being entered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from donation_inspector.common.signature import Donation
from donation_inspector.ir.entry import entry_function, read_donation
from donation_inspector.ir.exporter import Materializations, to_jaxlib, with_donation, with_materializations
from donation_inspector.ir.importer import import_module
from donation_inspector.ir.text import donated, materialized, pretty
from ir.programs import lower, text

_MADE = Materializations(((0, 0),), (0, None))


def _everything(name: str) -> Callable[[], str]:
    original = lower(name).compiler_ir()

    def work() -> str:
        imported = import_module(original)
        donation = read_donation(entry_function(imported.module))
        before = pretty(original)
        after = materialized(donated(before, original, Donation()), original, donation, _MADE)
        shown = with_materializations(original, donation, _MADE)
        assert after.lines == pretty(shown).lines
        assert text(with_donation(original, donation)) == text(original)
        return text(to_jaxlib(imported, imported.module.clone()))

    return work


def test_another_thread() -> None:
    work = _everything("04_swapped_outputs")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == work()


def test_several_threads_at_once() -> None:
    """Each on its own module; the barrier makes them start together."""
    works = [_everything("04_swapped_outputs") for _ in range(4)]
    barrier = threading.Barrier(len(works))

    def start(work: Callable[[], str]) -> str:
        barrier.wait()
        return [work() for _ in range(5)][-1]

    with ThreadPoolExecutor(len(works)) as pool:
        assert len(set(pool.map(start, works))) == 1


def test_the_module_outlives_its_lowering() -> None:
    imported = import_module(lower("18_scan_cond_passthrough").compiler_ir())
    assert text(to_jaxlib(imported, imported.module)) == text(imported.origin)
