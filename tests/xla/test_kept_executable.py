"""Executables that one child made and another one runs, and the user's own compilation cache."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from donation_inspector.xla import serving
from donation_inspector.xla.compile import compile_variants
from donation_inspector.xla.kept_executable import KeptExecutable, write
from donation_inspector.xla.lowering import lower
from donation_inspector.xla.measure import measure_variants
from donation_inspector.xla.program import fingerprint
from small_programs import add, program


def test_what_one_child_made_another_one_runs_bit_by_bit() -> None:
    sorting = program(lambda a: jnp.sort(jnp.sin(a) @ a), (64, 64), donate=(0,))
    room, broken = KeptExecutable(), KeptExecutable()
    known = compile_variants({"a": sorting}, hlo=True, executables={"a": room})["a"]
    assert len(room) > 0
    write(broken.descriptor, b"no executable")
    answers = measure_variants(
        {"kept": sorting, "broken": sorting},
        None,
        runs=1,
        executables={"kept": (room, known), "broken": (broken, known)},
    )
    assert {name: (one.status, one.executable) for name, one in answers.items()} == {
        "kept": ("ok", "kept"),
        "broken": ("ok", "compiled"),
    }
    kept, own = answers["kept"], answers["broken"]
    assert known.memory is not None
    assert kept.predicted == own.predicted == known.memory.total
    assert kept.output_hashes == own.output_hashes
    assert kept.peak is not None
    assert own.peak is not None
    assert abs(kept.peak - own.peak) < 100_000


def test_what_is_kept_has_no_name_and_goes_with_the_last_who_holds_it() -> None:
    room = KeptExecutable()
    descriptor = room.descriptor
    assert os.fstat(descriptor).st_nlink == 0
    del room
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_content_tells_programs_apart_and_names_do_not() -> None:
    one, same = program(add, (8,), (8,)), program(add, (8,), (8,))
    assert fingerprint(one) == fingerprint(dataclasses.replace(same, name="other", inputs=()))
    elsewhere = dataclasses.replace(one.target, here=False)
    others = [
        program(add, (9,), (9,)),
        program(add, (8,), (8,), donate=(0,)),
        dataclasses.replace(one, target=elsewhere),
        dataclasses.replace(one, compile_options=one.compile_options + b"\0"),
        dataclasses.replace(one, xla_flags="--xla_cpu_enable_fast_math"),
        dataclasses.replace(one, device_ids=(1,)),
    ]
    assert len({fingerprint(other) for other in (one, *others)}) == 7


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """JAX's persistent compilation cache in this process, as a user sets it."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    compilation_cache: Any = __import__("jax._src.compilation_cache", fromlist=["reset_cache"])
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    compilation_cache.reset_cache()
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*-cache")}


def test_the_users_compilation_cache_is_read_and_written_as_by_their_own_process(cache: Path) -> None:
    x = jnp.ones((16, 16))

    def theirs(a: jax.Array) -> jax.Array:
        return jnp.cos(a) @ a

    def ours(a: jax.Array) -> jax.Array:
        return jnp.tanh(a) @ a

    before = entries(cache)
    jax.jit(theirs, donate_argnums=0).lower(x).compile()
    (their_entry,) = entries(cache) - before
    read, made = lower(jax.jit(theirs, donate_argnums=0), (x,), {}), lower(jax.jit(ours, donate_argnums=0), (x,), {})
    answers = compile_variants({"theirs": read.program(), "ours": made.program()}, read=True)
    assert [answers[name].cached for name in ("theirs", "ours")] == [True, False]
    assert answers["theirs"].memory == answers["ours"].memory
    assert dict(answers["theirs"].input_output_alias) == {0: 0}
    (our_entry,) = entries(cache) - before - {their_entry}
    jax.jit(ours, donate_argnums=0).lower(x).compile()
    assert entries(cache) - before == {their_entry, our_entry}
    # what is run is read too, and the child's own small programs stay out
    assert measure_variants({"a": read.program()}, None, runs=1)["a"].executable == "cached"
    assert entries(cache) - before == {their_entry, our_entry}
    # with XLA's buffers it must be compiled, as nobody keeps these
    (anew,) = compile_variants({"a": read.program()}, hlo=True).values()
    assert (anew.cached, anew.hlo is not None) == (False, True)


def test_the_end_waits_for_what_must_not_be_cut_off(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(
        "import sys, time\n"
        "from donation_inspector.xla.serving import undisturbed\n"
        "with undisturbed():\n"
        "    print('in', flush=True)\n"
        "    time.sleep(0.5)\n"
        "print('out', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "in\n"
        child.send_signal(signal.SIGTERM)
        assert child.stdout.readline() == "out\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(5) == -signal.SIGTERM
    ended = threading.Event()

    def end() -> None:
        with serving._undisturbed:
            ended.set()

    with serving.undisturbed():
        threading.Thread(target=end).start()
        assert not ended.wait(0.05)
    assert ended.wait(5)
