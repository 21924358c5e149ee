"""Escaping of control characters in printed text from data and from people, so that a terminal does not obey them."""

from __future__ import annotations

from unicodedata import category

_SHOWN = {
    code: f"\\x{code:02x}" for code in range(0xA0) if category(chr(code)) == "Cc" and chr(code) not in "\n\t"
}  # no character above is one


def visible(text: str) -> str:
    r"""The text with its control characters escaped as in Python; line feeds and tabs stay.

    >>> visible("\x1b[31mred\r\n\x9b2J"), visible("a\tä…")
    ('\\x1b[31mred\\x0d\n\\x9b2J', 'a\tä…')
    """
    return text.translate(_SHOWN)


def in_a_line(text: str) -> str:
    r"""Escapes control characters, line feeds and tabs in a text for one line, such as a file name.

    >>> in_a_line("part\n9.parquet")
    'part\\x0a9.parquet'
    """
    return visible(text).translate({ord(character): f"\\x{ord(character):02x}" for character in "\n\t"})
