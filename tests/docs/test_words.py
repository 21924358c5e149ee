"""No file of the project has a word that the table of plain words replaces, in text or in names.

The table is in `docs/contributing/words.md`. A name counts as its words: `is_told` and `CannotTell` have one each.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = "docs/contributing/words.md"
READ = (
    "windowlib", "docs", "dags", "jobs", "expectations", "benchmarks", "tests", "README.md", "CHANGELOG.md", "Makefile",
    "pyproject.toml",
)  # fmt: skip
IN_TEXT = {".py", ".md", ".txt", ".toml", ".json", ".jinja", ".css", ".js", ".svg", ".lock", ""}
BETWEEN = r"\s+(?:# )?"  # a sentence may go over lines, of a comment too
STORED = "a value of the column `change`, kept for readers of tables that earlier releases wrote"
ALLOWED = {
    ("tests/docs/test_words.py", ""): "plants words",
    (PAGE, ""): "the table itself",
    ("docs/guides/erasure.md", "withdraw"): STORED,
    ("docs/guides/late-data.md", "withdraw"): STORED,
    ("docs/how-it-works/protocol.md", "withdraw"): STORED,
    ("docs/reference/tables.md", "withdraw"): STORED,
    ("windowlib/tables/meaning.py", "withdraw"): STORED,
}
"""Where a word stays, and why: the file (or a folder, ending in `/`) and the word, which is empty for all of them."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A word that no file has, what to use, and the phrases in which it is not meant."""

    word: str
    use: str
    phrases: tuple[str, ...] = ()

    def found(self, text: str) -> Iterator[int]:
        """Where the word begins in a text of small letters, whose names are split into words."""
        meant = [one.span() for phrase in self.phrases for one in _pattern(phrase).finditer(text)]
        for one in _pattern(self.word).finditer(text):
            if not any(start <= one.start() and one.end() <= end for start, end in meant):
                yield one.start()


@cache
def _pattern(phrase: str) -> re.Pattern[str]:
    words = BETWEEN.join(map(re.escape, phrase.replace("_", " ").split()))
    return re.compile(rf"(?<!\w){words}(?!\w)")


def replaced() -> list[Replaced]:
    """The rows of the table, one for each word."""
    table = (ROOT / PAGE).read_text(encoding="utf-8").split("## Plain words")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line[:1] == "|"]
    return [
        Replaced(word, use, tuple(phrase for phrase in phrases.split(", ") if phrase))
        for words, use, phrases in rows[2:]
        for word in words.split(", ")
    ]


def complaints(path: str, text: str, words: list[Replaced]) -> list[str]:
    """The lines of a file that have a word of the table, each with what to use.

    >>> complaints("a.py", "def is_told():", [Replaced("told", "reported")])
    ['a.py:1: "told": use reported']
    """
    split = _words(text)
    flat = re.sub(BETWEEN, " ", split)
    return [
        f'{path}:{split.count(chr(10), 0, at) + 1}: "{one.word}": use {one.use}'
        for one in words
        if one.word.replace("_", " ") in flat and not _is_allowed(path, one.word)
        for at in one.found(split)
    ]


def _words(text: str) -> str:
    """A text of as many lines in small letters, its names split into their words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text).casefold()


def _is_allowed(path: str, word: str) -> bool:
    places = [path, *(f"{parent}/" for parent in Path(path).parents)]
    return any((place, one) in ALLOWED for place in places for one in ("", word))


def files() -> list[str]:
    """The files of the project that are text, as git knows them; without git, as they lie there."""
    listed = subprocess.run(["git", "ls-files", "--", *READ], cwd=ROOT, capture_output=True, text=True, check=False)
    paths = listed.stdout.splitlines() or [
        str(path.relative_to(ROOT)) for name in READ for path in (ROOT / name, *(ROOT / name).rglob("*"))
    ]
    return [path for path in paths if (ROOT / path).is_file() and Path(path).suffix in IN_TEXT]


def test_no_file_has_a_word_that_the_table_replaces() -> None:
    words, read = replaced(), files()
    assert len(read) > 500
    found = [line for path in read for line in complaints(path, (ROOT / path).read_text(encoding="utf-8"), words)]
    assert found == [], "\n".join(found)


def test_each_exception_is_needed() -> None:
    words = {one.word: one for one in replaced()}
    for (place, word), reason in ALLOWED.items():
        paths = [path for path in files() if path == place or (place.endswith("/") and path.startswith(place))]
        looked = [words[word]] if word else [*words.values()]
        texts = (_words((ROOT / path).read_text(encoding="utf-8")) for path in paths)
        assert reason
        assert any(next(one.found(text), None) is not None for text in texts for one in looked), place


@pytest.mark.parametrize(
    "planted",
    [
        "the operator is told so",
        "class CannotTell(Error): ...",
        "def _is_told(self): ...",
        "# somebody was faster",
        "a README is no\n    reason to stop",
        "Nobody can read it.",
        "it goes by the clock",
    ],
)
def test_a_planted_word_is_named_with_its_line(planted: str) -> None:
    text = f"first\nsecond\n{planted}\n"
    [line] = complaints("windowlib/cli/run.py", text, replaced())
    assert re.match(r'windowlib/cli/run\.py:3: ".+": use .+', line)


@pytest.mark.parametrize(
    "text", ["there is no default", "it is no longer there", "windows_entered", "Intel", "soldier"]
)
def test_what_is_not_meant_is_not_named(text: str) -> None:
    assert complaints("windowlib/cli/run.py", text, replaced()) == []
