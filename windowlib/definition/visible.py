"""Escaping of control characters in printed data and user input, so that a terminal does not execute them."""

from __future__ import annotations

from unicodedata import category

_SHOWN = {
    code: f"\\x{code:02x}" for code in range(0xA0) if category(chr(code)) == "Cc" and chr(code) not in "\n\t"
}  # no later character is a control character


def visible(text: str) -> str:
    r"""Escapes control characters in a string as Python does, except line feeds and tabs.

    >>> visible("\x1b[31mred\r\n\x9b2J"), visible("a\tä…")
    ('\\x1b[31mred\\x0d\n\\x9b2J', 'a\tä…')
    """
    return text.translate(_SHOWN)


def in_a_line(text: str) -> str:
    r"""Escapes all control characters of a string, including line feeds and tabs.

    >>> in_a_line("part\n9.parquet")
    'part\\x0a9.parquet'
    """
    return visible(text).translate({ord(character): f"\\x{ord(character):02x}" for character in "\n\t"})
