"""Text from data and from people as it is printed: a terminal must not obey the control characters in it."""

from __future__ import annotations

from unicodedata import category

_SHOWN = {
    code: f"\\x{code:02x}" for code in range(0xA0) if category(chr(code)) == "Cc" and chr(code) not in "\n\t"
}  # no character above is one


def visible(text: str) -> str:
    r"""The text with its control characters as in Python's texts; ends of lines and tabs stay.

    >>> visible("\x1b[31mred\r\n\x9b2J"), visible("a\tä…")
    ('\\x1b[31mred\\x0d\n\\x9b2J', 'a\tä…')
    """
    return text.translate(_SHOWN)


def in_a_line(text: str) -> str:
    r"""The same of what has to stay in a line, such as the name of a file.

    >>> in_a_line("part\n9.parquet")
    'part\\x0a9.parquet'
    """
    return visible(text).translate({ord(one): f"\\x{ord(one):02x}" for one in "\n\t"})
