"""Text from programs on a terminal: nothing in it acts on the terminal, and it stays short."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import pytest

import donation_inspector as di
from donation_inspector.common import visible
from donation_inspector.common.tables import aligned, html_table

NASTY = "a\x1b[31mb\x07c\u202ed\rf\x7fg\x9bh\u2028i\u200bj\ud800k\ufeffl"
WAYS = (visible.one_line, visible.shown, visible.shown_in_line, visible.shown_in_html)


def acts(text: str) -> list[str]:
    """What in it no terminal should be sent, line breaks between lines apart."""
    return [letter for letter in text if not letter.isprintable() and letter != "\n"]


@pytest.mark.parametrize("write", WAYS)
def test_what_is_no_letter_is_written_as_its_escape(write: Callable[[str], str]) -> None:
    assert write(NASTY) == r"a\x1b[31mb\x07c\u202ed\rf\x7fg\x9bh\u2028i\u200bj\ud800k\ufeffl"


def test_letters_of_any_language_and_wide_spaces_stay() -> None:
    text = "été 変数 Ünit 5\xa0% 🙂"

    assert visible.shown(text) == text


def test_lines_stay_in_text_and_not_in_a_name() -> None:
    assert visible.shown("a\nb") == "a\nb"
    assert visible.one_line("a\nb\tc") == r"a\nb\tc"


def test_what_is_very_long_is_cut_in_the_middle() -> None:
    assert visible.shown("k" * 400) == "k" * 400
    cut = visible.shown(f"the key {'a' * 5000}{'z' * 5000} is new")
    assert cut.startswith("the key aaa")
    assert cut.endswith("zzz is new")
    assert "a…z" in cut
    assert len(cut) < 500
    assert len(visible.shown("k " * 100_000)) <= 20_000


def test_tables_have_a_line_for_a_row() -> None:
    assert len(aligned(("name", "why"), [("a\nb", NASTY)])) == 2
    assert "<b>" not in html_table(("name", "why"), [("<b>\x1b", "")])


def test_a_program_with_such_names() -> None:
    name = f"w\nnext{NASTY.replace(chr(0xD800), '')}"

    def step(p: dict[str, jnp.ndarray]) -> dict[str, jnp.ndarray]:
        if "fail" in p:
            raise ValueError(f"no {name}")
        return {name: p[name] + 1}

    step.__name__ = step.__qualname__ = name
    inspection = di.inspect(step, {name: jnp.ones(64), "k" * 100_000: jnp.ones(64)})
    donating = inspection.donate(f"p[{name!r}]")
    with pytest.raises(di.TraceError) as raised:
        di.inspect(step, {name: jnp.ones(4), "fail": jnp.ones(4)})
    with pytest.raises(di.PathError) as unknown:
        inspection.donate(f"nothing {name}")

    assert sum(argument.donated for argument in donating.arguments) == 1
    for text in (inspection.report(), repr(inspection), str(raised.value), str(unknown.value), donating.report()):
        assert not acts(text)
        assert "\nnext" not in text
        assert len(text) < 20_000
