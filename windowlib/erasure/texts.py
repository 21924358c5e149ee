"""Search for the values of a key in free text, and their removal."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass

from windowlib.publication.key import Key
from windowlib.quality.check import EXAMPLES

GONE = "…"


@dataclass(frozen=True, slots=True)
class Mention:
    """Patterns for the values of a key, one per value, each matched as a whole word.

    >>> import pyarrow as pa
    >>> mention = Mention.of(Key(("k", "n"), ("u1", 'a "b"'), (pa.string(), pa.string())))
    >>> mention.is_in('u1 and a "b"'), mention.is_in('{"k": "u1", "n": "a \\\\"b\\\\""}'), mention.is_in('u12, a "b"')
    (True, True, False)
    """

    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, key: Key) -> Mention:
        """Patterns that match each value of a key as the user typed it, and as its type prints it."""
        values = zip(key.texts, key.python_values().values(), strict=True)
        return cls(tuple(_pattern({text, str(value)}) for text, value in values))

    def is_in(self, text: str) -> bool:
        """Tests if a text contains every value of the key."""
        return all(pattern.search(text) for pattern in self.patterns)

    def redacted(self, text: str) -> str:
        """The text with each value of the key replaced by "…".

        >>> import pyarrow as pa
        >>> Mention.of(Key(("k",), ("u1",), (pa.string(),))).redacted("u1: window 10:00 to 11:00, u11: window 9:00")
        '…: window 10:00 to 11:00, u11: window 9:00'
        """
        for pattern in self.patterns:
            text = pattern.sub(GONE, text)
        return text

    def without_examples(self, text: str) -> str:
        """The text of a check, with the values of the key replaced by "…" in the examples only.

        >>> import pyarrow as pa
        >>> mention = Mention.of(Key(("k",), ("u1",), (pa.string(),)))
        >>> print(mention.without_examples("u1 is odd. Observed 2 unexpected among 9, such as u1, u11."))
        u1 is odd. Observed 2 unexpected among 9, such as …, u11.
        """
        return "".join(map(self._without_examples, text.splitlines(keepends=True)))

    def _without_examples(self, line: str) -> str:
        sentence, between, examples = line.partition(EXAMPLES)
        return f"{sentence}{between}{self.redacted(examples)}"


def _pattern(texts: set[str]) -> re.Pattern[str]:
    spelled = {
        form
        for text in texts
        for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], html.escape(text))
    }
    words = "|".join(re.escape(form) for form in sorted(spelled, key=lambda form: (-len(form), form)) if form)
    return re.compile(rf"(?<!\w)(?:{words or '(?!)'})(?!\w)")
