"""Text from programs as a terminal may show it: every name, key, location and message of a user's comes through here.

What is no printable character is written as its escape, so that no name moves the cursor, sets colours, rings, hides
or turns the text around it; and what is very long is cut in the middle.
"""

from __future__ import annotations

import html
import re

_LONGEST_WORD = 400
_LONGEST_GIVEN = 120
_LONGEST_LINE = 20_000
_WORD = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


def one_line(text: str) -> str:
    """A name or a message with the escapes of whatever cannot be seen, line breaks and tabs among it."""
    return text if text.isprintable() else "".join(map(_seen, text))


def shown(text: str) -> str:
    """Several lines that a person may be shown: escaped, and cut in the middle where a word or a line is very long."""
    return "\n".join(_cut(one_line(line)) for line in text.split("\n"))


def shown_in_line(text: str) -> str:
    """The same for what stands in one line, as a cell of a table."""
    return _cut(one_line(text))


def shown_in_html(text: str) -> str:
    """The same as HTML, in which nothing of it is markup."""
    return html.escape(shown(text))


def repr_of(value: object) -> str:
    """What was given, in a message that refuses it: its `repr`, short, and its type alone where that raises."""
    try:
        written = repr(value)
    except Exception as error:
        return f"{type(value).__name__} (its repr() raises {type(error).__name__})"
    return _in_the_middle(one_line(written), _LONGEST_GIVEN)


def _seen(letter: str) -> str:
    # spaces of other widths are text, and seen
    if letter.isprintable() or (letter.isspace() and letter > "\x7f" and letter not in "\x85\u2028\u2029"):
        return letter
    return letter.encode("unicode_escape", "surrogatepass").decode()


def _cut(line: str) -> str:
    if len(line) <= _LONGEST_WORD:
        return line
    return _in_the_middle(_WORD.sub(lambda word: _in_the_middle(word[0], _LONGEST_WORD), line), _LONGEST_LINE)


def _in_the_middle(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2 - 1
    return f"{text[:half]}…{text[-half:]}"
